/*
 * The pipeline: samples of all GPUs and of the node in, one ledger, snapshots out. The same for
 * `serve` and `replay`. Not thread-safe. No I/O, no clock.
 */
#pragma once

#include "attribution/gpu/gpu.h"
#include "attribution/gpu/program_archive.h"
#include "attribution/measured.h"
#include "attribution/node/node_overhead.h"

/* Returns the names of an owner as far as they are known; false if more may come. They live until
 * the next call. */
typedef bool pipeline_find_names(void *context, const struct workload_owner *owner,
                                 struct workload_names *ret_names);

/* Are they expected soon? */
typedef bool pipeline_await_names(void *context, const struct workload_owner *owner);

struct pipeline_options {
    struct gpu_options gpu;
    struct node_overhead_options overhead;
    size_t max_processes, max_workloads;
    bool has_history;
    bool has_no_usage;     /* nobody reports what workloads use: as in struct node */
    uint64_t retention_us; /* UINT64_MAX: for ever */
    struct price price;    /* from the start; what it does not know is never billed */
    struct embodied_rates embodied;

    /* As in gpu_options. */
    void (*find_owner)(const struct sample_process *who, struct workload_owner *ret_owner);
    /* As in gpu_options. */
    bool (*find_vm)(void *context, const char *vm, bool is_uuid, struct workload_owner *ret_owner);
    /* The source of names. NULL: none, and nothing is held back. */
    pipeline_find_names *find_names;
    pipeline_await_names *are_names_awaited;
    void *names_context;
};

struct pipeline {
    struct pipeline_options options;
    struct ledger *ledger;
    struct history *history;          /* NULL: none */
    struct sightings sightings;       /* of all GPUs */
    struct gpu *gpus[SAMPLE_GPU_MAX]; /* NULL: not there */
    struct program_archive archive;   /* of GPUs that are gone */
    struct resumed_meters resumed;    /* of the previous run or gone, until they are read */
    struct node node;
    struct node_overhead overhead;
    struct measured *measured; /* by the meter's index in the ledger */
    size_t measured_slots;
    struct price price; /* the latest */
    char currency[4];   /* of the costs in the books, also if none is known now; "": none was */
};

int pipeline_new(const struct pipeline_options *options, struct pipeline **ret_pipeline);
void pipeline_free(struct pipeline *pipeline);

/* Takes samples in order. 0 or -ENOMEM; then some energy is unattributed, but all is booked. */
int pipeline_ingest(struct pipeline *pipeline, const struct sample *samples, size_t count);

/* Sets the workloads with access to a GPU. The pipeline will free `attached`; it may be NULL. */
void pipeline_set_attached(struct pipeline *pipeline, uint32_t gpu, struct attached *attached,
                           size_t count);

/* No device is read any more: the lists are empty until they are read again. */
void pipeline_lose_devices(struct pipeline *pipeline, uint64_t now_us);

/* Sets the price of energy from `from_us` on; earlier windows have the price of their time. Only
 * what the first price knew is ever billed, and if it becomes unknown it stays as it was. */
void pipeline_set_price(struct pipeline *pipeline, const struct price *price, uint64_t from_us);

/* Settles everything that is pending. */
int pipeline_finish(struct pipeline *pipeline);

/* Hands what is remembered of programs over to another pipeline, for the boards that it will have.
 */
void pipeline_hand_over_programs(struct pipeline *from, struct pipeline *to);

/* Forgets what ended longer than the retention ago. */
void pipeline_sweep(struct pipeline *pipeline, uint64_t now_us);

/* Sets the source of names if it was not known at the start. */
void pipeline_set_names(struct pipeline *pipeline, pipeline_find_names *find, void *context);

/* Fixes the names that are known by now, and after a while all others, before a snapshot. Until
 * then energy is booked but not shown. 0 or -ENOMEM: some wait for the next call. */
int pipeline_fix_names(struct pipeline *pipeline, uint64_t now_us);

/* Adds the books to an empty snapshot. What is held back for its names counts as pending. Gauges
 * older than `stale_us` are left out. 0 or -ENOMEM. */
int pipeline_snapshot(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                      struct snapshot *snapshot);

/* In pipeline_history.c. Gives the rows of the history the names that are known, and hides those
 * for which the page waits. */
void pipeline_name_history(struct pipeline *pipeline);

/* Until when every meter of the history is booked, and was read. */
uint64_t pipeline_settled_until_us(const struct pipeline *pipeline);
uint64_t pipeline_measured_until_us(const struct pipeline *pipeline);

/* The usage of workloads alone, and a number that changes with it, though not with its age. */
int pipeline_snapshot_usages(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                             struct snapshot *snapshot);
uint64_t pipeline_usage_version(const struct pipeline *pipeline);

/* In pipeline_state.c: what a restart keeps. What is pending when a run ends without
 * pipeline_finish(), and what meters count until they are read again, is a gap. */

struct pipeline_resumption {
    bool is_same_boot;     /* else only what was learned holds */
    int64_t clock_step_us; /* by which the clock was set forward since the state was packed */
    uint64_t now_us;
};

/* The sum over the meters. */
uint64_t pipeline_unknown_gaps(const struct pipeline *pipeline);

void pipeline_pack_state(struct pipeline *pipeline, struct buffer *out);

/* Into a new pipeline, before its first sample. 0, or -EBADMSG: it is not a state, or its books do
 * not balance; then the pipeline can only be freed. */
int pipeline_unpack_state(struct pipeline *pipeline, struct unpack *in,
                          const struct pipeline_resumption *resumption);
