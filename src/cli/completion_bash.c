/* Needs nothing but bash 4: the package bash-completion only loads it. */
#include "cli/completion.h"

extern const char completion_bash_template[];

static const char *kind_word(enum completion_kind kind)
{
    return kind == COMPLETION_DIRECTORY ? "@directory"
           : kind == COMPLETION_COMMAND ? "@command"
                                        : "@file";
}

static void put_flags(const struct cli_command *command, struct buffer *out)
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

static void put_verb(const struct cli_command *command, struct buffer *out)
{
    enum completion_kind kind = completion_of_argument(command);

    buffer_str(out, "    ");
    buffer_str(out, command->name);
    buffer_str(out, ")\n        flags='");
    put_flags(command, out);
    buffer_str(out, "'");
    if (kind != COMPLETION_NONE)
        buffer_str(out, "\n        argument='");
    if (kind == COMPLETION_WORDS)
        completion_put_argument(command, out);
    else if (kind != COMPLETION_NONE)
        buffer_str(out, kind_word(kind));
    buffer_str(out, kind == COMPLETION_NONE ? " ;;\n" : "' ;;\n");
}

static void put_value(const struct options_flag *flag, struct buffer *out)
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

static void put_names(struct buffer *out)
{
    buffer_str(out, "    verbs='");
    for (const struct cli_command *c = cli_commands; c->groups; c++) {
        buffer_str(out, c->name);
        buffer_char(out, ' ');
    }
    buffer_str(out, "'\n");
}

static void put_verbs(struct buffer *out)
{
    for (const struct cli_command *c = cli_commands; c->groups; c++)
        put_verb(c, out);
}

static void put_values(struct buffer *out)
{
    struct options_flag flag;

    for (size_t i = 0; options_flag_at(i, &flag); i++)
        put_value(&flag, out);
}

const struct completion_shell completion_bash = {
    "bash",
    completion_bash_template,
    {{"@verb-names", put_names}, {"@verbs", put_verbs}, {"@values", put_values}},
};
