/*
 * Snapshot: everything that a scrape shows, at one time; the only input of metrics/. Built once,
 * never changed, freed whole with its arena. Rows are sorted: the same books print the same bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "model/meter.h"
#include "model/price.h"
#include "model/usage.h"
#include "model/workload.h"

struct snapshot_meter {
    enum meter_kind kind;
    uint32_t gpu; /* of a GPU; else 0 */
    const char *meter_id;
    bool replaced;        /* another board has this gpu index now */
    bool is_unread;       /* a GPU without a meter, or none was read so far: no joules, not 0 J */
    bool modelled;        /* no meter: a model of one */
    bool has_uncertainty; /* the division of its energy has an error estimate */
    bool has_counter;
    uint64_t counter_uj; /* the hardware's own count, if has_counter */
    uint64_t energy_uj;  /* settled */
    uint64_t pending_uj;
    uint64_t unowned_uj[UNOWNED_COUNT];
    struct bill bill; /* of energy_uj */
    struct bill unowned_bill[UNOWNED_COUNT];
    int64_t imbalance_uj;
    uint64_t resets;
    uint64_t unknown_gaps; /* restarts during which it was not counted */
    /* Smoothed; < 0: unknown. What was booked is as of the last window that is settled, and the sum
     * of its rows; what was measured is as of now. */
    double power_mw, measured_mw;
    uint64_t settled_until_us;        /* 0: nothing was booked yet */
    double unowned_mw[UNOWNED_COUNT]; /* if power_mw is known */
};

/* A meter that is not booked. */
struct snapshot_observed {
    enum meter_kind kind;
    const char *id;
    uint64_t counter_uj;
};

struct snapshot_power_limits {
    enum meter_kind kind;
    const char *id;
    struct meter_limits limits;
};

struct snapshot_node_power {
    const char *source;
    uint64_t power_mw;
};

/* How the processes of a GPU share it, as observed. */
enum gpu_sharing {
    GPU_SHARING_EXCLUSIVE, /* there is one, or none */
    GPU_SHARING_TIME_SLICED,
    GPU_SHARING_MPS,
    GPU_SHARING_MIG,
    GPU_SHARING_VGPU,
    GPU_SHARING_PARTITIONED, /* AMD's partitions, or dies */
    GPU_SHARING_MODES,
};

/* Values of the label `mode`. */
extern const char *const gpu_sharing_words[GPU_SHARING_MODES];

/* A MIG device: a compute instance of a GPU instance. */
struct snapshot_mig_device {
    uint32_t gpu_instance, compute_instance;
    const char *uuid, *profile;
    uint32_t index; /* on its board, in NVML's order; of AMD's, the render minor */
    struct mig_placement placement;
};

/* A GPU instance of MIG. */
struct snapshot_instance {
    uint32_t gpu_instance;
    const char *profile;
    uint64_t valid; /* as in struct snapshot_gpu */
    uint64_t gauges[GPU_GAUGE_COUNT];
};

enum { SNAPSHOT_XIDS_MAX = 16 };

struct snapshot_gpu {
    uint32_t gpu;
    const char *uuid, *name, *driver;
    bool has_minor;
    uint32_t minor, render_minor; /* of the device nodes, as in struct sample_device */
    bool is_renumbered;           /* as there */
    const char *pci;              /* its address, "0000:17:00.0"; "" if unknown */
    bool has_unknown;
    uint64_t unknown_bytes; /* in use, but by no listed process */
    bool inference_active;  /* they are divided among containers */
    uint64_t valid;         /* a bit for each gauge: no bit, no series */
    uint64_t gauges[GPU_GAUGE_COUNT];
    struct {
        uint32_t xid; /* 0: unused */
        uint64_t count;
    } xids[SNAPSHOT_XIDS_MAX];
    uint64_t samples_garbage, samples_repeated, samples_late;
    enum gpu_sharing sharing;
    const struct snapshot_instance *instances;
    size_t instance_count;
    const struct snapshot_mig_device *mig_devices;
    size_t mig_device_count;
    bool has_program_memory;
    uint64_t programs_known;                          /* remembered */
    uint64_t processes_recalled, processes_suspended; /* of such a program: it counts, or not */
};

/* Is it divided into parts that are used as GPUs of their own? */
static inline bool gpu_is_partitioned(const struct snapshot_gpu *gpu)
{
    return gpu->sharing == GPU_SHARING_MIG || gpu->sharing == GPU_SHARING_PARTITIONED;
}

enum {
    SNAPSHOT_PROCESS_UTILISATION = 1 << 0,
    SNAPSHOT_PROCESS_MEMORY = 1 << 1,
    SNAPSHOT_PROCESS_START = 1 << 2,
    SNAPSHOT_PROCESS_UNCERTAINTY = 1 << 3,
};

