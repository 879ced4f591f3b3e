/*
 * The kernel's process events: who a process was that lived shorter than the driver is polled, and
 * is only named after its end (by accounting, or by a utilisation sample).
 *
 * A thread listens to the process events connector of netlink and reads who each new process is,
 * at most GATHER_MS after it began; that is remembered for ten seconds. Where the kernel does not
 * permit it there are no events, and such processes stay unknown.
 */
#pragma once

#include <stdint.h>

#include "core/arena.h"
#include "core/clock.h"
#include "host/host.h"
#include "model/sample.h"

struct process_events;

struct process_events_stats {
    uint64_t read;     /* processes that were still there to be read */
    uint64_t gone;     /* processes that were not */
    uint64_t lost;     /* processes beyond the rate: not read */
    uint64_t overruns; /* the kernel dropped events: its queue for us was full */
    uint64_t pauses;   /* there were so many that nobody listened for a while */
};

/*
 * The host and the clock stay the caller's and must outlive the events. 0, or -errno where there
 * are none: -EPERM outside of the initial namespaces, and before Linux 6.6 without CAP_NET_ADMIN;
 * -ECONNREFUSED in another network namespace; -EPROTONOSUPPORT in a kernel without a connector.
 */
int process_events_start(const struct host *host, const struct clock *clock,
                         struct process_events **ret_events);

/* Waits for the thread, which ends within what reading one process takes. Accepts NULL. */
void process_events_stop(struct process_events *events);

/* With texts in the arena; from any thread. 0, -ESRCH: nothing is known of this pid, or -ENOMEM.
 * Accepts NULL: then nothing is known of anybody. */
int process_events_find(struct process_events *events, uint32_t pid,
                        struct sample_process *ret_process, struct arena *arena);

void process_events_get_stats(struct process_events *events,
                              struct process_events_stats *ret_stats);
