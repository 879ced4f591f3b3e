/* The names by which a workload is given a GPU: NVIDIA_VISIBLE_DEVICES, CDI, and device nodes.
 * Pure; other names are left out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "identity/pod_resources.h"
#include "model/workload.h"

enum { GPU_ACCESS_MAX = 64, GPU_ACCESS_ID_BYTES = 64 };

struct gpu_access {
    enum allocation_kind kind;
    uint32_t index;
    bool is_privileged; /* these three as in struct attachment */
    bool is_unverified;
    enum allocation_source source;
    char id[GPU_ACCESS_ID_BYTES];
};

/* The GPUs of one workload, without duplicates. Those that do not fit are left out. */
struct gpu_access_list {
    struct gpu_access items[GPU_ACCESS_MAX];
    size_t count;
    size_t unknown; /* that it has besides, by its own count: nothing names them */
};

void gpu_access_add(struct gpu_access_list *list, const struct gpu_access *access);

/* Names between commas: "all", "1", "1:0" (a MIG device), "GPU-...", "MIG-...". "none", "void" and
 * "" are no GPU. */
void gpu_access_add_visible(struct gpu_access_list *list, struct span names);

/* Whole uuids between commas, as a job may be given them: "GPU-...", "MIG-...". Indices are left
 * out: what they count from depends on the devices that the job may open. */
void gpu_access_add_uuids(struct gpu_access_list *list, struct span names);

/* CDI: "nvidia.com/gpu=0". */
void gpu_access_add_cdi(struct gpu_access_list *list, struct span name);

/* "/dev/nvidia0", "/dev/dri/renderD128" */
void gpu_access_add_path(struct gpu_access_list *list, struct span path);

/* NVIDIA's nodes are 195:MINOR. Those of the driver itself (nvidiactl, nvidia-modeset) are no GPU.
 */
enum { GPU_NODE_MAJOR = 195, GPU_NODE_MINORS = 254, GPU_CONTROL_MINOR = 255 };

/* Those of AMD and Intel are 226:MINOR. Whoever may render has one of these; the others, "cardN",
 * are for screens. */
enum { DRM_NODE_MAJOR = 226, RENDER_MINOR_FIRST = 128, RENDER_MINORS = 64 };

/* The memory of a MIG profile such as "1g.10gb" or "mig-2g47gb-14-0", in bytes; 0: none in it. */
uint64_t gpu_access_profile_bytes(struct span profile);
