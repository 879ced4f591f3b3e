/* What the program prints: help and version from the tables, errors, ledgers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attribution/pipeline.h"
#include "cli/cli.h"
#include "core/fs.h"
#include "core/span.h"
#include "identity/recorded_names.h"
#include "metrics/ledger_json.h"

enum { WIDTH = 100, COLUMN = 38, TEXT_CAP_BYTES = 1 << 20, JSON_CAP_BYTES = 1 << 30 };

const char *const cli_group_titles[OPTIONS_GROUP_COUNT] = {
    [OPTIONS_BOOKS] = "Bookkeeping",
    [OPTIONS_NODE] = "This node",
    [OPTIONS_METRICS] = "Metrics",
    [OPTIONS_SERVING] = "Serving",
    [OPTIONS_LOGGING] = "Logging",
    [OPTIONS_GENERAL] = "General",
    [OPTIONS_RECORDING] = "Recording",
    [OPTIONS_RUNNING] = "Running",
    [OPTIONS_OUTPUT] = "Output",
    [OPTIONS_SOURCES] = "Sources",
    [OPTIONS_PRICES] = "Emissions and cost",
    [OPTIONS_DAEMON] = "Daemon",
    [OPTIONS_SCREEN] = "Screen",
    [OPTIONS_REPORTING] = "Report",
};

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* A left part, then words that wrap in the column beside it. */
static void help_row_put(struct buffer *out, const char *left, const char *right)
{
    struct span rest = span_of(right);
    size_t at = strlen(left);

    buffer_str(out, left);
    while (rest.len > 0) {
        struct span word = span_cut(&rest, ' ');

        if (at >= COLUMN && at + 1 + word.len > WIDTH) {
            buffer_char(out, '\n');
            at = 0;
        }
        do {
            buffer_char(out, ' ');
            at++;
        } while (at < COLUMN);
        buffer_bytes(out, word.data, word.len);
        at += word.len;
    }
    buffer_char(out, '\n');
}

void cli_describe_flag(const struct options_flag *flag, char *text, size_t size_bytes)
{
    char allowed[512] = "", notes[160];

    if (flag->describe)
        flag->describe(flag, allowed, sizeof(allowed));
    snprintf(notes, sizeof(notes), "%s%s%s%s%s", flag->fallback ? "; default " : "",
             or_empty(flag->fallback),
             !flag->alias     ? ""
             : flag->alias[1] ? "; also --"
                              : "; also -",
             or_empty(flag->alias), flag->repeatable ? "; can be repeated" : "");
    snprintf(text, size_bytes, "%s%s%s%s%s%s", flag->help, *allowed ? ": " : "", allowed,
             *notes ? " (" : "", *notes ? notes + 2 : "", *notes ? ")" : "");
}

static void help_flag_put(struct buffer *out, const struct options_flag *flag)
{
    char left[128], right[CLI_DESCRIPTION_BYTES];

    snprintf(left, sizeof(left), "  --%s%s%s", flag->name, flag->placeholder ? "=" : "",
             or_empty(flag->placeholder));
    cli_describe_flag(flag, right, sizeof(right));
    help_row_put(out, left, right);
}

static void help_flags_put(struct buffer *out, unsigned groups)
{
    struct options_flag flag;

    for (unsigned group = 0; group < OPTIONS_GROUP_COUNT; group++) {
        if (!(groups & 1U << group))
            continue;
        if (cli_group_titles[group]) {
            buffer_char(out, '\n');
            buffer_str(out, cli_group_titles[group]);
            buffer_str(out, ":\n");
        }
        for (size_t i = 0; options_flag_at(i, &flag); i++)
            if (flag.group == group)
                help_flag_put(out, &flag);
    }
}

static void help_environment_put(struct buffer *out, unsigned groups)
{
    const char *title = "\nEnvironment (the config file and flags override it):\n";

    for (size_t i = 0; i < options_variable_count; i++) {
        const struct options_variable *variable = &options_variables[i];
        struct options_flag flag;
        char left[64];

        if (!options_find(span_of(variable->flag), &flag) || !(groups & 1U << flag.group))
            continue;
        buffer_str(out, title);
        title = "";
        snprintf(left, sizeof(left), "  %s", variable->name);
        help_row_put(out, left, variable->help);
    }
}

/* Of one verb, or of those whose statuses are not the usual ones. */
static void help_statuses_put(struct buffer *out, const struct cli_command *command, bool is_named)
{
    char left[64];

    if (!is_named)
        buffer_char(out, '\n');
    snprintf(left, sizeof(left), "Exit status%s%s:", is_named ? " of " : "",
             is_named ? command->name : "");
    help_row_put(out, left, command->statuses ? command->statuses : CLI_STATUSES);
}

