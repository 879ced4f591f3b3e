#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collector/checker.h"
#include "core/macros.h"
#include "fetcher/fetcher.h"
#include "server/server.h"

enum {
    SERVE_GROUPS = 1 << OPTIONS_BOOKS | 1 << OPTIONS_NODE | 1 << OPTIONS_SOURCES |
                   1 << OPTIONS_MODEL | 1 << OPTIONS_METRICS | 1 << OPTIONS_PRICES |
                   1 << OPTIONS_SERVING | 1 << OPTIONS_LOGGING | 1 << OPTIONS_GENERAL,
};

const struct cli_command cli_commands[CLI_COMMANDS] = {
    {.name = "serve",
     .run = verb_serve,
     .help = "book this node's energy and serve it to Prometheus (default)",
     .examples = "  wattribute\n"
                 "  wattribute --listen-address=127.0.0.1:9400 --idle-policy=equal\n"
                 "  wattribute --config.file=/etc/wattribute/wattribute.yaml --log-format=json\n"
                 "  wattribute --replay=recorded.trace.gz --listen-address=unix:/tmp/demo.sock\n",
     .groups = SERVE_GROUPS},
    {.name = "replay",
     .run = verb_replay,
     .argument = "TRACE",
     .help = "book recorded traces and print their ledgers as JSON",
     .examples = "  wattribute replay recorded.trace.gz\n"
                 "  wattribute replay --idle-policy=none recorded.trace.gz\n"
                 "  wattribute replay monday.trace.gz tuesday.trace.gz\n",
     .groups = 1 << OPTIONS_BOOKS | 1 << OPTIONS_GENERAL},
    {.name = "record",
     .run = verb_record,
     .help = "record this node's meters for replay",
     .examples = "  wattribute record -o node.trace.gz\n"
                 "  wattribute record -o node.trace.gz --duration=10m\n",
     .groups = 1 << OPTIONS_RECORDING | 1 << OPTIONS_FILE | 1 << OPTIONS_NODE |
               1 << OPTIONS_SOURCES | 1 << OPTIONS_LOGGING | 1 << OPTIONS_GENERAL},
    {.name = "check",
     .run = verb_check,
     .help = "report what this node can measure and what is missing",
     .examples = "  wattribute check\n"
                 "  wattribute check --json\n"
                 "  wattribute check --emissions.providers=rte\n",
     .statuses = "0 everything that is there works; 1 nothing to measure, or no report; 2 unusable "
                 "flag, address or file, with which 'serve' would not start; 3 something that is "
                 "there does not work",
     .groups = 1 << OPTIONS_OUTPUT | 1 << OPTIONS_NODE | 1 << OPTIONS_SOURCES | 1 << OPTIONS_MODEL |
               1 << OPTIONS_PRICES | 1 << OPTIONS_GENERAL},
    {.name = "top",
     .run = verb_top,
     .help = "show who draws this node's watts, in a terminal",
     .examples = "  wattribute top\n"
                 "  wattribute top --daemon=unix:/run/wattribute/metrics.sock\n"
                 "  wattribute top --once\n"
                 "  wattribute top --json\n",
     .groups = 1 << OPTIONS_SCREEN | 1 << OPTIONS_OUTPUT | 1 << OPTIONS_DAEMON | 1 << OPTIONS_NODE |
               1 << OPTIONS_SOURCES | 1 << OPTIONS_MODEL | 1 << OPTIONS_PRICES |
               1 << OPTIONS_GENERAL},
    {.name = "run",
     .run = verb_run,
     .argument = "COMMAND",
     .takes_command = true,
     .help = "run a command and report the joules that it used",
     .examples = "  wattribute run -- python3 train.py --epochs 1\n"
                 "  wattribute run --repeat=10 --output=a.json ./solver case.inp\n",
     .statuses = "0-255 that of COMMAND, or 128 and the number of the signal that ended it; 2 also "
                 "an unusable flag or file; 125 COMMAND was not started; 126 it may not be run; "
                 "127 there is no such program",
     .groups = 1 << OPTIONS_RUNNING | 1 << OPTIONS_FILE | 1 << OPTIONS_OUTPUT |
               1 << OPTIONS_DAEMON | 1 << OPTIONS_NODE | 1 << OPTIONS_SOURCES | 1 << OPTIONS_MODEL |
               1 << OPTIONS_PRICES | 1 << OPTIONS_GENERAL},
    {.name = "diff",
     .run = verb_diff,
     .argument = "REPORT",
     .help = "compare two reports of 'run': do the commands differ?",
     .examples = "  wattribute diff a.json b.json\n",
     .groups = 1 << OPTIONS_OUTPUT | 1 << OPTIONS_GENERAL},
    {.name = "report",
     .run = verb_report,
     .help = "add up energy, cost and grams of a fleet, from a Prometheus",
     .examples = "  wattribute report --period=last-month --by=user\n"
                 "  wattribute report --period=2026-10-01..2026-10-31 --html=october.html\n"
                 "  wattribute report --job=4711\n"
                 "  wattribute report --server=https://prometheus.example --by=account --csv\n",
     .groups = 1 << OPTIONS_REPORTING | 1 << OPTIONS_OUTPUT | 1 << OPTIONS_GENERAL},
    {.name = "completion",
     .run = verb_completion,
     .argument = "bash|zsh|fish",
     .help = "print a script that completes commands in a shell",
     .examples = "  source <(wattribute completion bash)\n"
                 "  wattribute completion fish > ~/.config/fish/completions/wattribute.fish\n",
     .groups = 1 << OPTIONS_GENERAL},
    {.name = "server", .run_child = server_main},
    {.name = "fetcher", .run_child = fetcher_main},
    {.name = "checker", .run_child = checker_main},
};

