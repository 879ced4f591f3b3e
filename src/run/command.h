/*
 * The command of `wattribute run`. Its process is forked before this one changes anything that it
 * could see (signals, limits, privileges, threads), and waits until it may start.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "core/error.h"

struct command {
    pid_t pid; /* a child of ours; 0: none */
    int fd;    /* to let it go, and to hear why it cannot; -1 */
};

/* `argv` ends with NULL and must stay. 0 or -errno. */
int command_prepare(char *const *argv, struct command *ret_command, struct error *err);

/* Lets it run. 0: it does; else -errno of execvp, and its process ends. */
int command_start(struct command *command);

/* Ends one that waits; one that runs goes on. It is not reaped here. */
void command_cancel(struct command *command);

/* What a shell says of a program that cannot be run: 127, there is none; 126, it may not be run. */
int command_exec_status(int error);

/* Of the status of wait: the exit status, or 128 + the signal. */
int command_exit_status(int status);
