/*
 * Attached: a container that can use a GPU, whether the driver shows a process of it or not. What
 * nobody is seen to use can only be used by one of these.
 */
#pragma once

#include <stdint.h>

#include "model/workload.h"

enum { ATTACHED_MAX = 4096 }; /* of one GPU; more are left out */

struct attached {
    struct workload_owner owner;
    char name[128];        /* the container's; "" if unknown */
    uint64_t memory_bytes; /* that it asked for; 0: unknown */
    uint32_t units;        /* how often it was given the GPU (replicas); at least 1 */
};