/* The arguments after the verb, read one by one. */
struct arguments {
    const struct cli_command *command;
    char **next; /* up to a NULL */
    bool only_positional;
};

struct argument {
    bool is_flag; /* else positional */
    struct options_flag flag;
    struct span name; /* of the flag, as written, without dashes */
    const char *value;
};

static int unknown_flag(const struct cli_command *command, struct span name, struct error *err)
{
    struct span positive = name;
    bool negated = span_strip_prefix(&positive, "no-");
    const char *near = options_suggest(positive, command->groups, negated);
    struct options_flag flag;

    if (negated && options_find(positive, &flag))
        return error_set(err, -EINVAL,
                         "--%.*s: --%s takes a value and cannot be negated; leave it out; see "
                         "'wattribute %s --help'",
                         (int)name.len, name.data, flag.name, command->name);
    return error_set(err, -EINVAL, "unknown flag --%.*s%s%s%s%s; see 'wattribute %s --help'",
                     (int)MIN(name.len, (size_t)80), name.data, near ? " (did you mean --" : "",
                     near && negated ? "no-" : "", near ? near : "", near ? "?)" : "",
                     command->name);
}

static int read_flag(struct arguments *arguments, const char *text, struct argument *ret,
                     struct error *err)
{
    const struct cli_command *command = arguments->command;
    /* One dash for two, as in Go: people reuse such command lines. */
    struct span rest = span_of(text + (text[1] == '-' ? 2 : 1));
    bool has_value = memchr(rest.data, '=', rest.len) != NULL;
    struct argument argument = {.is_flag = true, .name = span_cut(&rest, '=')};
    bool known = options_find(argument.name, &argument.flag);
    struct span positive = argument.name;
    bool negated = !known && span_strip_prefix(&positive, "no-") &&
                   options_find(positive, &argument.flag) && !argument.flag.placeholder;
    bool is_short = argument.name.len == 1;

    if (!known && !negated)
        return unknown_flag(command, argument.name, err);
    if (!(command->groups & 1U << argument.flag.group))
        return error_set(err, -EINVAL,
                         "--%s does not apply to '%s'; leave it out; see 'wattribute %s --help'",
                         argument.flag.name, command->name, command->name);
    if (negated && has_value)
        return error_set(err, -EINVAL, "--%.*s takes no value: leave it out, or write --%s=true",
                         (int)argument.name.len, argument.name.data, argument.flag.name);
    if (negated)
        argument.value = "false";
    else if (has_value)
        argument.value = rest.data;
    else if (!argument.flag.placeholder)
        argument.value = "true";
    else if (*arguments->next)
        argument.value = *arguments->next++;
    else
        return error_set(err, -EINVAL, "%s%.*s needs a value: write %s%.*s%s%s",
                         is_short ? "-" : "--", (int)argument.name.len, argument.name.data,
                         is_short ? "-" : "--", (int)argument.name.len, argument.name.data,
                         is_short ? " " : "=", argument.flag.placeholder);
    *ret = argument;
    return 1;
}

/* 1: an argument, 0: the end, or an error. */
static int next_argument(struct arguments *arguments, struct argument *ret, struct error *err)
{
    const char *text = *arguments->next;

    if (!text)
        return 0;
    arguments->next++;
    if (!arguments->only_positional && strcmp(text, "--") == 0) {
        arguments->only_positional = true;
        return next_argument(arguments, ret, err);
    }
    if (!arguments->only_positional && text[0] == '-' && text[1] != '\0')
        return read_flag(arguments, text, ret, err);
    *ret = (struct argument){.value = text};
    return 1;
}

