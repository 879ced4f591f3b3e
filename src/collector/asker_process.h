/* The asker as the collector sees it: a child with its arguments, and our end of its channel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/asker_flags.h"
#include "core/error.h"
#include "core/log.h"
#include "process/child.h"

struct asker_process_options {
    const struct asker_flags *flags; /* must outlive the process */
    enum log_level log_level;
    enum log_format log_format;
};

struct asker_process {
    struct asker_process_options options;
    struct child child;
    int fd;              /* our end of the channel; -1: none */
    bool has_run;        /* the next one asks again what this one did */
    bool is_ending;      /* it was asked to; another one follows */
    uint64_t restart_us; /* when the next start is due; 0: none is */
};

void asker_process_init(struct asker_process *asker, const struct asker_process_options *options);

/* Starts it with these keys (asker_keys_seal), which stay the caller's. On failure it is due again
 * after the back-off. */
int asker_process_start(struct asker_process *asker, int keys_fd, uint64_t now_us,
                        struct error *err);

/*
 * After SIGCHLD: true if the asker has ended; *ret_status is what waitpid said. A new start is then
 * due, at once or after the back-off.
 */
bool asker_process_reap(struct asker_process *asker, uint64_t now_us, int *ret_status);

/* It says nothing any more, or nothing that makes sense. */
void asker_process_close(struct asker_process *asker);

/*
 * Closes the channel, which is how an asker is asked to end, and does not wait: SIGCHLD follows.
 * The next one asks as soon as the first did, at random within a minute or the interval; so however
 * often this is called, nobody is asked much more often than that.
 */
void asker_process_replace(struct asker_process *asker);

/* Ends it by force: it broke the protocol. SIGCHLD follows. */
void asker_process_kill(struct asker_process *asker);

/* Closes the channel and waits; after `wait_us` by force:
 * one that waits for an answer does not notice. */
void asker_process_stop(struct asker_process *asker, uint64_t wait_us);
