/*
 * The rest of the node: what its whole draws beyond packages, memory and GPUs. Fans, disks,
 * regulators, the loss of the power supplies; and whatever of the others has no meter.
 *
 * One meter of the whole is taken (a BMC, say). All counts are noted when it is read, because it is
 * the slowest of them; the difference of two such notes, at least 30 s apart, is a window. A window
 * in which any count broke is not booked at all: the rest has no counter of its own that could say
 * what it missed. node_overhead_total.c chooses, node_overhead.c measures, node_overhead_divide.c
 * decides who pays. No I/O, no clock.
 */
#pragma once

#include "attribution/gpu/gpu.h"
#include "attribution/gpu/idle.h"
#include "attribution/ledger/ledger.h"
#include "attribution/node/gpu_inclusion.h"
#include "attribution/node/node.h"
#include "attribution/node/overhead_weights.h"
#include "attribution/share.h"
#include "model/policy.h"
#include "model/sample.h"

struct node_overhead_options {
    enum node_overhead_policy policy;
    enum includes_gpus includes_gpus;
};

/* A kind of meter that measures the whole node. */
struct node_overhead_total {
    const char *source;
    enum meter_kind kind;
    enum includes_gpus includes_gpus; /* AUTO: that differs */
    bool is_sum;                      /* of all there are; else there must be only one */
};

/* All counts at one time. Sums may wrap around; their differences are right all the same. */
struct node_overhead_reading {
    uint64_t t_us;
    uint64_t total_uj, parts_uj, gpus_uj;
    bool has_package;
    bool gpus_known;
    size_t meter_count; /* that were added up, without GPUs */
    uint64_t lapses;    /* of their counts */
    uint64_t gpu_resets;
};

struct node_overhead {
    struct node_overhead_options options;
    struct ledger *ledger;
    struct node *node;
    struct gpu *const *gpus; /* SAMPLE_GPU_MAX, or NULL where there is none */
    uint64_t window_us;      /* the shortest */
    uint64_t late_us;        /* a count that is older is not of the same time */

    uint64_t first_report_us;                /* 0: there was none yet */
    const struct node_overhead_total *total; /* NULL: not chosen yet; see node_overhead_total.c */
    const char *total_id;                    /* the node's own text; of a sum, that of the last */
    const char *meter_id;                    /* of the rest */
    uint32_t meter; /* in the ledger; LEDGER_NONE: nothing can be booked yet */
    bool includes_gpus;
    bool learns_coverage;
    struct gpu_inclusion coverage;

    bool is_open; /* a window */
    struct node_overhead_reading start, latest;
    uint64_t busy_us, capacity_us; /* of the CPUs in it */
    struct overhead_weights weights;

    uint64_t deficit_uj; /* by which the parts were more than the whole: later windows pay it */
    bool mismatch;       /* it grew too large to be a matter of time */
    struct idle_levels idle;

    /* Scratch, kept so that a steady state allocates nothing. */
    struct share *shares;
    struct booking *bookings;
    size_t booking_count, scratch_capacity;
};

void node_overhead_init(struct node_overhead *overhead, const struct node_overhead_options *options,
                        uint64_t interval_us, struct node *node, struct gpu *const *gpus);
void node_overhead_done(struct node_overhead *overhead);

/* Takes a sample that is of no GPU, after the node has taken it. 0 or -ENOMEM; then the books still
 * balance. */
int node_overhead_ingest(struct node_overhead *overhead, const struct sample *sample);

/* Says that a GPU came or went. */
void node_overhead_gpu_changed(struct node_overhead *overhead);

/* The functions below are used by node_overhead.c. */

/* Takes the best meter of the whole that there is, once all had time to answer. In
 * node_overhead_total.c. */
void node_overhead_choose_total(struct node_overhead *overhead, uint64_t now_us);

/* Is this the meter that was taken, or one of those that add up to it? */
bool node_overhead_is_whole(const struct node_overhead *overhead, const struct node_meter *meter);

/* Is this reading the one that completes the whole? Where several add up to it, the last of them.
 */
bool node_overhead_completes_whole(const struct node_overhead *overhead,
                                   const struct sample_meter *reading);

/* The kinds of meter whose joules are to be weighed for a window. */
unsigned node_overhead_weighed_kinds(const struct node_overhead *overhead);

/* Notes what workloads did since the last report. 0 or -ENOMEM. */
int node_overhead_weigh_usage(struct node_overhead *overhead, const struct sample_usage *usage);

/* Books the energy of the window. */
int node_overhead_divide(struct node_overhead *overhead, uint64_t energy_uj);
