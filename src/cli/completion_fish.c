/* One line for each flag, with the verbs that have it. */
#include "cli/completion.h"

extern const char completion_fish_template[];

static void put_quoted(const char *text, struct buffer *out)
{
    buffer_char(out, '\'');
    completion_put_quoted(text, "\\", "\\'", out);
    buffer_char(out, '\'');
}

static void put_condition(const struct options_flag *flag, struct buffer *out)
{
    buffer_str(out, "complete -c wattribute -n '__wattribute_verb");
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        if (completion_has_flag(c, flag)) {
            buffer_char(out, ' ');
            buffer_str(out, c->name);
        }
    buffer_char(out, '\'');
}

static void put_value(const struct options_flag *flag, struct buffer *out)
{
    enum completion_kind kind = completion_of_flag(flag);

    if (kind == COMPLETION_FILE)
        buffer_str(out, " -r -F");
    else if (kind == COMPLETION_DIRECTORY)
        buffer_str(out, " -x -a '(__fish_complete_directories)'");
    else if (kind != COMPLETION_NONE)
        buffer_str(out, " -x");
    if (kind == COMPLETION_WORDS) {
        buffer_str(out, flag->splits ? " -a '(__fish_append , " : " -a '");
        completion_put_words(flag, out);
        buffer_str(out, flag->splits ? ")'" : "'");
    }
}

static void put_flag(const struct options_flag *flag, struct buffer *out)
{
    put_condition(flag, out);
    buffer_str(out, " -l ");
    buffer_str(out, flag->name);
    if (flag->alias) {
        buffer_str(out, flag->alias[1] ? " -l " : " -s ");
        buffer_str(out, flag->alias);
    }
    put_value(flag, out);
    buffer_str(out, " -d ");
    put_quoted(flag->help, out);
    buffer_char(out, '\n');
    if (completion_is_negatable(flag)) {
        put_condition(flag, out);
        buffer_str(out, " -l no-");
        buffer_str(out, flag->name);
        buffer_str(out, " -d ");
        put_quoted(flag->help, out);
        buffer_char(out, '\n');
    }
}

static void put_verb(const struct cli_command *command, struct buffer *out)
{
    enum completion_kind kind = completion_of_argument(command);

    buffer_str(out, "complete -c wattribute -n 'test (count (commandline -opc)) -eq 1' -a ");
    buffer_str(out, command->name);
    buffer_str(out, " -d ");
    put_quoted(command->help, out);
    buffer_char(out, '\n');
    if (kind == COMPLETION_NONE)
        return;
    buffer_str(out, "complete -c wattribute -n '__wattribute_verb ");
    buffer_str(out, command->name);
    buffer_str(out, kind == COMPLETION_FILE      ? "' -F"
                    : kind == COMPLETION_COMMAND ? "' -a '(__fish_complete_command)'"
                                                 : "' -a '");
    if (kind == COMPLETION_WORDS) {
        completion_put_argument(command, out);
        buffer_char(out, '\'');
    }
    buffer_char(out, '\n');
}

/* Verbs that take a command, and all flags with a value. */
static void put_lists(struct buffer *out)
{
    struct options_flag flag;

    buffer_str(out, "set -g __wattribute_runs");
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        if (completion_of_argument(c) == COMPLETION_COMMAND) {
            buffer_char(out, ' ');
            buffer_str(out, c->name);
        }
    buffer_str(out, "\nset -g __wattribute_values");
    for (size_t i = 0; options_flag_at(i, &flag); i++) {
        if (!flag.placeholder)
            continue;
        buffer_str(out, " --");
        buffer_str(out, flag.name);
        if (flag.alias) {
            buffer_str(out, flag.alias[1] ? " --" : " -");
            buffer_str(out, flag.alias);
        }
    }
    buffer_char(out, '\n');
}

static void put_verbs(struct buffer *out)
{
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        put_verb(c, out);
}

static void put_flags(struct buffer *out)
{
    struct options_flag flag;

    for (size_t i = 0; options_flag_at(i, &flag); i++)
        put_flag(&flag, out);
}

const struct completion_shell completion_fish = {
    "fish",
    completion_fish_template,
    {{"@lists", put_lists}, {"@verbs", put_verbs}, {"@flags", put_flags}},
};
