# Completes wattribute in bash; written by 'wattribute completion bash'.
_wattribute()
{
    local verb=serve flags='' argument='' list='' flag='' joined='' ended='' word before at verbs
    local -a words=()

    # Bash splits words at = and :, so put them together again.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        [[ ${#words[@]} -gt 1 && -n $word && $word != *[^=:]* ]] && joined=yes
        if [[ -n $joined ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        [[ $word == *[^=:]* ]] && joined=
    done
    local last=${words[${#words[@]}-1]} previous=${words[${#words[@]}-2]}
    local value=$last
    [[ ${#words[@]} -gt 2 && ${words[1]} != -* ]] && verb=${words[1]}
    COMPREPLY=()
@verb-names
    case $verb in
@verbs
    *) return ;;
    esac

    # Flags end at --, and where the verb takes a command, at that.
    for ((at = 2; at < ${#words[@]} - 1; at++)); do
        if [[ ${words[at]} == -- ]]; then
            ended=yes
            ((at + 2 < ${#words[@]})) && argument=${argument/@command/@file}
            break
        elif [[ ${words[at]} != -* && $argument == @command ]]; then
            ended=yes argument=@file
            break
        elif [[ " $flags " == *" ${words[at]}= "* ]]; then
            ((at++)) # its value
        fi
    done

    # What can be there: a list of words, or @ and what makes them.
    if [[ -n $ended ]]; then
        list=$argument
    elif [[ $last == -*=* ]]; then
        flag=${last%%=*} value=${last#*=}
    elif [[ $last == -* ]]; then
        list=$flags
    elif [[ " $flags " == *" $previous= "* ]]; then
        flag=$previous
    elif [[ ${#words[@]} -eq 2 ]]; then
        list=$verbs
    else
        list=$argument
    fi
    [[ -z $flag || " $flags " == *" $flag= "* ]] || return
    case $flag in
@values
    esac

    before=${last%"$value"}
    case $list in
    @file)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -P "$before" -f -- "$value") ;;
    @directory)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -P "$before" -d -- "$value") ;;
    @command) mapfile -t COMPREPLY < <(compgen -A command -A file -- "$value") ;;
    *) mapfile -t COMPREPLY < <(compgen -P "$before" -W "$list" -- "$value") ;;
    esac
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    # Of the last word, bash replaces what comes after the last = or : that it splits at.
    word=${COMP_WORDBREAKS//[^=:]/}
    [[ -n $word ]] && before=${last%"${last##*[$word]}"} &&
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
complete -F _wattribute wattribute
