/*
 * Child: another process of this program, started from our own executable with its job and a
 * channel, asked to end by closing that, and started again when it dies, never more often than its
 * back-off allows. Of ours it gets what it is given, and nothing else: no other descriptor or
 * variable. Signals are blocked until it says which it ignores.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/macros.h"

/* Where a child finds its end of the channel, its job (job.h), and what else it is given. */
enum { CHILD_CHANNEL_FD = 3, CHILD_JOB_FD = 4, CHILD_MORE_FD = 5, CHILD_MORE_MAX = 16 };

/* One that lives this long is well, and has no back-off. */
#define CHILD_HEALTHY_US (10 * USEC_PER_SEC)

/* One that ends before that so often in a row is failing. */
enum { CHILD_FAILING_ENDS = 3 };

struct child {
    const char *verb;
    pid_t pid;      /* 0: none runs */
    int channel_fd; /* our end; -1: there is none, or it was asked to end */
    uint64_t starts;
    uint64_t restart_us; /* when the next start is due; 0: none is */
    uint64_t started_us, backoff_us;
    unsigned early_ends; /* in a row: it lived less than CHILD_HEALTHY_US */
    bool is_replaced;    /* it was asked to end so that another can follow */
};

void child_init(struct child *child, const char *verb);

/* Starts it. The descriptors stay the caller's; `fds` has CHILD_MORE_MAX at most. After a failure
 * another start is due. */
int child_start(struct child *child, int job_fd, const int *fds, size_t fd_count, uint64_t now_us,
                struct error *err);

/* The same for one whose start failed before that: returns `code`, with a text. */
int child_fail(struct child *child, int code, uint64_t now_us, struct error *err);

/*
 * After SIGCHLD: true if it has ended; *ret_status is what waitpid said. A new start is then due,
 * at once or after the back-off.
 */
bool child_reap(struct child *child, uint64_t now_us, int *ret_status);

bool child_is_failing(const struct child *child);

/* "signal 9 (SIGKILL)" or "exit status 1". */
const char *child_describe_end(int status, char *text, size_t size_bytes);

/* Asks it to end, so that another one follows at once. */
void child_replace(struct child *child);

/* Ends it by force. SIGCHLD follows. */
void child_kill(struct child *child);

/* Asks it to end and waits; after `wait_us` ends it by force. */
void child_stop(struct child *child, uint64_t wait_us);

/* In the child, before its threads and its sandbox: when to stop is the collector's decision. It
 * then takes signals. */
void child_ignore_signals(void);
