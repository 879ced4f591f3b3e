/* The command line: verbs, their options, and what they print. */
#pragma once

#include "config/options.h"
#include "core/buffer.h"
#include "core/error.h"

/* 0: success; 1: failure (bad trace, full disk); 2: unusable flag, address or file. `check` has
 * more, see enum report_outcome. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct cli;

/* A verb, for parsing and for --help. */
struct cli_command {
    const char *name;
    /* One of them; they return the exit status. */
    int (*run)(const struct cli *cli);
    int (*run_child)(void); /* internal: takes no arguments */
    const char *argument;   /* takes at least one, of this name, or of these ("a|b"); NULL: none */
    bool takes_command;     /* the first argument and all after it are a command of its own */
    const char *help;
    const char *examples; /* lines */
    const char *statuses; /* its exit statuses, with "; " between them; NULL: CLI_STATUSES */
    unsigned groups;      /* of flags: bits 1 << enum options_group */
};

#define CLI_STATUSES "0 success; 1 failure; 2 unusable flag, address or file"

/* The first is the default. */
enum { CLI_COMMANDS = 12 };
extern const struct cli_command cli_commands[CLI_COMMANDS];

enum { CLI_ARGUMENTS_MAX = 64 };

struct cli {
    const struct cli_command *command;
    bool is_named; /* it was on the command line */
    struct options options;
    const char *arguments[CLI_ARGUMENTS_MAX]; /* point into argv */
    size_t argument_count;
    char *const *rest; /* of a verb that takes a command: the command, up to a NULL */
};

/*
 * Reads the command line, the environment (`env` is like environ; may be NULL) and the file that
 * --config.file names; may block on that file. --help and --version win over any bad value. On
 * failure there is nothing to free.
 */
int cli_parse(int argc, char **argv, char *const *env, struct cli *ret, struct error *err);

/* Accepts NULL and a zeroed struct. */
void cli_done(struct cli *cli);

/* Runs the verb, or prints help or version. Returns the exit status. */
int cli_run(const struct cli *cli);

/* Gives up the privileges that this verb does not need, before the first thread and after ports
 * below 1024 are bound. 0, or -errno with what it could not give up. `err` may be NULL. */
int cli_confine(const struct cli *cli, struct error *err);

int verb_serve(const struct cli *cli);
int verb_replay(const struct cli *cli);
int verb_record(const struct cli *cli);
int verb_check(const struct cli *cli);
int verb_run(const struct cli *cli);
int verb_diff(const struct cli *cli);
int verb_top(const struct cli *cli);
int verb_report(const struct cli *cli);
int verb_completion(const struct cli *cli);

/* About one command, or all with NULL. The caller checks buffer_failed. */
void cli_help(const struct cli_command *command, struct buffer *out);
void cli_version(struct buffer *out);

/* The headings of --help. A group without one continues the list before it. */
extern const char *const cli_group_titles[OPTIONS_GROUP_COUNT];

/* "wattribute replay [flags] TRACE..." */
enum { CLI_USAGE_BYTES = 96 };
void cli_describe_usage(const struct cli_command *command, char text[CLI_USAGE_BYTES]);

/* What it is for, which values it allows, its default. */
enum { CLI_DESCRIPTION_BYTES = 1024 };
void cli_describe_flag(const struct options_flag *flag, char *text, size_t size_bytes);

/* To standard error; bytes that would control a terminal become '?'. */
void cli_print_error(const struct error *err);

/* Is standard output a terminal that shows colours, and does nobody object (NO_COLOR)? */
bool cli_is_in_colour(void);

/* Writes to standard output; returns the exit status. */
int cli_print(const struct buffer *text);

/* Prints the ledger as JSON, with the names that the workloads have at the end; returns the exit
 * status. */
struct pipeline;
struct recorded_names;
int cli_print_ledger(struct pipeline *pipeline, struct recorded_names *names);

/* EXIT_USAGE if the named file cannot be used, EXIT_FAILED if its contents are bad. */
int cli_exit_status(int error);

/* The part of `wattribute check` about processes and names. Queries every runtime once, and may
 * block for some seconds. */
struct host;
struct report;
void check_identity(struct report *report, const struct host *host, const struct options *options);

/* The part about processes that share a board, which it measures for some seconds if there are any.
 * False: a thread hangs, so that the program may only end by _exit(). */
bool check_shared(struct report *report, const struct host *host, const struct options *options);
