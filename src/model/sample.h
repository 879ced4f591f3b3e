/*
 * Sample: one observation of a source, the only input of attribution.
 *
 * Times are microseconds since the epoch, the clock of the driver's own sample times. A field that
 * may be missing has a validity bit or a documented "unknown" value; absent is never zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "model/counter.h"
#include "model/meter.h"
#include "model/usage.h"
#include "model/workload.h"

enum {
    SAMPLE_GPU_MAX = 64,       /* sources ensure that gpu is below */
    SAMPLE_INSTANCES_MAX = 64, /* and that no board has more MIG devices */
    SAMPLE_VGPUS_MAX = 256,    /* or vGPUs */
};

enum sample_kind {
    SAMPLE_DEVICE,      /* a GPU appeared; precedes its other samples */
    SAMPLE_ENERGY,      /* its energy counter was read */
    SAMPLE_POWER,       /* its power was read */
    SAMPLE_UTILISATION, /* so were its utilisation, clock and temperature */
    SAMPLE_LABEL,       /* the driver's record of the process resident at an instant */
    SAMPLE_BUSY,        /* how long each process has kept it busy, where that is counted */
    SAMPLE_LIST,        /* the driver's whole list of one kind of process */
    SAMPLE_PROCESS,     /* the identity of a pid */
    SAMPLE_INTEGRAL,    /* energy integrated from power, on boards without a counter */
    SAMPLE_GAUGE,       /* one of the other readings */
    SAMPLE_GPM,         /* the activity of the device's units since the last such sample */
    SAMPLE_XID,         /* the driver reported an error */
    SAMPLE_LAYOUT,      /* how it is partitioned (MIG), completely; none: not in MIG mode */
    SAMPLE_VGPUS,       /* the vGPUs on it, completely */
    SAMPLE_VGPU_USE,    /* the driver's record of what one of them used */
    SAMPLE_LOST,        /* the GPU stopped responding; it may come back */
    /* The others belong to no GPU. */
    SAMPLE_METER,      /* a meter of the node was read */
    SAMPLE_NODE_POWER, /* so was the power of the whole node */
    SAMPLE_USAGE,      /* what all workloads used since the last such sample */
    SAMPLE_NAMES,      /* names of a workload; in traces only, ignored by attribution */
    SAMPLE_KINDS,
};

enum { SAMPLE_PCI_BYTES = 24 }; /* "ffffffff:ff:1f.7" */

struct sample_device {
    const char *uuid; /* never empty */
    const char *name;
    const char *driver;
    uint64_t power_limit_mw; /* 0: unknown */
    uint64_t memory_bytes;   /* 0: unknown */
    bool has_minor;
    uint32_t minor;        /* of the device node, /dev/nvidiaN or /dev/dri/cardN */
    uint32_t render_minor; /* of /dev/dri/renderDN; 0: none */
    const char *pci;       /* its address, as sysfs writes it: "0000:17:00.0"; NULL: unknown */
    bool is_renumbered;    /* its index is not the number that its driver gives it */
};

enum { SAMPLE_PERCENT_UNKNOWN = UINT8_MAX };

struct sample_utilisation {
    uint8_t gpu_percent;
    uint8_t memory_percent; /* or SAMPLE_PERCENT_UNKNOWN */
    uint32_t sm_clock_mhz;
    uint32_t temperature_c;
};

/* One utilisation sample of the driver: the whole device's utilisation, labelled with the one pid
 * that was resident at `at_us`. Only a pid's share of the labels says something about the pid. */
struct sample_label {
    uint32_t pid;
    uint64_t at_us;
    uint16_t sm_percent, memory_percent, encoder_percent, decoder_percent;
    bool in_proc; /* /proc has this pid; false where the source cannot know */
};

/* Of drivers that count, instead of sampling: how long engines worked for each process, or which
 * part of the compute units it occupied for how long, since the last such sample. */
struct sample_busy_process {
    uint32_t pid;
    uint64_t busy_us; /* of the whole device: half of its units for a second is half a second */
};

struct sample_busy {
    uint64_t interval_us; /* since the last such sample */
    size_t count;         /* those that did nothing may be missing */
    const struct sample_busy_process *entries;
    /* What several did together was divided among them by their presence alone. */
    bool is_by_presence;
};

enum sample_list_kind {
    SAMPLE_LIST_COMPUTE,
    SAMPLE_LIST_MPS,
    SAMPLE_LIST_GRAPHICS,
    SAMPLE_LIST_KINDS,
};

