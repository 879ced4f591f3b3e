/* Completion scripts, written from the tables of --help: one file for each shell. */
#pragma once

#include "cli/cli.h"

/* A template in which lines such as "@flags" stand for what is written from the tables. */
struct completion_shell {
    const char *name, *template;
    struct {
        const char *line;
        void (*write)(struct buffer *out);
    } parts[3];
};
extern const struct completion_shell completion_bash, completion_fish, completion_zsh;

enum completion_kind {
    COMPLETION_NONE,    /* a switch, or a verb without arguments */
    COMPLETION_UNKNOWN, /* a value that nobody can guess */
    COMPLETION_WORDS,
    COMPLETION_FILE,
    COMPLETION_DIRECTORY,
    COMPLETION_COMMAND, /* a program and its arguments */
};

enum completion_kind completion_of_flag(const struct options_flag *flag);
enum completion_kind completion_of_argument(const struct cli_command *command);

/* With a blank after each; those that only begin a value end in '='. */
void completion_put_words(const struct options_flag *flag, struct buffer *out);
/* "a b " of "a|b". */
void completion_put_argument(const struct cli_command *command, struct buffer *out);

/* A switch that --no- turns off. */
bool completion_is_negatable(const struct options_flag *flag);

bool completion_has_flag(const struct cli_command *command, const struct options_flag *flag);

/* `text` with a backslash before each character of `special`, and `quote` for each "'". */
void completion_put_quoted(const char *text, const char *special, const char *quote,
                           struct buffer *out);
