/* One line for each flag, with the verbs that have it. */
#include "cli/completion.h"

static const char head[] =
    "# Completes wattribute in fish; written by 'wattribute completion fish'.\n"
    "function __wattribute_verb -d 'Is the verb one of these?'\n"
    "    set -l words (commandline -opc)\n"
    "    set -l verb serve\n"
    "    if set -q words[2]; and not string match -q -- '-*' $words[2]\n"
    "        set verb $words[2]\n"
    "    end\n"
    "    contains -- $verb $argv\n"
    "end\n"
    "complete -c wattribute -f\n";

static void quoted_put(const char *text, struct buffer *out)
{
    buffer_char(out, '\'');
    completion_put_quoted(text, "\\", "\\'", out);
    buffer_char(out, '\'');
}

static void verbs_put(const struct options_flag *flag, struct buffer *out)
{
    buffer_str(out, "complete -c wattribute -n '__wattribute_verb");
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        if (completion_has_flag(c, flag)) {
            buffer_char(out, ' ');
            buffer_str(out, c->name);
        }
    buffer_char(out, '\'');
}

static void value_put(const struct options_flag *flag, struct buffer *out)
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

static void flag_put(const struct options_flag *flag, struct buffer *out)
{
    verbs_put(flag, out);
    buffer_str(out, " -l ");
    buffer_str(out, flag->name);
    if (flag->alias) {
        buffer_str(out, flag->alias[1] ? " -l " : " -s ");
        buffer_str(out, flag->alias);
    }
    value_put(flag, out);
    buffer_str(out, " -d ");
    quoted_put(flag->help, out);
    buffer_char(out, '\n');
    if (completion_is_negatable(flag)) {
        verbs_put(flag, out);
        buffer_str(out, " -l no-");
        buffer_str(out, flag->name);
        buffer_str(out, " -d ");
        quoted_put(flag->help, out);
        buffer_char(out, '\n');
    }
}

static void verb_put(const struct cli_command *command, struct buffer *out)
{
    enum completion_kind kind = completion_of_argument(command);

    buffer_str(out, "complete -c wattribute -n 'test (count (commandline -opc)) -eq 1' -a ");
    buffer_str(out, command->name);
    buffer_str(out, " -d ");
    quoted_put(command->help, out);
    buffer_char(out, '\n');
    if (kind == COMPLETION_NONE)
        return;
    buffer_str(out, "complete -c wattribute -n '__wattribute_verb ");
    buffer_str(out, command->name);
    buffer_str(out, kind == COMPLETION_FILE      ? "' -F"
                    : kind == COMPLETION_COMMAND ? "' -a '(__fish_complete_subcommand)'"
                                                 : "' -a '");
    if (kind == COMPLETION_WORDS) {
        completion_put_argument(command, out);
        buffer_char(out, '\'');
    }
    buffer_char(out, '\n');
}

void completion_fish(struct buffer *out)
{
    struct options_flag flag;

    buffer_str(out, head);
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        verb_put(c, out);
    for (size_t i = 0; options_flag_at(i, &flag); i++)
        flag_put(&flag, out);
}
