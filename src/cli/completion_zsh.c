/* By zsh's _arguments. */
#include <string.h>

#include "cli/completion.h"

#define NEXT " \\\n            " /* argument of _arguments */

extern const char completion_zsh_template[];

static void put_quoted(const char *text, struct buffer *out)
{
    completion_put_quoted(text, "[]\\", "'\\''", out);
}

/* What can follow; `words` writes those that are known. */
static void put_action(enum completion_kind kind, const struct options_flag *flag,
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
static void put_option(const struct options_flag *flag, const char *dashes, const char *name,
                       struct buffer *out)
{
    enum completion_kind kind = completion_of_flag(flag);

    buffer_str(out, flag->repeatable ? NEXT "'*" : NEXT "'");
    buffer_str(out, dashes);
    buffer_str(out, name);
    buffer_str(out, kind == COMPLETION_NONE ? "[" : "=[");
    put_quoted(flag->help, out);
    buffer_char(out, ']');
    if (kind != COMPLETION_NONE) {
        buffer_char(out, ':');
        buffer_str(out, flag->placeholder);
        buffer_char(out, ':');
        put_action(kind, flag, out);
    }
    buffer_char(out, '\'');
}

static void put_argument(const struct cli_command *command, struct buffer *out)
{
    enum completion_kind kind = completion_of_argument(command);

    if (kind == COMPLETION_COMMAND)
        buffer_str(out, NEXT "'(-)1:command:_command_names -e'" NEXT "'*::arguments:_normal'");
    else if (kind == COMPLETION_FILE)
        buffer_str(out, NEXT "'*:file:_files'");
    if (kind != COMPLETION_WORDS)
        return;
    buffer_str(out, NEXT "'*:argument:(");
    completion_put_argument(command, out);
    buffer_str(out, ")'");
}

static void put_names(struct buffer *out)
{
    for (const struct cli_command *c = cli_commands; c->groups; c++) {
        buffer_str(out, "        '");
        buffer_str(out, c->name);
        buffer_char(out, ':');
        put_quoted(c->help, out);
        buffer_str(out, "'\n");
    }
}

static void put_verb(const struct cli_command *command, struct buffer *out)
{
    struct options_flag flag;

    buffer_str(out, "    ");
    buffer_str(out, command->name);
    buffer_str(out, ")\n        _arguments -S");
    for (size_t i = 0; options_flag_at(i, &flag); i++) {
        if (!completion_has_flag(command, &flag))
            continue;
        put_option(&flag, "--", flag.name, out);
        if (completion_is_negatable(&flag))
            put_option(&flag, "--no-", flag.name, out);
        if (flag.alias)
            put_option(&flag, flag.alias[1] ? "--" : "-", flag.alias, out);
    }
    put_argument(command, out);
    buffer_str(out, "\n        ;;\n");
}

static void put_verbs(struct buffer *out)
{
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        put_verb(c, out);
}

const struct completion_shell completion_zsh = {
    "zsh", completion_zsh_template, {{"@verb-names", put_names}, {"@verbs", put_verbs}}};