struct snapshot_process {
    enum workload_kind kind; /* of its workload, with the id */
    const char *id;
    uint32_t gpu;
    uint32_t pid;    /* 0: all those beyond --max-processes, or one that has none */
    bool unseen;     /* it has none: a vGPU, or a container whose processes are not visible */
    bool superseded; /* another has its pid or its board's index: kept for sums, not shown */
    bool active;
    unsigned valid;
    bool is_unread;   /* as its meter */
    bool hidden;      /* its names may still come, or it has no pid: kept for sums, not shown */
    const char *name; /* "" if unknown */
    struct workload_names names;
    const char *container_id, *pod_uid;
    uint64_t active_uj, idle_uj;
    uint64_t measured_uj;                                 /* the part of both that was measured */
    uint64_t known_uj, uncertain_uj;                      /* as in struct account */
    uint64_t sm_won_percent, memory_won_percent, samples; /* last 10 s: sums over won; all */
    uint64_t memory_bytes;
    uint64_t start_us;
};

struct snapshot_workload {
    enum workload_kind kind;
    const char *id;
    struct workload_names names;
    const char *container_id, *pod_uid;
    uint32_t meter; /* index into meters */
    struct account account;
    double power_mw; /* smoothed; < 0: none (retired) */
};

/* What a workload uses beside GPUs. */
struct snapshot_usage {
    enum workload_kind kind;
    const char *id;
    struct workload_names names;
    const char *container_id, *pod_uid;
    struct usage usage;
};

/* A container with access to a GPU. */
struct snapshot_container {
    uint32_t gpu;
    const char *container_id, *name;
    const char *pod, *namespace; /* "" if there is none */
    bool inferred;               /* no process of it is listed there */
    bool has_bytes;              /* of memory */
    uint64_t bytes;
};

/* Details of a workload beyond its labels. Unlike these, they may change. */
struct snapshot_info {
    enum workload_kind kind;
    const char *id;
    const char *namespace, *pod, *container; /* also if they came too late for the labels */
    const char *image, *user, *account, *job_id, *job_name, *uuid;
    const char *container_id, *pod_uid;
    const char *unverified; /* which of these the workload could have forged */
};

/* A GPU that a workload was given, used or not. */
struct snapshot_allocation {
    enum workload_kind kind;
    const char *id;
    struct workload_names names;
    uint32_t gpu;
    const char *uuid;  /* of the GPU */
    bool has_instance; /* of MIG; else it is the whole GPU */
    uint32_t gpu_instance;
    enum allocation_source source;
    bool is_unverified;
};

/* An emission factor: the one in force, or an alternative. */
struct snapshot_factor {
    struct price_factor factor; /* unknown: no provider has it at present */
    bool in_force;
    bool is_live; /* fetched; only then: */
    bool is_stale, is_estimated, is_up;
    uint64_t age_us, errors;
};

struct snapshot_source {
    const char *name;
    bool up;
    uint64_t age_us, duration_us, errors;
};

/* Another process of this program. The first is the server. */
enum { SNAPSHOT_CHILDREN_MAX = 4 };

struct snapshot_child {
    const char *name; /* a literal */
    uint64_t starts, hangs;
};

struct snapshot {
    struct arena arena; /* owns everything below */

    uint64_t time_us;
    const struct snapshot_meter *meters;
    size_t meter_count;
    const struct snapshot_observed *observed;
    size_t observed_count;
    const struct snapshot_power_limits *power_limits; /* of meters of the node that have some */
    size_t power_limit_count;
    const struct snapshot_node_power *node_powers;
    size_t node_power_count;
    const char
        *overhead_source; /* of the node's meter that the rest is taken from; NULL: no rest */
    bool overhead_includes_gpus, overhead_mismatch; /* if there is one */
    const struct snapshot_gpu *gpus;
    size_t gpu_count;
    const struct snapshot_process *processes;
    size_t process_count;
    const struct snapshot_workload *workloads; /* a row for each workload and meter */
    size_t workload_count;
    const struct snapshot_usage *usages; /* a row for each workload that has a cgroup */
    size_t usage_count;
    const struct snapshot_container *containers; /* a row for each container and GPU */
    size_t container_count;
    const struct snapshot_container *detected; /* each container once */
    size_t detected_count;
    uint64_t processes_dropped, workloads_dropped;
    struct price price; /* the latest; what is unknown was never billed */
    struct embodied_rates embodied;
    const struct snapshot_info *infos;
    size_t info_count;
    const struct snapshot_allocation *allocations; /* a row for each workload and GPU */
    size_t allocation_count;
    const char *node; /* name of this node */
    bool processes_scanned;
    uint64_t node_processes, node_processes_outside; /* if they were */
    uint64_t node_job_gpus_unknown;

    /* Added by the collector. */
    const struct snapshot_factor *factors;
    size_t factor_count;
    const struct snapshot_source *sources;
    size_t source_count;
    bool replay_active;
    bool has_state, state_is_up; /* a state file */
    struct snapshot_child children[SNAPSHOT_CHILDREN_MAX];
    size_t child_count;
    uint64_t self_cpu_us;
    uint64_t self_rss_bytes; /* 0: unknown */
    uint64_t start_us;
};

enum { SNAPSHOT_CAP_BYTES = 512 << 20 };

static inline void snapshot_init(struct snapshot *snapshot)
{
    *snapshot = (struct snapshot){0};
    arena_init(&snapshot->arena, SNAPSHOT_CAP_BYTES);
}

static inline void snapshot_done(struct snapshot *snapshot)
{
    arena_done(&snapshot->arena);
    snapshot_init(snapshot);
}
