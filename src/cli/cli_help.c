/* The text of --help and --version, from the tables of commands and options. */
#include "cli/cli.h"
#include "core/span.h"

enum { WIDTH = 100, COLUMN = 38 };

/* A group without one continues the list before it. */
static const char *const group_titles[OPTIONS_GROUP_COUNT] = {
    [OPTIONS_BOOKS] = "Bookkeeping",   [OPTIONS_NODE] = "This node",
    [OPTIONS_METRICS] = "Metrics",     [OPTIONS_SERVING] = "Serving",
    [OPTIONS_LOGGING] = "Logging",     [OPTIONS_GENERAL] = "General",
    [OPTIONS_RECORDING] = "Recording", [OPTIONS_CHECKING] = "Checking",
    [OPTIONS_SOURCES] = "Sources",     [OPTIONS_PRICES] = "Emissions and cost",
};

static void put_blanks(struct buffer *out, size_t count)
{
    while (count-- > 0)
        buffer_char(out, ' ');
}

/* A left part, then words that wrap in the column beside it. */
static void put_row(struct buffer *out, struct span left, struct span right)
{
    size_t at = left.len;

    buffer_bytes(out, left.data, left.len);
    while (right.len > 0) {
        struct span word = span_cut(&right, ' ');

        if (at >= COLUMN && at + 1 + word.len > WIDTH) {
            buffer_char(out, '\n');
            at = 0;
        }
        if (at < COLUMN) {
            put_blanks(out, COLUMN - at);
            at = COLUMN;
        } else {
            buffer_char(out, ' ');
            at++;
        }
        buffer_bytes(out, word.data, word.len);
        at += word.len;
    }
    buffer_char(out, '\n');
}

static void put_name(struct buffer *out, const char *name)
{
    buffer_str(out, name[1] ? "--" : "-");
    buffer_str(out, name);
}

static void put_flag(struct buffer *out, const struct options_flag *flag)
{
    struct buffer left, right;
    const char *joint = " (";
    char allowed[512];

    buffer_init(&left, 256);
    buffer_init(&right, 1024);
    buffer_str(&left, "  ");
    put_name(&left, flag->names[0]);
    if (flag->placeholder) {
        buffer_char(&left, '=');
        buffer_str(&left, flag->placeholder);
    }
    buffer_str(&right, flag->help);
    options_describe(flag, allowed, sizeof(allowed));
    if (*allowed) {
        buffer_str(&right, ": ");
        buffer_str(&right, allowed);
    }
    if (flag->fallback) {
        buffer_str(&right, joint);
        buffer_str(&right, "default ");
        buffer_str(&right, flag->fallback);
        joint = "; ";
    }
    for (const char *const *alias = flag->names + 1; *alias; alias++) {
        buffer_str(&right, joint);
        buffer_str(&right, "also ");
        put_name(&right, *alias);
        joint = "; ";
    }
    if (flag->repeatable) {
        buffer_str(&right, joint);
        buffer_str(&right, "can be repeated");
        joint = "; ";
    }
    if (*joint == ';')
        buffer_char(&right, ')');
    put_row(out, (struct span){left.data, left.len}, (struct span){right.data, right.len});
    out->failed = out->failed || buffer_failed(&left) || buffer_failed(&right);
    buffer_done(&left);
    buffer_done(&right);
}

static void put_flags(struct buffer *out, unsigned groups)
{
    for (unsigned group = 0; group < OPTIONS_GROUP_COUNT; group++) {
        if (!(groups & 1U << group))
            continue;
        if (group_titles[group]) {
            buffer_char(out, '\n');
            buffer_str(out, group_titles[group]);
            buffer_str(out, ":\n");
        }
        for (struct options_walk walk = {0}; options_next(&walk);)
            if (walk.flag.group == group)
                put_flag(out, &walk.flag);
    }
}

static void put_environment(struct buffer *out, unsigned groups)
{
    bool titled = false;

    for (size_t i = 0; i < options_variable_count; i++) {
        const struct options_variable *variable = &options_variables[i];
        struct options_flag flag;
        struct buffer left;

        if (!options_find(span_of(variable->flag), &flag) || !(groups & 1U << flag.group))
            continue;
        if (!titled)
            buffer_str(out, "\nEnvironment (the config file and flags win over it):\n");
        titled = true;
        buffer_init(&left, 256);
        buffer_str(&left, "  ");
        buffer_str(&left, variable->name);
        put_row(out, (struct span){left.data, left.len}, span_of(variable->help));
        buffer_done(&left);
    }
}

static void put_usage(struct buffer *out, const struct cli_command *command)
{
    struct buffer left;

    buffer_init(&left, 256);
    buffer_str(&left, command->verb == CLI_SERVE ? "  wattribute [" : "  wattribute ");
    buffer_str(&left, command->name);
    buffer_str(&left, command->verb == CLI_SERVE ? "] [flags]" : " [flags]");
    if (command->argument) {
        buffer_char(&left, ' ');
        buffer_str(&left, command->argument);
    }
    put_row(out, (struct span){left.data, left.len}, span_of(command->help));
    buffer_done(&left);
}

void cli_help(enum cli_verb verb, struct buffer *out)
{
    unsigned groups = 0;

    buffer_str(out, "wattribute: who used the joules? A Prometheus exporter that books a node's "
                    "energy.\n\nUsage:\n");
    for (size_t i = 0; i < cli_command_count; i++) {
        const struct cli_command *command = &cli_commands[i];

        if (command->hidden || (verb != CLI_ANY && command->verb != verb))
            continue;
        put_usage(out, command);
        groups |= command->groups;
    }
    buffer_str(out, "\nDurations are written as in Go: 250ms, 10s, 1h30m. "
                    "Switches are set by --switch, --switch=false\nor --no-switch.\n");
    put_flags(out, groups);
    put_environment(out, groups);
    buffer_str(out, "\nExamples:\n");
    for (size_t i = 0; i < cli_command_count; i++)
        if (!cli_commands[i].hidden && (verb == CLI_ANY || cli_commands[i].verb == verb))
            buffer_str(out, cli_commands[i].examples);
    buffer_str(
        out,
        "\nExit status: 0 success; 1 it failed, or 'check' finds nothing to measure; 2 a flag, "
        "an address or\na file cannot be used.\n");
}

void cli_version(struct buffer *out)
{
    buffer_str(out, "wattribute ");
    buffer_str(out, WATTRIBUTE_VERSION);
#ifdef WATTRIBUTE_COMMIT
    buffer_str(out, " (commit ");
    buffer_str(out, WATTRIBUTE_COMMIT);
    buffer_char(out, ')');
#endif
    buffer_char(out, '\n');
}
