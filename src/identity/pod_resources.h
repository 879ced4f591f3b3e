/* The kubelet's pod-resources API: the devices allocated to each container, by the names of pod and
 * container only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/http_client.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/span.h"

/* Default path, below the host's root. */
#define POD_RESOURCES_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"

/* The meaning of a device id. */
enum allocation_kind {
    ALLOCATION_GPU_UUID, /* NVIDIA "GPU-...": `id` is the uuid */
    ALLOCATION_MIG_UUID, /* "MIG-...": `id` is the uuid, or "MIG-GPU-.../gi/ci" of old drivers */
    ALLOCATION_MINOR,    /* NVIDIA "nvidia0", DRA "gpu-0": `index` is the minor; `id` is "", or a
                          * part of that GPU: "gi1", "mig-2g47gb-14-0" */
    ALLOCATION_TEGRA,    /* NVIDIA "tegra": the GPU inside the processor */
    ALLOCATION_PCI,      /* AMD, Intel, virtual machines: `id` is "0000:19:00.0" */
    ALLOCATION_CARD,     /* Intel "card0-0": `index` is the card */
    ALLOCATION_XCP,      /* AMD "amdgpu_xcp_3": `index` is the partition, over all GPUs */
    ALLOCATION_ALL,      /* NVIDIA "all" (WSL): every GPU of the node */
    ALLOCATION_INDEX,    /* NVIDIA "1": `index` is NVML's; `id` is "", or the number of a MIG device
                          * on it. From runtimes, and from the CDI names of claims */
    ALLOCATION_ORDINAL,  /* Slurm "1": `index` counts by device nodes or by PCI addresses, depending
                          * on its configuration. From environments */
    ALLOCATION_RENDER,   /* AMD's DRA "gpu-0-128", "/dev/dri/renderD128": `index` is the minor */
};

/* A GPU may be in several, even of one container. Texts are as in struct container. */
struct allocation {
    const char *namespace, *pod, *container;
    const char *resource; /* "nvidia.com/gpu", or the DRA driver */
    enum allocation_kind kind;
    const char *id; /* without the replica; "" for kinds without one */
    uint32_t index;
    bool is_claim; /* of DRA */
    bool shared; /* by its id: a replica ("::N", "vgpuN", "card0-1"), or a claim with a share id */
};

enum { ALLOCATIONS_MAX = 65536 }; /* more are left out */

struct allocation_list {
    struct allocation *items;
    size_t count, capacity;
    struct arena arena;
};

void allocation_list_init(struct allocation_list *list);
void allocation_list_done(struct allocation_list *list);

/* Pure. A ListPodResourcesResponse; devices that are no GPUs, and invalid entries, are left out. 0,
 * -EBADMSG (no such message; what was read before counts) or -ENOMEM. */
int pod_resources_parse(struct span message, struct allocation_list *list);

/* Pure. Leaves the pod empty. 1, 0: no known kind of GPU, or -ENOMEM. */
int pod_resources_parse_device(struct span resource, struct span id, struct arena *arena,
                               struct allocation *ret_allocation);

/* Adds every GPU that was allocated to a container. May block for timeout_us. 0 or -errno with a
 * text; what was added before counts. As http_client_do, and -EAGAIN (rate limit: back off),
 * -EOPNOTSUPP (no such API), -EACCES, -EREMOTEIO, -EBADMSG. */
int pod_resources_list(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                       struct allocation_list *list, struct error *err);
