/*
 * The rest of the node: what its whole draws beyond packages, memory and GPUs. Fans, disks,
 * regulators, the loss of the power supplies; and whatever of the others has no meter.
 *
 * One meter of the whole is taken (a BMC, say). All counts are noted when it is read, because it is
 * the slowest of them; the difference of two such notes, at least 30 s apart, is a window. A window
 * in which any count broke is not booked at all: the rest has no counter of its own that could say
 * what it missed. rest_total.c chooses, rest.c measures, rest_divide.c decides who pays. No I/O, no
 * clock.
 */
#pragma once

#include "attribution/gpu/gpu.h"
#include "attribution/gpu/idle.h"
#include "attribution/ledger/ledger.h"
#include "attribution/node/coverage.h"
#include "attribution/node/node.h"
#include "attribution/share.h"
#include "model/policy.h"
#include "model/sample.h"

struct rest_options {
    enum rest_policy policy;
    enum includes_gpus includes_gpus;
};

/* A kind of meter that measures the whole node. */
struct rest_total {
    const char *source;
    enum meter_kind kind;
    enum includes_gpus includes_gpus; /* AUTO: that differs */
    bool is_sum;                      /* of all there are; else there must be only one */
};

/* All counts at one time. Sums may wrap around; their differences are right all the same. */
struct rest_reading {
    uint64_t t_us;
    uint64_t total_uj, parts_uj, gpus_uj;
    bool has_package;
    bool gpus_known;
    size_t meter_count; /* that were added up, without GPUs */
    uint64_t lapses;    /* of their counts */
    uint64_t gpu_resets;
};

struct rest {
    struct rest_options options;
    struct ledger *ledger;
    struct node *node;
    struct gpu *const *gpus; /* SAMPLE_GPU_MAX, or NULL where there is none */
    uint64_t window_us;      /* the shortest */
    uint64_t late_us;        /* a count that is older is not of the same time */

    uint64_t first_report_us;       /* 0: there was none yet */
    const struct rest_total *total; /* NULL: not chosen yet; see rest_total.c */
    const char *total_id;           /* the node's own text; of a sum, that of the last */
    const char *meter_id;           /* of the rest */
    uint32_t meter;                 /* in the ledger; LEDGER_NONE: nothing can be booked yet */
    bool includes_gpus;
    bool learns_coverage;
    struct coverage coverage;

    bool is_open; /* a window */
    struct rest_reading start, latest;
    uint64_t busy_us, capacity_us; /* of the CPUs in it */

    uint64_t deficit_uj; /* by which the parts were more than the whole: later windows pay it */
    bool mismatch;       /* it grew too large to be a matter of time */
    struct idle_levels idle;

    /* Scratch, kept so that a steady state allocates nothing. */
    struct share *shares;
    struct booking *bookings;
    size_t booking_count, scratch_capacity;
};

void rest_init(struct rest *rest, const struct rest_options *options, uint64_t interval_us,
               struct node *node, struct gpu *const *gpus);
void rest_done(struct rest *rest);

/* Takes a sample that is of no GPU, after the node has taken it. 0 or -ENOMEM; then the books still
 * balance. */
int rest_ingest(struct rest *rest, const struct sample *sample);

/* Says that a GPU came or went. */
void rest_gpu_changed(struct rest *rest);

/* The functions below are used by rest.c. */

/* Takes the best meter of the whole that there is, once all had time to answer. In rest_total.c. */
void rest_choose_total(struct rest *rest, uint64_t now_us);

/* Is this the meter that was taken, or one of those that add up to it? */
bool rest_is_whole(const struct rest *rest, const struct node_meter *meter);

/* Is this reading the one that completes the whole? Where several add up to it, the last of them.
 */
bool rest_completes_whole(const struct rest *rest, const struct sample_meter *reading);

/* The kinds of meter whose joules are to be weighed for a window. */
unsigned rest_weighed_kinds(const struct rest *rest);

/* Notes what workloads did since the last report. */
void rest_weigh_usage(struct rest *rest, const struct sample_usage *usage);

/* Books the energy of the window. */
int rest_divide(struct rest *rest, uint64_t energy_uj);
