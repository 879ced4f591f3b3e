/* Needs nothing but bash 4: the package bash-completion only loads it. */
#include "cli/completion.h"

static const char head[] =
    "# Completes wattribute in bash; written by 'wattribute completion bash'.\n"
    "_wattribute()\n"
    "{\n"
    "    local verb=serve flags='' argument='' list='' flag='' joined='' word before\n"
    "    local -a words=()\n"
    "\n"
    "    # Bash splits words at = and :, so put them together again.\n"
    "    for word in \"${COMP_WORDS[@]:0:COMP_CWORD+1}\"; do\n"
    "        [[ ${#words[@]} -gt 1 && -n $word && $word != *[^=:]* ]] && joined=yes\n"
    "        if [[ -n $joined ]]; then\n"
    "            words[${#words[@]}-1]+=$word\n"
    "        else\n"
    "            words+=(\"$word\")\n"
    "        fi\n"
    "        [[ $word == *[^=:]* ]] && joined=\n"
    "    done\n"
    "    local last=${words[${#words[@]}-1]} previous=${words[${#words[@]}-2]}\n"
    "    local value=$last\n"
    "    [[ ${#words[@]} -gt 2 && ${words[1]} != -* ]] && verb=${words[1]}\n"
    "    COMPREPLY=()\n"
    "    local verbs='";

/* From here on `before` is what precedes the value in the word, `list` its words or what makes
 * them. */
static const char middle[] = "    *) return ;;\n"
                             "    esac\n"
                             "\n"
                             "    if [[ \" ${words[*]:1:${#words[@]}-2} \" == *' -- '* ]]; then\n"
                             "        flags='' list=$argument\n"
                             "    elif [[ $last == -*=* ]]; then\n"
                             "        flag=${last%%=*} value=${last#*=}\n"
                             "    elif [[ $last == -* ]]; then\n"
                             "        list=$flags\n"
                             "    elif [[ \" $flags \" == *\" $previous= \"* ]]; then\n"
                             "        flag=$previous\n"
                             "    elif [[ ${#words[@]} -eq 2 ]]; then\n"
                             "        list=$verbs\n"
                             "    else\n"
                             "        list=$argument\n"
                             "    fi\n"
                             "    [[ -z $flag || \" $flags \" == *\" $flag= \"* ]] || return\n"
                             "    case $flag in\n";

static const char tail[] =
    "    esac\n"
    "\n"
    "    before=${last%\"$value\"}\n"
    "    case $list in\n"
    "    @file)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -P \"$before\" -f -- \"$value\") ;;\n"
    "    @directory)\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t COMPREPLY < <(compgen -P \"$before\" -d -- \"$value\") ;;\n"
    "    @command) mapfile -t COMPREPLY < <(compgen -A command -A file -- \"$value\") ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -P \"$before\" -W \"$list\" -- \"$value\") ;;\n"
    "    esac\n"
    "    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
    "    # Of the last word, bash replaces what comes after the last = or : that it splits at.\n"
    "    word=${COMP_WORDBREAKS//[^=:]/}\n"
    "    [[ -n $word ]] && before=${last%\"${last##*[$word]}\"} &&\n"
    "        COMPREPLY=(\"${COMPREPLY[@]#\"$before\"}\")\n"
    "}\n"
    "complete -F _wattribute wattribute\n";

static const char *kind_word(enum completion_kind kind)
{
    return kind == COMPLETION_DIRECTORY ? "@directory"
           : kind == COMPLETION_COMMAND ? "@command"
                                        : "@file";
}

static void flags_put(const struct cli_command *command, struct buffer *out)
{
    struct options_flag flag;

    for (size_t i = 0; options_flag_at(i, &flag); i++) {
        const char *end = flag.placeholder ? "= " : " ";

        if (!completion_has_flag(command, &flag))
            continue;
        buffer_str(out, "--");
        buffer_str(out, flag.name);
        buffer_str(out, end);
        if (completion_is_negatable(&flag)) {
            buffer_str(out, "--no-");
            buffer_str(out, flag.name);
            buffer_str(out, end);
        }
        if (flag.alias) {
            buffer_str(out, flag.alias[1] ? "--" : "-");
            buffer_str(out, flag.alias);
            buffer_str(out, end);
        }
    }
}

static void verb_put(const struct cli_command *command, struct buffer *out)
{
    enum completion_kind kind = completion_of_argument(command);

    buffer_str(out, "    ");
    buffer_str(out, command->name);
    buffer_str(out, ")\n        flags='");
    flags_put(command, out);
    buffer_str(out, "'");
    if (kind != COMPLETION_NONE)
        buffer_str(out, "\n        argument='");
    if (kind == COMPLETION_WORDS)
        completion_put_argument(command, out);
    else if (kind != COMPLETION_NONE)
        buffer_str(out, kind_word(kind));
    buffer_str(out, kind == COMPLETION_NONE ? " ;;\n" : "' ;;\n");
}

static void value_put(const struct options_flag *flag, struct buffer *out)
{
    enum completion_kind kind = completion_of_flag(flag);

    if (kind == COMPLETION_NONE || kind == COMPLETION_UNKNOWN)
        return;
    buffer_str(out, "    --");
    buffer_str(out, flag->name);
    if (flag->alias) {
        buffer_str(out, flag->alias[1] ? "|--" : "|-");
        buffer_str(out, flag->alias);
    }
    buffer_str(out, ") list='");
    if (kind == COMPLETION_WORDS)
        completion_put_words(flag, out);
    else
        buffer_str(out, kind_word(kind));
    buffer_str(out, flag->splits ? "' value=${value##*,} ;;\n" : "' ;;\n");
}

void completion_bash(struct buffer *out)
{
    struct options_flag flag;

    buffer_str(out, head);
    for (const struct cli_command *c = cli_commands; c->groups; c++) {
        buffer_str(out, c->name);
        buffer_char(out, ' ');
    }
    buffer_str(out, "'\n\n    case $verb in\n");
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        verb_put(c, out);
    buffer_str(out, middle);
    for (size_t i = 0; options_flag_at(i, &flag); i++)
        value_put(&flag, out);
    buffer_str(out, tail);
}
