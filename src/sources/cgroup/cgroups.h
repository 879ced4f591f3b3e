/* The usage of all workloads of the node, from their cgroups, as one sample every few seconds. */
#pragma once

#include "core/arena.h"
#include "model/sample.h"
#include "model/usage.h"
#include "sources/resctrl/resctrl.h"
#include "sources/source.h"

extern const struct source_ops cgroups_source;

enum { BLOCK_NAMES_MAX = 64 };

/* Names of block devices: "8:0" is "sda". Zeroed, it is empty. */
struct block_names {
    struct {
        uint32_t major, minor;
        char name[USAGE_DEVICE_BYTES];
    } items[BLOCK_NAMES_MAX];
    size_t count; /* set it to 0 now and then: a number may get another device */
};

/* The device's name in the host's sysfs, or its number where it has none. */
void block_names_find(struct block_names *names, const struct host *host, uint32_t major,
                      uint32_t minor, char ret_name[static USAGE_DEVICE_BYTES]);

/*
 * usage_delta.c: what each workload did since its cgroup was last reported. Pure.
 *
 * Counters of a cgroup include everything below it. Where a workload is inside another (a container
 * in a user's slice), its usage is subtracted from the one around it, so that the sum over all is
 * what was done. Throttling, pressure, limits and failures are no such sums: they stay what the
 * kernel reports for the whole cgroup.
 */

/*
 * Writes into `did` (room for `item_count`) how far the counters of each item moved since `before`,
 * and what it holds now; devices are in the arena. A counter that went back counts nothing; an item
 * that was never reported counts from its beginning. 0 or -ENOMEM.
 */
int usage_delta_compute(const struct usage_owner *items, size_t item_count, struct arena *arena,
                        struct usage *did);

/* The weights by which energy is divided: CPU time since the last report, and memory, resident or,
 * if that is unknown, all. */
uint64_t usage_delta_cpu_us(const struct usage_owner *item, const struct usage *did);
uint64_t usage_memory_bytes(const struct usage *usage);

/* Where not every workload can be read, what is left of the machine is not `system` alone: adds it
 * as `other` to the workloads, which must have room for one more. */
void usage_others_add(struct sample_workload *workloads, struct sample_usage *usage);

/* Sets the memory traffic of each workload, matched with resctrl's groups by container, and of all
 * others together; nothing if no workload has a group. `workloads` are those of the items. Call it
 * after a resctrl_read that returned true. */
void usage_traffic_assign(const struct resctrl *resctrl, const struct usage_owner *items,
                          struct sample_workload *workloads, struct sample_usage *usage);