#define SAMPLE_MEMORY_UNKNOWN UINT64_MAX /* NVML: all ones, "not available" */
#define SAMPLE_NO_INSTANCE    UINT32_MAX /* NVML's, too: the board is not in MIG mode; 0 is an id */

struct sample_listed {
    uint32_t pid;
    uint64_t memory_bytes;                   /* or SAMPLE_MEMORY_UNKNOWN */
    uint32_t gpu_instance, compute_instance; /* or SAMPLE_NO_INSTANCE, of old drivers in MIG, too */
};

struct sample_list {
    enum sample_list_kind kind;
    size_t count;
    const struct sample_listed *entries;
};

#define SAMPLE_UID_UNKNOWN UINT32_MAX

/* Hashes by which a program is recognised: of its executable with all arguments, and without what
 * differs from run to run (seeds, ports, ranks, paths). 0: unknown. */
struct program_key {
    uint64_t exact, coarse;
};

struct sample_process {
    uint32_t pid;
    uint32_t uid;       /* or SAMPLE_UID_UNKNOWN */
    uint64_t start_us;  /* 0: unknown */
    const char *name;   /* "" if unknown */
    const char *cgroup; /* the text of /proc/PID/cgroup, or one path; "" if unknown */
    struct program_key program;
};

/* So much memory of a GPU instance in use means that a process is in it, listed or not. Chosen to
 * be less than a CUDA context takes and more than an empty instance shows; not measured in MIG
 * mode. */
enum { SAMPLE_OCCUPIED_BYTES = 128 << 20 };

struct sample_gauge {
    enum gpu_gauge gauge;
    uint64_t value;
    uint32_t instance; /* GPU instance, for its memory only; SAMPLE_NO_INSTANCE: the whole board */
};

/* NVML's GPM metrics that attribution can use, percent of their maximum. */
enum { SAMPLE_GPM_COUNT = 10 };
extern const uint8_t sample_gpm_ids[SAMPLE_GPM_COUNT];

struct sample_gpm {
    uint16_t valid; /* a bit for each: the driver may answer NaN */
    uint32_t millipercent[SAMPLE_GPM_COUNT];
    uint32_t instance; /* GPU instance; SAMPLE_NO_INSTANCE: the whole board */
};

enum layout_kind {
    LAYOUT_WHOLE, /* not partitioned */
    LAYOUT_MIG,
    LAYOUT_PARTITIONS, /* AMD's: SPX to CPX, or two dies of one board. Each is like a MIG device */
    LAYOUT_KINDS,
};

/*
 * A MIG device: a compute instance of a GPU instance. Instances of one GPU instance share its
 * memory, and have SMs of their own. A GPU instance without compute instances has no MIG device:
 * nobody can use it, and it is not listed; its slices count as free.
 */
struct sample_instance {
    uint32_t gpu_instance, compute_instance; /* ids; in all samples until the layout changes */
    uint32_t index;   /* of the MIG device on its board, in NVML's order; AMD's: the render minor */
    const char *uuid; /* "MIG-...", or "MIG-GPU-.../GI/CI" before R470; "" if unknown */
    const char *profile;     /* "1g.10gb", "1c.3g.40gb", "1g.10gb+me"; "" if unknown */
    uint32_t slices;         /* compute slices of the GPU instance; 0: unknown */
    uint32_t compute_slices; /* of them, those of the compute instance; 0: unknown */
    uint32_t sm_count;       /* of the compute instance; 0: unknown */
    uint64_t memory_bytes;   /* of the GPU instance; 0: unknown */
    struct mig_placement placement;
};

struct sample_layout {
    enum layout_kind kind; /* LAYOUT_WHOLE: all else is 0 */
    uint32_t slices;       /* compute slices of the whole board: 7, or 4 of an A30; 0: unknown */
    uint32_t sm_count;     /* of the largest instance that it can have; 0: unknown */
    size_t count;
    const struct sample_instance *items;
};

/* A vGPU that a virtual machine runs with. */
struct sample_vgpu {
    uint32_t vgpu;         /* the driver's handle; the same as long as the machine runs */
    const char *vm;        /* the id of the machine, never empty */
    bool vm_is_uuid;       /* false: the hypervisor's domain id */
    const char *uuid;      /* of the vGPU; "" if unknown */
    uint64_t memory_bytes; /* or SAMPLE_MEMORY_UNKNOWN */
};

