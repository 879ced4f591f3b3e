/*
 * The kubelet's pod-resources API: which devices each container was given. It knows pods and
 * containers by name only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/http_client.h"
#include "core/arena.h"
#include "core/error.h"
#include "core/span.h"

/* What a device id of a plugin stands for. */
enum allocation_kind {
    ALLOCATION_GPU_UUID, /* "GPU-...": `id` is the uuid */
    ALLOCATION_MIG_UUID, /* "MIG-...": `id` is the uuid, or "MIG-GPU-.../gi/ci" of old drivers */
    ALLOCATION_MINOR,    /* "nvidia0", DRA "gpu-0": `index` is the minor; `id` what is behind it */
    ALLOCATION_PCI,      /* AMD: "0000:19:00.0" */
    ALLOCATION_DRM,      /* Intel: "card0-0": `index` is the card */
    ALLOCATION_ALL,      /* "all": every GPU of the node */
};

struct allocation {
    const char *namespace, *pod, *container;
    const char *resource; /* "nvidia.com/gpu", or the DRA driver */
    enum allocation_kind kind;
    const char *id; /* without the replica */
    uint32_t index;
    bool shared; /* a replica ("::N") of time-slicing or MPS, or a shared claim */
};

struct allocation_list {
    struct allocation *items;
    size_t count, capacity;
    struct arena arena;
};

void allocation_list_init(struct allocation_list *list);
void allocation_list_done(struct allocation_list *list);

/* Pure. From a ListPodResourcesResponse; devices that are no GPUs are left out. 0, -EBADMSG (what
 * was read before counts) or -ENOMEM. */
int pod_resources_parse(struct span message, struct allocation_list *list);

/* Pure. False: this device is no GPU that we know. */
bool pod_resources_parse_device(struct span resource, struct span id, struct arena *arena,
                                struct allocation *ret_allocation);

int pod_resources_list(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                       struct allocation_list *list, struct error *err);
