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

struct member {
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

struct members {
    struct ledger *ledger;
    struct member *items;
    size_t slots;
    uint64_t round;
};

void members_init(struct members *members, struct ledger *ledger);
void members_done(struct members *members);

/* A report: members_begin, all workloads, the whole machine, members_end. 0 or -ENOMEM; then
 * somebody is missing. */
void members_begin(struct members *members);
int members_note(struct members *members, uint64_t now_us, const struct sample_workload *workload);

/* What the machine did that no workload did. */
int members_note_system(struct members *members, uint64_t now_us, const struct sample_usage *usage);
void members_end(struct members *members, uint64_t now_us);

/* NULL: it is none. */
const struct member *members_find(const struct members *members, uint32_t workload);
