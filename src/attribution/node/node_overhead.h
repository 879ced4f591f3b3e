/*
 * Node overhead: what the whole node draws beyond packages, memory and GPUs. All counters are taken
 * when the meter of the whole (a BMC, say) is read, as it is the slowest; two such readings, at
 * least 30 s apart, make a window. A window in which any counter broke is not booked: the overhead
 * has no counter to tell what was missed.
 */
#pragma once

#include "attribution/gpu/gpu.h"
#include "attribution/node/gpu_inclusion.h"
#include "attribution/node/node.h"
#include "model/policy.h"

struct node_overhead_options {
    enum node_overhead_policy policy;
    enum includes_gpus includes_gpus;
};

/* All counters at one time. Sums may wrap around; their differences are right nevertheless. */
struct node_overhead_reading {
    uint64_t t_us;
    uint64_t total_uj, parts_uj, gpus_uj;
    bool has_package;
    bool gpus_known;
    size_t meter_count; /* of the sums, without GPUs */
    uint64_t lapses;    /* of these meters */
    uint64_t gpu_resets;
};

/* What a workload weighs in a window. */
struct node_overhead_weight {
    uint64_t serial; /* of the workload that has the slot */
    uint64_t begin_uj[TIER_COUNT];
    uint64_t cpu_us;
};

struct node_overhead {
    struct node_overhead_options options;
    struct ledger *ledger;
    struct node *node;
    struct gpu *const *gpus; /* SAMPLE_GPU_MAX, NULL where there is none */
    uint64_t window_us;      /* minimum */
    uint64_t late_us;        /* older counters are not of the same time */

    uint64_t first_report_us;                      /* 0: none yet */
    const struct node_overhead_total_meter *total; /* NULL: not chosen yet */
    const char *source;                            /* of its meter, a literal */
    const char *total_id; /* the node's own text; of a sum, that of the last meter */
    uint32_t meter;       /* in the ledger; LEDGER_NONE: nothing to book yet */
    bool includes_gpus;
    bool learns_inclusion;
    struct gpu_inclusion inclusion;

    bool is_open; /* a window */
    struct node_overhead_reading start, latest;
    uint64_t busy_us, capacity_us; /* of the CPUs in it */

    /* Weights of a window: the energy booked at meters of these kinds (bits) in it, which is how
     * far the accounts advance; for 0, CPU time. */
    unsigned weighed_kinds;
    struct node_overhead_weight *weights; /* by the workload's index in the ledger */
    size_t weight_slots;
    uint64_t begin_uj, begin_unowned_uj[UNOWNED_COUNT]; /* of all these meters */
    uint64_t lost_us;                                   /* CPU time of workloads that are gone */

    /* Of the previous run, until the same meter is chosen again. */
    struct node_overhead_memory {
        char source[16]; /* "": nothing is known */
        struct idle_levels idle;
        struct gpu_inclusion inclusion;
        uint64_t deficit_uj;
    } before;

    uint64_t deficit_uj; /* the parts exceeded the whole by this: later windows are less by it */
    bool mismatch;       /* it is too large to be a matter of timing */
    struct idle_levels idle;
    struct bookings bookings;
};

void node_overhead_init(struct node_overhead *overhead, const struct node_overhead_options *options,
                        uint64_t interval_us, struct node *node, struct gpu *const *gpus);
void node_overhead_done(struct node_overhead *overhead);

/* Takes a sample that is not of a GPU, after the node. 0 or -ENOMEM, as node_ingest. */
int node_overhead_ingest(struct node_overhead *overhead, const struct sample *sample);

/* Packs what the next run can use, or unpacks it. */
void node_overhead_code(struct node_overhead *overhead, struct coder *coder);

/* Drops the open window, if there is one: a GPU was added or removed. */
void node_overhead_close_window(struct node_overhead *overhead);

/* The functions below are in node_overhead_divide.c, for node_overhead.c. */

/* Starts the weights of a window from 0. 0 or -ENOMEM. */
int node_overhead_reset_weights(struct node_overhead *overhead);

/* Adds the CPU time of the node's last usage report. 0 or -ENOMEM. */
int node_overhead_add_usage(struct node_overhead *overhead, const struct sample_usage *usage);

/* Books the energy of the window. */
int node_overhead_book(struct node_overhead *overhead, uint64_t energy_uj);
