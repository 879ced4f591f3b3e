/*
 * NVIDIA GPUs, through NVML.
 *
 * The source itself is one thread: it loads the library, waits for the driver and counts the GPUs.
 * Each GPU is a unit with a thread of its own, which makes every call that concerns it, so that one
 * that hangs does not hold up the others. No driver, a driver that goes away and a GPU that is lost
 * are states, not errors: they cost a gap, and what comes back is picked up.
 *
 * nvml.c is the source; nvml_gpu.c opens, polls and closes one GPU, nvml_processes.c reads its
 * processes, nvml_gpm.c the activity of its units, nvml_mig.c its MIG instances, nvml_vgpu.c its
 * vGPUs, and nvml_gauges.c the readings that are exported as they are. nvml_check.c is `check`.
 */
#pragma once

#include <stdatomic.h>

#include "sources/gpu_pids.h"
#include "sources/nvml/nvml_library.h"
#include "sources/source.h"

extern const struct source_ops nvml_source;

/* What the threads share. It lives as long as one of them does. */
struct nvml_shared {
    atomic_uint references;
    struct nvml_library library;
    atomic_bool initialised; /* the library; its last user shuts it down, once */
    const struct source_context *context;
    struct proc_reader proc;
    char driver[NVML_DRIVER_BYTES];
    atomic_bool driver_gone; /* a call reported it: all threads stop, then it is tried anew */
    atomic_bool running[SAMPLE_GPU_MAX]; /* the GPU has a unit */
    uint64_t polls_per_window;
    uint64_t next_search_us; /* the source's own */
};

/* A source's `close`, too. */
void nvml_shared_unref(void *shared);

/* The code means that the GPU, or the whole driver, is gone. */
bool nvml_is_gone(struct nvml_shared *shared, int code);

/* The unit of one GPU, which its first read opens. Takes a reference. 0 or -ENOMEM. */
int nvml_gpu_new(struct nvml_shared *shared, uint32_t index, void **ret_state);
extern const struct source_ops nvml_gpu_unit;

/* Two samples of GPM; metrics are read between them. */
struct nvml_gpm_pair {
    struct nvml_gpm_sample *older, *newer; /* NULL: none */
    uint64_t older_us;                     /* when it was taken; 0: not yet */
};

/* A MIG device: a compute instance of a GPU instance. Its handle is valid until the layout is read
 * again. */
struct nvml_mig_device {
    struct nvml_device *device;
    uint32_t index, gpu_instance, compute_instance;
    char uuid[NVML_UUID_BYTES], profile[NVML_NAME_BYTES];
    bool has_attributes;
    struct nvml_attributes attributes;
    struct mig_placement placement;
};

struct nvml_gpu_instance {
    uint32_t id;
    uint64_t identity;   /* a hash of its MIG devices: another if it was made anew */
    size_t listed_count; /* processes in it that the last lists named */
    uint64_t used_bytes; /* of its memory, at the end of the last window; 0: unknown */
    bool was_used;       /* a process was in it since the last GPM sample */
    struct nvml_gpm_pair gpm;
};

/* How a board is partitioned. */
struct nvml_mig {
    bool is_absent; /* this board, or this driver, has no MIG */
    bool is_known;  /* the layout was read */
    bool is_on;
    bool has_no_lists; /* the board's own are not permitted: those of the MIG devices are read */
    uint32_t slices, sm_count;
    struct nvml_mig_device *devices;
    size_t device_count;
    struct nvml_gpu_instance *instances;
    size_t instance_count;
};

struct nvml_gpu {
    struct nvml_shared *shared;
    uint32_t index;
    struct nvml_device *device; /* NULL: not opened yet */
    uint64_t open_us;           /* when to try that again */
    struct nvml_event_set *events;
    char uuid[NVML_UUID_BYTES], name[NVML_NAME_BYTES];
    char pci[SAMPLE_PCI_BYTES]; /* "" if unknown */
    uint64_t polls;
    uint64_t passed_us;   /* the newest sample that was passed on */
    uint64_t used_us;     /* when a process was listed last, at the end of a window */
    uint64_t describe_us; /* when to pass on what it is, by the monotonic clock */

    uint64_t last_sample_us; /* the newest utilisation sample that was read */
    void *entries;           /* of the last list or samples, as the library writes them */
    uint32_t entry_capacity;

    struct gpu_pids pids;                  /* of the last lists */
    uint64_t list_hash[SAMPLE_LIST_KINDS]; /* of the pids in each, as last passed on */

    /* Pids that the accounting buffer held in the last window, where that mode is on. */
    bool accounting_begun;
    uint32_t *accounted;
    uint32_t accounted_count;

