/*
 * A read of one NVIDIA GPU in progress, and what its parts share: nvml_gpu.c opens, orders and
 * closes, nvml_processes.c reads who is there, nvml_gauges.c what is shown as it is.
 */
#pragma once

#include "sources/nvml/nvml.h"

struct nvml_gpu {
    struct nvml_shared *shared;
    uint32_t index;
    struct nvml_device *device; /* NULL: not opened yet */
    uint64_t open_us;           /* when to try that again */
    struct nvml_event_set *events;
    char uuid[NVML_UUID_BYTES], name[NVML_NAME_BYTES];
    char runtime_status[96]; /* below sysfs; "" if unknown */
    uint64_t polls;
    bool described;

    uint64_t last_sample_us; /* the newest utilisation sample that was read */
    struct nvml_process_sample *samples;
    uint32_t sample_capacity;
    char *listed; /* entries as the library writes them */
    uint32_t listed_capacity;

    /* Pids that were identified while some list named them. */
    struct known {
        uint32_t pid;
        uint32_t checks;
        uint64_t round;
        uint64_t check_us; /* when to look at it again */
        uint64_t identity; /* a hash of what was last said of it; 0: nothing yet */
    } * known;
    size_t known_count, known_capacity;
    uint64_t round;
    size_t listed_count;                   /* processes that the last lists named */
    uint64_t list_hash[SAMPLE_LIST_KINDS]; /* of the pids in each, as last passed on */

    /* Pids that the accounting buffer held in the last window, where that mode is on. */
    bool accounting_begun;
    uint32_t *accounted;
    uint32_t accounted_count;

    struct nvml_gpm_sample *gpm[2];
    uint64_t gpm_us; /* when gpm[0] was taken; 0: not yet */
    struct nvml_gpm_metrics *gpm_metrics;

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
    bool aligned; /* it ended right behind a tick of the counter */
    int result;   /* -ENODEV ends it; another error is kept while the rest is read */
};

/* Did the call succeed? If not, and it matters, the poll remembers why. */
bool nvml_poll_succeeded(struct nvml_poll *poll, const char *what, int code);
bool nvml_poll_is_over(const struct nvml_poll *poll);

/* Adds a sample of this GPU, of now if it has no time. */
void nvml_poll_add(struct nvml_poll *poll, struct sample sample);
void nvml_poll_add_gauge(struct nvml_poll *poll, enum gpu_gauge gauge, uint64_t value);

/* Each utilisation sample once, by its own time. */
void nvml_poll_read_samples(struct nvml_poll *poll);

/* The process lists; those that have not changed only if `always`. True if somebody came or went.
 */
bool nvml_poll_read_lists(struct nvml_poll *poll, bool always);

/* Processes that were too short for lists and samples, where accounting mode is on. */
void nvml_poll_read_accounting(struct nvml_poll *poll);

void nvml_poll_read_gauges(struct nvml_poll *poll);
