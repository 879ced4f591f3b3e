/* A GPU that a container can use, as far as somebody says so. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "identity/kubernetes/pod_resources.h"
#include "model/snapshot.h"

struct attachment {
    const char *container_id;   /* 64 hex digits */
    const char *container_name; /* "" if unknown */
    enum allocation_kind kind;
    /* Of ALLOCATION_GPU_UUID it may be the front of a uuid alone: users are allowed to cut them. */
    const char *id;
    uint32_t index;
    uint64_t memory_bytes; /* that come with it (a MIG profile); 0: not known */
    /* It can use every device of the node; nobody is known to have given it this one. Agents of the
     * node are such, and hardly ever use the GPUs that they could. */
    bool is_privileged;
};

/* Not MIG devices by their own uuid: only the driver knows whose they are. */
bool attachment_is_of(const struct attachment *attachment, const struct snapshot_gpu *gpu);
