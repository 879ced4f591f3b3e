/*
 * What each workload did since its cgroup was last reported. Pure.
 *
 * Counters of a cgroup contain all that is below it. Where a workload is inside of another (a
 * container in a user's slice), what it did and holds is taken from the one around it, so that the
 * sum over all is what was done. Throttling, pressure, limits and failures are no such sums: they
 * stay what the kernel says of the whole cgroup.
 */
#pragma once

#include <stddef.h>

#include "core/arena.h"
#include "model/sample.h"
#include "model/usage.h"
#include "sources/resctrl/resctrl.h"

/*
 * Writes into `did` (room for `item_count`) how far the counters of each item went since `before`,
 * and what it holds now; their devices are in the arena. A counter that went back counts nothing.
 * What was never reported counts from its beginning. 0 or -ENOMEM.
 */
int usage_delta_take(const struct usage_owner *items, size_t item_count, struct arena *arena,
                     struct usage *did);

/* By what energy is divided: CPU time since the last report, and the memory that is held: resident,
 * or all if that is not known. */
uint64_t usage_delta_cpu_us(const struct usage_owner *item, const struct usage *did);
uint64_t usage_memory_bytes(const struct usage *usage);

/* Whose memory traffic it was: the groups of resctrl, matched with workloads by container. After a
 * reading that returned true. Writes the traffic of `usage->count` workloads, which are those of
 * the items, and of the others together; nothing if nobody has a group. */
void usage_traffic_take(const struct resctrl *resctrl, const struct usage_owner *items,
                        struct sample_workload *workloads, struct sample_usage *usage);
