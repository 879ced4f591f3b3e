/*
 * Overhead weights: by what the node's overhead is divided, for one window at a time.
 *
 * Either by the joules that each owner was booked at other meters in the window, which is how far
 * its accounts went since the window began, or by CPU time. A workload with a weight is kept in the
 * ledger; one that had to make room is unattributed. No I/O, no clock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "attribution/ledger/ledger.h"

struct overhead_weight {
    uint64_t serial; /* of the workload: another one weighs nothing yet */
    uint64_t begin_uj[TIER_COUNT];
    uint64_t of[TIER_COUNT];
};

struct overhead_weights {
    struct ledger *ledger;
    unsigned kinds;                /* of meter whose joules weigh, as bits; 0: CPU time does */
    struct overhead_weight *items; /* by the workload's index in the ledger */
    size_t slots;
    uint64_t begin_uj, begin_unowned_uj[UNOWNED_COUNT]; /* of all meters that weigh */
    uint64_t lost_us;                                   /* CPU time of workloads that are gone */
    uint64_t unowned[UNOWNED_COUNT];
};

void overhead_weights_init(struct overhead_weights *weights, struct ledger *ledger);
void overhead_weights_done(struct overhead_weights *weights);

/* Begins a window: nobody weighs anything. 0 or -ENOMEM. */
int overhead_weights_begin(struct overhead_weights *weights, unsigned kinds);

/* Ends it without a measurement. */
void overhead_weights_end(struct overhead_weights *weights);

/* 0 or -ENOMEM; then the workload weighs less than it should. */
int overhead_weights_add_cpu_time(struct overhead_weights *weights, uint32_t workload,
                                  uint64_t cpu_us);

/* Sets `unowned`, and `of` for each workload: a free slot weighs nothing. 0 or -ENOMEM. */
int overhead_weights_measure(struct overhead_weights *weights);