void cli_describe_usage(const struct cli_command *command, char text[CLI_USAGE_BYTES])
{
    bool is_default = command == cli_commands;

    snprintf(text, CLI_USAGE_BYTES, "wattribute %s%s%s [flags]%s%s%s", is_default ? "[" : "",
             command->name, is_default ? "]" : "", command->argument ? " " : "",
             or_empty(command->argument),
             command->takes_command ? " [ARGUMENT...]"
             : command->argument    ? "..."
                                    : "");
}

void cli_help(const struct cli_command *command, struct buffer *out)
{
    const struct cli_command *first = command ? command : cli_commands;
    const struct cli_command *end = command ? command + 1 : cli_commands + CLI_COMMANDS;
    unsigned groups = 0;

    buffer_str(out, "wattribute: who used the joules? A Prometheus exporter that books a node's "
                    "energy.\n\nUsage:\n");
    for (const struct cli_command *c = first; c < end && c->groups; c++) {
        char left[CLI_USAGE_BYTES + 2] = "  ";

        cli_describe_usage(c, left + 2);
        help_row_put(out, left, c->help);
        groups |= c->groups;
    }
    buffer_str(out, "\nDurations are written as in Go: 250ms, 10s, 1h30m. "
                    "Set a switch with --switch, --switch=false\nor --no-switch.\n");
    help_flags_put(out, groups);
    help_environment_put(out, groups);
    buffer_str(out, "\nExamples:\n");
    for (const struct cli_command *c = first; c < end && c->groups; c++)
        buffer_str(out, c->examples);
    for (const struct cli_command *c = first; c < end && c->groups; c++)
        if (command || c == first || c->statuses)
            help_statuses_put(out, c, !command && c->statuses);
}

void cli_version(struct buffer *out)
{
    buffer_str(out, "wattribute " WATTRIBUTE_VERSION);
#ifdef WATTRIBUTE_COMMIT
    buffer_str(out, " (commit " WATTRIBUTE_COMMIT ")");
#endif
    buffer_char(out, '\n');
}

int cli_run(const struct cli *cli)
{
    struct buffer text;
    int status;

    if (cli->command->run_child)
        return cli->command->run_child();
    if (!cli->options.help && !cli->options.version)
        return cli->command->run(cli);
    buffer_init(&text, TEXT_CAP_BYTES);
    if (cli->options.help)
        cli_help(cli->is_named ? cli->command : NULL, &text);
    else
        cli_version(&text);
    status = cli_print(&text);
    buffer_done(&text);
    return status;
}

bool cli_is_in_colour(void)
{
    const char *terminal = getenv("TERM"), *objection = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0 &&
           !(objection && objection[0]);
}

int cli_print(const struct buffer *text)
{
    int r = buffer_failed(text) ? -ENOMEM : fs_write_all(STDOUT_FILENO, text->data, text->len);
    struct error err = {"out of memory"};

    if (r == 0)
        return EXIT_OK;
    if (r != -ENOMEM)
        error_format(&err, "cannot write to standard output: %s", strerror(-r));
    cli_print_error(&err);
    return EXIT_FAILED;
}

void cli_print_error(const struct error *err)
{
    char
        storage[sizeof(err->text) + 32]; /* the buffer never grows: memory may be what is missing */
    struct buffer line = {
        .data = storage, .capacity = sizeof(storage), .cap_bytes = sizeof(storage)};

    buffer_str(&line, "wattribute: ");
    buffer_printable(&line, span_of(err->text));
    buffer_char(&line, '\n');
    (void)fs_write_all(STDERR_FILENO, line.data, line.len);
}

int cli_print_ledger(struct pipeline *pipeline, struct recorded_names *names)
{
    struct snapshot snapshot;
    struct buffer json;
    int status;

    pipeline_set_names(pipeline, recorded_names_find, names);
    snapshot_init(&snapshot);
    buffer_init(&json, JSON_CAP_BYTES);
    if (pipeline_fix_names(pipeline, 0) == 0 && pipeline_snapshot(pipeline, 0, 0, &snapshot) == 0)
        ledger_json(&snapshot, &json);
    else
        buffer_fail(&json);
    status = cli_print(&json);
    buffer_done(&json);
    snapshot_done(&snapshot);
    return status;
}

int cli_exit_status(int error)
{
    switch (-error) {
    case EBADMSG: /* corrupt or cut short */
    case EFBIG:   /* a decompression bomb */
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
        return EXIT_FAILED;
    default:
        return EXIT_USAGE;
    }
}
