/*
 * Process events of the kernel: identifies processes that live shorter than the driver's polling
 * interval, and which the driver names only after their end (accounting, utilisation samples).
 *
 * A thread listens to the process events connector of netlink, reads each new process at most
 * GATHER_MS after its start, and remembers it for ten seconds. Where the kernel does not permit it,
 * such processes stay unknown.
 */
#pragma once

#include <stdint.h>

#include "core/arena.h"
#include "core/clock.h"
#include "host/host.h"
#include "model/sample.h"

struct process_events;

/*
 * The host and the clock stay the caller's and must outlive the events. 0, or -errno where there
 * are none: -EPERM outside the initial namespaces, and before Linux 6.6 without CAP_NET_ADMIN;
 * -ECONNREFUSED in another network namespace; -EPROTONOSUPPORT in a kernel without a connector.
 */
int process_events_start(const struct host *host, const struct clock *clock,
                         struct process_events **ret_events);

/* Waits for the thread, which ends within what reading one process takes. Accepts NULL. */
void process_events_stop(struct process_events *events);

/* With texts in the arena; from any thread. 0, -ESRCH: unknown, or -ENOMEM. Accepts NULL, which
 * knows no process. */
int process_events_find(struct process_events *events, uint32_t pid,
                        struct sample_process *ret_process, struct arena *arena);

/* Processes that were not read: beyond the rate, or dropped by the kernel. */
uint64_t process_events_lost(struct process_events *events);
