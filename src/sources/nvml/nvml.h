/*
 * NVIDIA GPUs, through NVML.
 *
 * The source itself is one thread: it loads the library, waits for the driver and counts the GPUs.
 * Each GPU is a unit with a thread of its own (nvml_gpu.c), and every call that concerns it is made
 * there, so that one that hangs does not hold up the others. No driver, a driver that goes away and
 * a GPU that is lost are states, not errors: they cost a gap, and what comes back is picked up.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "host/proc.h"
#include "sources/nvml/nvml_library.h"
#include "sources/source.h"

extern const struct source_ops nvml_source;

/* What the threads share. It lives as long as one of them does. */
struct nvml_shared {
    atomic_uint references;
    struct nvml_library library;
    atomic_bool initialised; /* the library; it is shut down once, by the last who uses it */
    const struct source_context *context;
    struct proc_reader proc;
    char driver[NVML_DRIVER_BYTES];
    atomic_bool driver_gone; /* a call said so: everybody stops, then it is tried anew */
    atomic_bool running[SAMPLE_GPU_MAX]; /* the GPU has a unit */
    uint64_t polls_per_window;
};

void nvml_shared_unref(struct nvml_shared *shared);

/* nvml_gpu.c: the unit of one GPU, which its first read opens. Takes a reference. 0 or -ENOMEM. */
int nvml_gpu_new(struct nvml_shared *shared, uint32_t index, void **ret_state);
extern const struct source_ops nvml_gpu_unit;

/* nvml_check.c: the source's `check`. */
void nvml_check(const struct source_context *context, struct report *report);

/* The code means that the GPU, or the whole driver, is gone. */
bool nvml_is_gone(struct nvml_shared *shared, int code);
