/*
 * The command line: which verb, with which options. Also the text of --help and --version, which is
 * generated from the same tables.
 */
#pragma once

#include "config/options.h"
#include "core/buffer.h"
#include "core/error.h"

enum cli_verb {
    CLI_ANY = -1, /* for cli_help: the whole program */
    CLI_SERVE,
    CLI_REPLAY,
    CLI_RECORD,
    CLI_CHECK,
    CLI_SERVER,  /* internal: how the collector starts its server */
    CLI_FETCHER, /* likewise, those that ask the network */
    CLI_HELP,
    CLI_VERSION,
};

/* A verb, for parsing and for --help. */
struct cli_command {
    enum cli_verb verb;
    const char *name;
    const char *argument; /* the one that it needs; NULL: none */
    const char *help;
    const char *examples; /* lines */
    unsigned groups;      /* of flags that it accepts: bits 1 << enum options_group */
    bool hidden;          /* from --help: internal, and takes no arguments */
};

extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;

struct cli {
    enum cli_verb verb;
    struct options options;
    enum cli_verb help_verb; /* with CLI_HELP: about what */
    const char *trace_path;  /* with CLI_REPLAY; points into argv */
};

/*
 * Reads the command line, the environment (`env` is like environ; may be NULL) and the file that
 * --config.file names; may block on that file. --help and --version win over everything that can be
 * wrong with values. On failure there is nothing to free.
 */
int cli_parse(int argc, char **argv, char *const *env, struct cli *ret, struct error *err);

/* Accepts NULL and a zeroed struct. */
void cli_done(struct cli *cli);

/* The caller checks buffer_failed. */
void cli_help(enum cli_verb verb, struct buffer *out);
void cli_version(struct buffer *out);
