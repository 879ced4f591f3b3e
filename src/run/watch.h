/*
 * Watches the command until it ends: passes signals on, stops with it, adopts and reaps its
 * orphans.
 *
 * A signal of the terminal reaches the command without us, as it is in our process group. One that
 * somebody sent to this process alone is passed on.
 */
#pragma once

#include <stdint.h>

#include "core/error.h"
#include "run/command.h"
#include "run/family.h"

struct watch {
    int signal_fd;
    const struct command *command;
    struct family *family;
    int interrupted_by; /* the signal to end that reached this process; 0: none */
    int wake_fd;        /* readable when `tick` has something to do; -1 */
    /* Called when `wake_fd` is readable, and when it is due; returns when, by the monotonic clock.
     */
    uint64_t (*tick)(void *context);
    /* Before this process stops with the command, so that it leaves no line on the terminal. */
    void (*pause)(void *context);
    void *context;
};

/* Blocks the signals that are passed on, and ignores others that would end this process. The
 * descriptor of struct watch, or -errno. */
int watch_open_signals(void);

/* Returns the status of waitpid. The command was started. */
int watch_command(struct watch *watch);
