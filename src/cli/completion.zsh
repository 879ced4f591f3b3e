#compdef wattribute
# Completes wattribute in zsh; written by 'wattribute completion zsh'.
_wattribute() {
    local verb=serve
    local -a verbs=(
@verb-names
    )

    if (( CURRENT > 2 )) && [[ $words[2] != -* ]]; then
        verb=$words[2]
        shift words
        (( CURRENT-- ))
    elif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
        _describe -t commands command verbs
        return
    fi
    case $verb in
@verbs
    esac
}

# The function itself if it was loaded by name, else a file that was sourced.
if [[ $funcstack[1] == _wattribute ]]; then
    _wattribute "$@"
else
    compdef _wattribute wattribute
fi
