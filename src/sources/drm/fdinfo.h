/*
 * What a DRM file says of its client: /proc/PID/fdinfo/FD (the kernel's
 * Documentation/gpu/drm-usage-stats.rst). Pure.
 *
 * ROCm's compute is not in it: its queues bypass the scheduler that counts here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "model/sample.h"

enum { DRM_ENGINES_MAX = 16, DRM_ENGINE_BYTES = 24 };

/* A kind of engine of the GPU, and how long it worked for this client. It has at least one of the
 * two measures. */
struct drm_engine {
    char name[DRM_ENGINE_BYTES]; /* "render", "rcs", "gfx" */
    bool has_time, has_cycles;
    uint64_t busy_ns;      /* since the client began; may go back for a while */
    uint64_t cycles;       /* the same in cycles of the GPU; may go back, too */
    uint64_t total_cycles; /* the GPU's clock in them */
    uint32_t capacity;     /* engines of this kind, at least 1 */
};

enum drm_driver { DRM_OTHER, DRM_AMDGPU, DRM_I915, DRM_XE };

struct drm_client {
    enum drm_driver driver;
    char pdev[SAMPLE_PCI_BYTES]; /* "0000:03:00.0"; "": unknown */
    bool has_id;
    uint64_t id; /* unique on its device; several descriptors and processes may share a client */
    struct drm_engine engines[DRM_ENGINES_MAX]; /* further ones are left out */
    size_t engine_count;
    bool is_untimed; /* its driver does not tell how long engines worked for it */
    bool has_memory;
    uint64_t memory_bytes; /* resident in the GPU's own memory, not in the system's */
};

/*
 * 0, or -ENODATA: not a DRM file, or one whose driver reports nothing.
 *
 * A malformed value costs its key alone, and so does a last line that is cut off. Keys are unique;
 * should one repeat, its last valid value counts. Numbers that are too large are saturated. Linux
 * 5.14 to 5.18 report neither client ids nor times for amdgpu: the id is the pasid then.
 */
int drm_fdinfo_parse(struct span text, struct drm_client *ret_client);
