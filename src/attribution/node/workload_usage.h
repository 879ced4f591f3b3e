/*
 * What the workloads of the node's cgroups use, by their index in the ledger. Counters continue
 * from one cgroup of a workload to the next (a unit that is restarted) and are kept for the
 * retention after the last one has ended; gauges end with it.
 */
#pragma once

#include "attribution/ledger/ledger.h"
#include "model/sample.h"
#include "model/usage.h"

/* What energy can be divided by. */
enum usage_weight {
    USAGE_WEIGHT_CPU_TIME,         /* since the last report, in us */
    USAGE_WEIGHT_MEMORY,           /* held, in bytes */
    USAGE_WEIGHT_TRAFFIC,          /* bytes known to be moved */
    USAGE_WEIGHT_UNCOUNTED_MEMORY, /* held by cgroups whose traffic is not counted */
    USAGE_WEIGHTS,
};

struct workload_usage {
    uint64_t round; /* the last report that had it; 0: a free slot */
    uint64_t seen_us;
    uint64_t weights[USAGE_WEIGHTS];
    struct usage usage;  /* counters: since it is known */
    struct usage before; /* the counters of the previous run, until the first report that has it */
    bool is_resumed;
};

struct workload_usages {
    struct ledger *ledger;
    struct workload_usage *items;
    size_t slots;
    uint64_t round; /* reports so far */
};

void workload_usages_done(struct workload_usages *usages);

/* Takes a report. What no workload used is `system`. 0 or -ENOMEM; then workloads are missing. */
int workload_usages_update(struct workload_usages *usages, uint64_t now_us,
                           const struct sample_usage *report);

/* Where no report will come: forgets what was reported longer than the retention ago. */
void workload_usages_expire(struct workload_usages *usages, uint64_t now_us);

/* Packs the counters, or unpacks them after those of the ledger. The first report of a workload has
 * all that its cgroups ever counted: its counters go on from that, or from those of the previous
 * run where these are higher, as cgroups of it had ended. 0 or -ENOMEM. */
void workload_usages_code(struct workload_usages *usages, struct coder *coder);

/* NULL: it has no cgroup, and had none within the retention. */
static inline const struct workload_usage *workload_usages_find(
    const struct workload_usages *usages, uint32_t workload)
{
    return workload < usages->slots && usages->items[workload].round > 0 ? &usages->items[workload]
                                                                         : NULL;
}

/* Did the last report have it? */
static inline bool workload_usages_has(const struct workload_usages *usages, uint32_t workload)
{
    return usages->items[workload].round == usages->round;
}
