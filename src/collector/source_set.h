/*
 * The sources of this node: opened when they appear, read on threads of their own, closed when they
 * go. Owned by the collector's loop; only units are added from other threads.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/gpu_numbers.h"
#include "core/error.h"
#include "model/snapshot.h"
#include "sources/runner.h"
#include "sources/source.h"

/* Every GPU there can be, and every source of the table. */
enum { SOURCE_SET_RUNNERS_MAX = 96, SOURCE_SET_TABLE_MAX = 16 };

struct source_set_runner {
    struct runner *runner;
    bool was_up;
    bool is_closing;    /* its device is to be released; closed when its thread ends */
    size_t table_index; /* or SOURCE_SET_TABLE_MAX: a unit */
    uint64_t awaited;   /* the read that was requested last */
};

struct source_set {
    struct source_context context;
    int wake_fd;
    uint64_t retry_us; /* how often opening absent sources is tried */
    struct source_set_runner runners[SOURCE_SET_RUNNERS_MAX];
    size_t runner_count;
    struct gpu_numbers numbers;
    atomic_bool package_is_metered;
    bool has_changed;          /* one came, went, failed or recovered; reset by the owner */
    uint64_t release_until_us; /* no device is opened before */
    bool has_left_one;         /* whose thread hung when it was stopped, and may still hang */
    struct {
        uint64_t due_us; /* when to open it; UINT64_MAX: it is open, or switched off */
        bool is_logged;  /* that it cannot be used */
    } table[SOURCE_SET_TABLE_MAX];

    pthread_mutex_t lock; /* for the units that were found but have no runner yet */
    struct source_unit found[SOURCE_SET_RUNNERS_MAX];
    size_t found_count;
};

/*
 * Which cgroups are workloads, by the owner rule (identity/owner.h). A container is one, but
 * neither the pod around it nor what is in it. Units and users hold others. Pure; the context is
 * not used.
 */
enum cgroup_verdict source_set_classify_cgroup(void *context, const char *path,
                                               struct workload_owner *ret_owner);

/* The context's strings, switches and host must outlive it. Batches wake `wake_fd`. */
void source_set_init(struct source_set *set, const struct source_context *context, int wake_fd,
                     uint64_t retry_us);

/* True if any of them is a meter of energy. */
bool source_set_has_meter(const struct source_set *set);

/* Opens sources that are due and starts the units that were found. A source that is not on this
 * node is silent, one that cannot be used is logged once. With `err`, as at the start, failures are
 * returned. */
int source_set_open_due(struct source_set *set, uint64_t now_us, struct error *err);
uint64_t source_set_next_due_us(const struct source_set *set);

/* Passes every batch that is there to `take`, with its GPUs numbered for the node, and logs sources
 * that failed or recovered. */
void source_set_read(struct source_set *set, uint64_t now_us,
                     void (*take)(void *context, const struct batch *batch), void *context);

/* Asks for a read now: all but those that are read more seldom than once a window, as a BMC is.
 * Then, are they done? One that is down is not waited for. */
void source_set_request_read(struct source_set *set);
bool source_set_has_read(const struct source_set *set);

/* Logs sources that failed or recovered: once per change. */
void source_set_note(struct source_set *set);

/* Adds a row for each to the snapshot, but for those that may turn out not to be on this machine.
 */
int source_set_describe(struct source_set *set, struct snapshot *snapshot);

/*
 * Closes all that hold devices, until `until_us`. Does not wait: each is closed by the
 * source_set_read after its thread has ended. find_closing returns the name of one that is still
 * open, or NULL.
 */
bool source_set_is_releasing(const struct source_set *set, uint64_t now_us);
void source_set_release_devices(struct source_set *set, uint64_t until_us);
const char *source_set_find_closing(const struct source_set *set);

/* Closes everything, waiting at most `wait_us`. False: a thread hangs or has hung, and may still
 * use the set and all that its context leads to: none of it may be freed. */
bool source_set_stop(struct source_set *set, uint64_t wait_us);
