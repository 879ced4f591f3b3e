/*
 * Members: the workloads that the node's cgroups are, by their index in the ledger, and what they
 * use.
 *
 * Counters go on from one cgroup of a workload to the next (a unit that is restarted) and are kept
 * for the retention after the last one has ended; what is held now ends with it. No I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution/ledger/ledger.h"
#include "model/sample.h"
#include "model/usage.h"

struct workload_usage {
    bool is_joined;  /* in the ledger; else a free slot */
    bool is_present; /* the last report named it */
    uint64_t round;  /* the last report that did */
    uint64_t seen_us;
    uint64_t cpu_us;          /* in the time of the report */
    uint64_t memory_bytes;    /* that it holds */
    uint64_t traffic_bytes;   /* that are known to be moved */
    uint64_t uncounted_bytes; /* of the memory: nobody counts what moves to and from it */
    struct usage usage;       /* counters: all that was counted */
};

struct workload_usages {
    struct ledger *ledger;
    struct workload_usage *items;
    size_t slots;
    uint64_t round;
};

void workload_usages_init(struct workload_usages *members, struct ledger *ledger);
void workload_usages_done(struct workload_usages *members);

/* A report: workload_usages_begin, all workloads, the whole machine, workload_usages_end. 0 or
 * -ENOMEM; then somebody is missing. */
void workload_usages_begin(struct workload_usages *members);
int workload_usages_note(struct workload_usages *members, uint64_t now_us,
                         const struct sample_workload *workload);

/* What the machine did that no workload did. */
int workload_usages_note_system(struct workload_usages *members, uint64_t now_us,
                                const struct sample_usage *usage);
void workload_usages_end(struct workload_usages *members, uint64_t now_us);

/* NULL: it is none. */
const struct workload_usage *workload_usages_find(const struct workload_usages *members,
                                                  uint32_t workload);