/*
 * Sets the general flags, or all others. The config file is read in between: its name must be known
 * first, and flags override it. The general pass also collects the positional arguments.
 */
static int apply_flags(struct arguments arguments, bool general, struct cli *cli,
                       const char **excess, struct error *err)
{
    struct argument argument = {0};
    int r;

    while ((r = next_argument(&arguments, &argument, err)) > 0) {
        char where[80];

        if (!argument.is_flag && cli->command->takes_command) {
            cli->rest = arguments.next - 1;
            return 0;
        }
        if (!argument.is_flag && general) {
            if (cli->argument_count < ARRAY_SIZE(cli->arguments))
                cli->arguments[cli->argument_count++] = argument.value;
            else if (!*excess)
                *excess = argument.value;
        }
        if (!argument.is_flag || (argument.flag.group == OPTIONS_GENERAL) != general)
            continue;
        snprintf(where, sizeof(where), "%s%.*s", argument.name.len == 1 ? "-" : "--",
                 (int)argument.name.len, argument.name.data);
        r = options_set(&cli->options, &argument.flag, argument.value, OPTIONS_COMMAND_LINE, where,
                        err);
        if (r < 0)
            return r;
    }
    return r;
}

static int check_positional(const struct cli *cli, const char *excess, struct error *err)
{
    const struct cli_command *command = cli->command;

    if (!command->argument && cli->argument_count > 0)
        return error_set(err, -EINVAL,
                         "unexpected argument '%.80s': '%s' takes only flags; see 'wattribute %s "
                         "--help'",
                         cli->arguments[0], command->name, command->name);
    if (excess)
        return error_set(err, -EINVAL,
                         "unexpected argument '%.80s': '%s' takes at most %zu arguments; see "
                         "'wattribute %s --help'",
                         excess, command->name, ARRAY_SIZE(cli->arguments), command->name);
    if (command->takes_command
            ? !cli->rest || !cli->rest[0]
            : command->argument && (cli->argument_count == 0 || !*cli->arguments[0]))
        return error_set(err, -EINVAL, "'%s' needs an argument: write wattribute %s %s",
                         command->name, command->name, command->argument);
    return 0;
}

static int read_options(struct arguments arguments, char *const *env, struct cli *cli,
                        struct error *err)
{
    struct options *options = &cli->options;
    const char *excess = NULL;
    int r = apply_flags(arguments, /* general= */ true, cli, &excess, err);

    if (r < 0 || options->help || options->version)
        return r;
    r = check_positional(cli, excess, err);
    if (r == 0)
        r = options_read_environment(options, env, cli->command->groups, err);
    if (r == 0 && options->config_path)
        r = options_load_file(options->config_path, options, err);
    if (r == 0)
        r = apply_flags(arguments, /* general= */ false, cli, &excess, err);
    return r < 0 ? r : options_check(options, err);
}

static int unknown_command(const char *name, struct error *err)
{
    struct suggestion best = {0};

    for (size_t i = 0; i < CLI_COMMANDS; i++)
        if (cli_commands[i].groups)
            suggest_consider(&best, span_of(name), cli_commands[i].name);
    return error_set(err, -EINVAL, "unknown command '%.80s'%s%s%s; see 'wattribute --help'", name,
                     best.name ? " (did you mean '" : "", best.name ? best.name : "",
                     best.name ? "'?)" : "");
}

int cli_parse(int argc, char **argv, char *const *env, struct cli *ret, struct error *err)
{
    struct cli cli = {.is_named = argc > 1 && argv[1][0] != '-'};
    struct arguments arguments = {.next = argv + MIN(argc, cli.is_named ? 2 : 1)};
    int r;

    for (size_t i = 0; i < CLI_COMMANDS && !cli.command; i++)
        if (!cli.is_named || strcmp(argv[1], cli_commands[i].name) == 0)
            cli.command = &cli_commands[i];
    if (!cli.command)
        return unknown_command(argv[1], err);
    arguments.command = cli.command;
    r = options_init(&cli.options, err);
    if (r == 0 && cli.command->groups)
        r = read_options(arguments, env, &cli, err);
    if (r < 0)
        cli_done(&cli);
    else
        *ret = cli;
    return r;
}

void cli_done(struct cli *cli)
{
    if (!cli)
        return;
    options_done(&cli->options);
    *cli = (struct cli){0};
}
