/*
 * Child: another process of this program, started from our own executable, asked to end, and
 * started again when it dies, never more often than its back-off allows. Of ours it gets what it is
 * given, and nothing else: no other descriptor or variable. Signals are blocked until it says which
 * it ignores.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/macros.h"

/* Where a child finds its first descriptor, its end of the channel; the others follow. */
enum { CHILD_CHANNEL_FD = 3, CHILD_FDS_MAX = 32 };

/* One that lives this long is well, and has no back-off. */
#define CHILD_HEALTHY_US (10 * USEC_PER_SEC)

/* One that ends before that so often in a row is failing. */
enum { CHILD_FAILING_ENDS = 3 };

struct child {
    pid_t pid; /* 0: none runs */
    uint64_t started_us;
    uint64_t backoff_us;
    unsigned early_ends; /* in a row: it lived less than CHILD_HEALTHY_US */
};

struct child_program {
    char *const *argv; /* the second is the verb */
    char *const *env;
    const int *fds; /* stay the caller's; at most CHILD_FDS_MAX */
    size_t fd_count;
};

void child_init(struct child *child);

/* "NAME=value" as it stands in our own environment, for that of a child. NULL if it does not. */
char *child_variable(const char *name);

/* Starts it. *ret_restart_us is when the next start is due: after a failure. 0: none is. */
int child_start(struct child *child, const struct child_program *program, uint64_t now_us,
                uint64_t *ret_restart_us, struct error *err);

/* The same for one whose start failed before that: returns `code`, with a text. */
int child_fail(struct child *child, const char *verb, int code, uint64_t now_us,
               uint64_t *ret_restart_us, struct error *err);

/*
 * After SIGCHLD: true if it has ended; *ret_status is what waitpid said. A new start is then due,
 * at once or after the back-off.
 */
bool child_reap(struct child *child, uint64_t now_us, uint64_t *ret_restart_us, int *ret_status);

bool child_is_failing(const struct child *child);

/* "signal 9 (SIGKILL)" or "exit status 1". */
const char *child_describe_end(int status, char *text, size_t size_bytes);

/* Ends it by force. SIGCHLD follows. */
void child_kill(struct child *child);

/* Waits for one that was asked to end, by closing its channel; after `wait_us` ends it by force. */
void child_stop(struct child *child, uint64_t wait_us);

/* In the child, before its threads and its sandbox: when to stop is the collector's decision. It
 * then takes signals. */
void child_ignore_signals(void);