struct sample_vgpus {
    size_t count;
    const struct sample_vgpu *items;
};

/* Percent of the whole board, by the driver's own time. */
struct sample_vgpu_use {
    uint32_t vgpu;
    uint64_t at_us;
    uint16_t sm_percent, memory_percent, encoder_percent, decoder_percent;
};

struct sample_meter {
    const char *source;   /* a literal */
    enum meter_kind kind; /* not METER_GPU */
    const char *id;       /* the same after a restart, and once in its kind: "0", "1", "bmc" */
    uint64_t counter_uj;  /* since the source was opened, wrap-around undone; never goes back */
    uint32_t breaks;      /* how often the count was lost since then and began anew */
    bool integrated;      /* from power and time, there is no counter */
    bool modelled;        /* no meter: a model of one */
    uint64_t idle_uj;     /* of a model: the part of the counter that no work caused */
    /* The device's own count, which goes on while nobody reads it. NULL: it has none, or it is
     * unknown. Traces do not have it. */
    const struct counter *hardware;
    struct meter_limits limits; /* traces do not have them, either */
};

struct sample_node_power {
    const char *source; /* a literal: "ipmi", "redfish", "cray", "hwmon" */
    uint64_t power_mw;
};

/* What a workload used since the last sample. One with several cgroups comes several times. */
struct sample_workload {
    enum workload_kind kind; /* this and the texts: as in struct workload_owner */
    const char *id, *container_id, *pod_uid;
    uint64_t cpu_us;
    uint64_t memory_bytes; /* that it holds now */
    bool has_traffic;      /* its memory traffic is counted */
    uint64_t traffic_bytes;
    /* Counters since then, or in all if this is the first sample; current gauges. NULL: unknown. */
    const struct usage *did;
};

struct sample_usage {
    bool is_first;                            /* there was none before: only gauges count */
    bool is_blind;                            /* workloads cannot be seen */
    uint64_t busy_us, capacity_us;            /* of all CPUs, since the last sample */
    uint64_t memory_used_bytes, memory_bytes; /* of the machine; 0: unknown */
    bool has_traffic;                         /* of at least one workload */
    uint64_t other_traffic_bytes;             /* of the machine, less these workloads' */
    size_t count;
    const struct sample_workload *workloads;
};

/* All that is known of a workload by now. */
struct sample_names {
    enum workload_kind kind; /* both as in struct workload_owner */
    const char *id;
    const char *texts[WORKLOAD_TEXTS]; /* "" where there is none */
};

/* A deep copy; NULL if the arena is full. */
const struct sample_names *sample_names_copy(struct arena *arena, const struct sample_names *names);

struct sample {
    enum sample_kind kind;
    uint32_t gpu; /* 0 where the kind belongs to no GPU */
    uint64_t t_us;
    union {
        struct sample_device device;
        uint64_t counter_uj; /* SAMPLE_ENERGY and SAMPLE_INTEGRAL */
        uint64_t power_mw;
        struct sample_utilisation utilisation;
        struct sample_label label;
        struct sample_busy busy;
        struct sample_list list;
        struct sample_process process;
        struct sample_gauge gauge;
        struct sample_gpm gpm;
        struct sample_layout layout;
        struct sample_vgpus vgpus;
        struct sample_vgpu_use vgpu_use;
        struct sample_meter meter;
        struct sample_node_power node_power;
        struct sample_usage usage;
        const struct sample_names *names;
        uint32_t xid;
    };
};

/* Batch: the samples of one read of one source, with the memory that they point into. Filled by the
 * source, then handed over and not changed again. */
enum { BATCH_ARENA_CAP_BYTES = 256 << 20, BATCH_SAMPLES_MAX = 1 << 20 };

struct batch {
    struct sample *samples;
    size_t count;
    size_t capacity;
    struct arena arena; /* lists and strings of the samples */
    struct batch *next; /* for queues */
    bool is_requested;  /* somebody waits for this read: it leaves out nothing that is read less
                           often */
};

void batch_init(struct batch *batch);
void batch_done(struct batch *batch);

/* Empties it but keeps its memory. */
void batch_reset(struct batch *batch);

/* Copies the sample; what it points to must live in the batch's arena. 0, -ENOMEM, or -EFBIG. */
int batch_add(struct batch *batch, const struct sample *sample);