    struct nvml_gpm_pair gpm;             /* of the whole board */
    struct nvml_gpm_metrics *gpm_metrics; /* NULL: the board has no GPM */

    struct nvml_mig mig;

    bool is_vgpu_host;
    size_t vgpu_count;            /* as of the last window */
    uint64_t last_vgpu_sample_us; /* the newest that was read */
    void *vgpu_samples;

    /* Decided by the first clear answer, and never changed: the two must not be mixed. */
    enum { ENERGY_UNKNOWN, ENERGY_COUNTER, ENERGY_INTEGRAL } energy;
    uint64_t align_us; /* when the reads are next put behind a tick */
    uint64_t integral_uj, integral_us;
};

/* A read in progress. */
struct nvml_poll {
    struct nvml_gpu *gpu;
    struct batch *batch;
    struct error *err;
    uint64_t now_us;
    bool window_ends;
    bool aligned; /* it ended right behind a tick of the counter */
    int result;   /* -ENODEV and -ENOMEM end it; after another error the other calls are made */
};

/* True if the driver has this function of a device and the call succeeded. If not, and it matters,
 * the poll keeps the reason. */
#define NVML_POLL_CALL(poll, what, function, ...)                                                  \
    ((poll)->gpu->shared->library.function &&                                                      \
     nvml_poll_succeeded(poll, what,                                                               \
                         (poll)->gpu->shared->library.function((poll)->gpu->device, __VA_ARGS__)))

bool nvml_poll_succeeded(struct nvml_poll *poll, const char *what, int code);
bool nvml_poll_is_over(const struct nvml_poll *poll);
void nvml_poll_out_of_memory(struct nvml_poll *poll);

/* Adds a sample of this GPU, of now if it has no time. */
void nvml_poll_add(struct nvml_poll *poll, struct sample sample);

/* Each utilisation sample once, by its own time. */
void nvml_poll_read_samples(struct nvml_poll *poll);

/* The process lists; unchanged ones only at the end of a window. True if a process came or went. */
bool nvml_poll_read_lists(struct nvml_poll *poll);

/* Processes that were too short for lists and samples, where accounting mode is on. */
void nvml_poll_read_accounting(struct nvml_poll *poll);

void nvml_poll_read_utilisation(struct nvml_poll *poll);
void nvml_poll_read_gauges(struct nvml_poll *poll);
/* Of the board, or (with its id) of a GPU instance, of which it is a MIG device. Returns the bytes
 * in use; 0 if they are not known. */
uint64_t nvml_poll_read_memory(struct nvml_poll *poll, struct nvml_device *device,
                               uint32_t instance);
/* All memory of the board; 0: unknown. */
uint64_t nvml_poll_memory_bytes(struct nvml_poll *poll);
/* A value of the driver's, which names its type; 0 if it is negative. */
uint64_t nvml_value_number(int type, union nvml_value value);

/* GPM needs Hopper or newer; without it there is nothing to close. */
void nvml_gpm_open(struct nvml_gpu *gpu);
void nvml_gpm_close(struct nvml_gpu *gpu);
void nvml_gpm_pair_done(const struct nvml_library *nvml, struct nvml_gpm_pair *pair);
/* Of the whole board, and of the GPU instances in which processes are listed. */
void nvml_poll_read_gpm(struct nvml_poll *poll);
void nvml_poll_read_instance_gpm(struct nvml_poll *poll);
/* A board without GPM asks for the counters of another library while it has processes, and passes
 * them on as if they were GPM: before the other samples, as they are older. */
void nvml_poll_want_counters(struct nvml_poll *poll);
void nvml_poll_pass_counters(struct nvml_poll *poll);

/* Passes the layout on if it has changed, or `always`. */
void nvml_poll_read_layout(struct nvml_poll *poll, bool always);
void nvml_poll_read_instance_memory(struct nvml_poll *poll);
void nvml_mig_done(const struct nvml_library *nvml, struct nvml_mig *mig);
struct nvml_gpu_instance *nvml_mig_find(const struct nvml_mig *mig, uint32_t gpu_instance);
/* The profile in the name of a MIG device, "NVIDIA A100-SXM4-40GB MIG 1g.5gb"; "" if none. */
const char *nvml_mig_profile(const char *name);
/* Slices and SMs of the largest GPU instance that the board can have; 0 if unknown. */
void nvml_mig_size(const struct nvml_library *nvml, struct nvml_device *device,
                   uint32_t *ret_slices, uint32_t *ret_sm_count);

/* The vGPUs of a host, and what they used: each sample once, by its own time. */
void nvml_poll_read_vgpus(struct nvml_poll *poll);
void nvml_poll_read_vgpu_samples(struct nvml_poll *poll);

void nvml_check(const struct source_context *context, struct report *report);
