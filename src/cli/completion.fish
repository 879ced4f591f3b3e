# Completes wattribute in fish; written by 'wattribute completion fish'.
@lists

function __wattribute_command -d 'Print what follows the flags of a verb that takes a command'
    set -l words (commandline -opc)
    set -e words[1]
    contains -- "$words[1]" $__wattribute_runs; or return 1
    set -e words[1]
    while string match -q -- '-*' $words[1]
        set -l flag $words[1]
        set -e words[1]
        if test $flag = --
            string escape -- $words
            return 0
        end
        contains -- $flag $__wattribute_values; and set -e words[1]
    end
    set -q words[1]; and string escape -- $words
end

function __wattribute_verb -d 'Is the verb one of these, and may a flag follow?'
    __wattribute_command >/dev/null; and return 1
    set -l words (commandline -opc)
    set -l verb serve
    if set -q words[2]; and not string match -q -- '-*' $words[2]
        set verb $words[2]
    end
    contains -- $verb $argv
end

complete -c wattribute -f
complete -c wattribute -n '__wattribute_command >/dev/null' \
    -a '(complete -C (string join " " -- (__wattribute_command) (commandline -ct)))'
@verbs
@flags
