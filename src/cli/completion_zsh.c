/* By zsh's _arguments. */
#include <string.h>

#include "cli/completion.h"

#define NEXT " \\\n            " /* argument of _arguments */

static const char head[] =
    "#compdef wattribute\n"
    "# Completes wattribute in zsh; written by 'wattribute completion zsh'.\n"
    "_wattribute() {\n"
    "    local verb=serve\n"
    "    local -a verbs=(\n";

static const char middle[] = "    )\n"
                             "\n"
                             "    if (( CURRENT > 2 )) && [[ $words[2] != -* ]]; then\n"
                             "        verb=$words[2]\n"
                             "        shift words\n"
                             "        (( CURRENT-- ))\n"
                             "    elif (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
                             "        _describe -t commands command verbs\n"
                             "        return\n"
                             "    fi\n"
                             "    case $verb in\n";

static const char tail[] =
    "    esac\n"
    "}\n"
    "\n"
    "# The function itself if it was loaded by name, else a file that was sourced.\n"
    "if [[ $funcstack[1] == _wattribute ]]; then\n"
    "    _wattribute \"$@\"\n"
    "else\n"
    "    compdef _wattribute wattribute\n"
    "fi\n";

static void quoted_put(const char *text, struct buffer *out)
{
    completion_put_quoted(text, "[]\\", "'\\''", out);
}

/* What can follow; `words` writes those that are known. */
static void action_put(enum completion_kind kind, const struct options_flag *flag,
                       struct buffer *out)
{
    if (kind == COMPLETION_FILE) {
        buffer_str(out, "_files");
    } else if (kind == COMPLETION_DIRECTORY) {
        buffer_str(out, "_files -/");
    } else if (kind == COMPLETION_WORDS && flag->splits) {
        buffer_str(out, "_sequence compadd - ");
        completion_put_words(flag, out);
    } else if (kind == COMPLETION_WORDS) {
        buffer_str(out, strchr(flag->placeholder, '=') ? "compadd -S \"\" - " : "compadd - ");
        completion_put_words(flag, out);
    } else {
        buffer_char(out, ' ');
    }
}

/* '*--name=[help]:PLACEHOLDER:action' */
static void option_put(const struct options_flag *flag, const char *dashes, const char *name,
                       struct buffer *out)
{
    enum completion_kind kind = completion_of_flag(flag);

    buffer_str(out, flag->repeatable ? NEXT "'*" : NEXT "'");
    buffer_str(out, dashes);
    buffer_str(out, name);
    buffer_str(out, kind == COMPLETION_NONE ? "[" : "=[");
    quoted_put(flag->help, out);
    buffer_char(out, ']');
    if (kind != COMPLETION_NONE) {
        buffer_char(out, ':');
        buffer_str(out, flag->placeholder);
        buffer_char(out, ':');
        action_put(kind, flag, out);
    }
    buffer_char(out, '\'');
}

static void argument_put(const struct cli_command *command, struct buffer *out)
{
    enum completion_kind kind = completion_of_argument(command);

    if (kind == COMPLETION_COMMAND)
        buffer_str(out, NEXT "'*::: :_normal'");
    else if (kind == COMPLETION_FILE)
        buffer_str(out, NEXT "'*:file:_files'");
    if (kind != COMPLETION_WORDS)
        return;
    buffer_str(out, NEXT "'*:argument:(");
    completion_put_argument(command, out);
    buffer_str(out, ")'");
}

void completion_zsh(struct buffer *out)
{
    buffer_str(out, head);
    for (const struct cli_command *c = cli_commands; c->groups; c++) {
        buffer_str(out, "        '");
        buffer_str(out, c->name);
        buffer_char(out, ':');
        quoted_put(c->help, out);
        buffer_str(out, "'\n");
    }
    buffer_str(out, middle);
    for (const struct cli_command *c = cli_commands; c->groups; c++) {
        struct options_flag flag;

        buffer_str(out, "    ");
        buffer_str(out, c->name);
        buffer_str(out, ")\n        _arguments -S");
        for (size_t i = 0; options_flag_at(i, &flag); i++) {
            if (!completion_has_flag(c, &flag))
                continue;
            option_put(&flag, "--", flag.name, out);
            if (completion_is_negatable(&flag))
                option_put(&flag, "--no-", flag.name, out);
            if (flag.alias)
                option_put(&flag, flag.alias[1] ? "--" : "-", flag.alias, out);
        }
        argument_put(c, out);
        buffer_str(out, "\n        ;;\n");
    }
    buffer_str(out, tail);
}
