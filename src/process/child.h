/*
 * Child: another process of this program, started from our own executable with its job and a
 * channel. It ends when the channel is closed, and is started again when it dies, with a back-off.
 * It inherits nothing else: no other descriptor, no environment. Signals are blocked until it calls
 * child_ignore_signals.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/error.h"
#include "core/macros.h"
#include "process/channel.h"

/* Descriptors of a child: its end of the channel, its job (job.h), and further ones. */
enum { CHILD_CHANNEL_FD = 3, CHILD_JOB_FD = 4, CHILD_MORE_FD = 5, CHILD_MORE_MAX = 16 };

/* One that lives this long is healthy, and has no back-off. */
#define CHILD_HEALTHY_US (10 * USEC_PER_SEC)

/* One that ends earlier so often in a row is failing. */
enum { CHILD_FAILING_ENDS = 3 };

/*
 * A child that leaves this many pings unanswered hangs, and is killed. One ping is sent each
 * period, so it has at least 15 s of a collector that runs: time in which the collector is stopped,
 * or the machine suspended, passes no period. A machine under load delays an answer by seconds, not
 * by that; and one that is killed in vain costs a moment without scrapes, or some news of a
 * fetcher.
 *
 * A child that stops is noticed after four periods at most, and the next one starts at once.
 */
enum { CHILD_PINGS_MAX = 3 };
#define CHILD_PING_US (5 * USEC_PER_SEC)

struct child {
    const char *verb;
    const char *label; /* one more argument, for ps alone; NULL: none */
    pid_t pid;         /* 0: none runs */
    int channel_fd;    /* our end; -1: none runs, or it is to end */
    uint64_t starts, hangs;
    uint64_t pings, pongs; /* the number of the last ping, and of the last that came back */
    uint64_t restart_us;   /* when the next start is due; UINT64_MAX: none is */
    uint64_t started_us, backoff_us;
    unsigned early_ends; /* in a row: it lived less than CHILD_HEALTHY_US */
    bool is_replaced;    /* it is to end so that another can follow */
    bool has_hung;       /* and is killed */
};

void child_init(struct child *child, const char *verb);

/* Starts it. The descriptors stay the caller's; `fds` has CHILD_MORE_MAX at most. If `job_fd` is
 * -errno, it could not be made. After a failure another start is due. */
int child_start(struct child *child, int job_fd, const int *fds, size_t fd_count, uint64_t now_us,
                struct error *err);

/* Reports the events of its channel to this epoll. A child that cannot be watched is killed, so
 * that another one follows. 0 or -errno. */
int child_watch(struct child *child, int epoll_fd, uint32_t event, struct error *err);

/* To be called once each CHILD_PING_US. 0, -ETIMEDOUT (it hung and was killed) or -EPERM (it hangs
 * and cannot be killed: CAP_KILL is missing). */
int child_ping(struct child *child);

/* A ping came back. 0, or -EPROTO if it is none that was sent, or came back before. */
int child_note_pong(struct child *child, const struct channel_ping *ping);

/* After SIGCHLD: true if it has ended, with the status of waitpid. A new start is then due, at once
 * or after the back-off. */
bool child_reap(struct child *child, uint64_t now_us, int *ret_status);

bool child_is_failing(const struct child *child);

/* "signal 9 (SIGKILL)" or "exit status 1". */
const char *child_describe_end(int status, char *text, size_t size_bytes);

/* Closes its channel, so that it ends and another one follows at once. */
void child_replace(struct child *child);

/* Closes its channel and kills it. SIGCHLD follows. 0 or -errno. */
int child_kill(struct child *child);

/* Closes its channel and waits; kills it after `wait_us`. */
void child_stop(struct child *child, uint64_t wait_us);

/* In the child, before its threads and its sandbox: the collector decides when it stops. Unblocks
 * signals. */
void child_ignore_signals(void);
