/* Policies that the operator chooses by flags. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/workload.h"

/* Who is charged for the idle floor of a GPU. */
enum idle_policy {
    IDLE_POLICY_PROPORTIONAL, /* active workloads, by time share; `idle` if there are none */
    IDLE_POLICY_EQUAL,        /* workloads with a context, equally */
    IDLE_POLICY_RESERVED,     /* workloads that the GPU was allocated to, equally */
    IDLE_POLICY_NONE,         /* floor and context step are `idle` */
};

/* Idle power that the operator knows, instead of what is learned. */
enum { GPU_IDLE_POWERS_MAX = 65, GPU_IDLE_MW_MAX = 3000000 };

struct gpu_idle_power {
    const char *gpu; /* UUID or index; "": all that have none of their own */
    uint32_t mw;
};

struct gpu_idle_powers {
    struct gpu_idle_power items[GPU_IDLE_POWERS_MAX];
    size_t count;
};

/* Of this GPU, or NULL: it is learned. `powers` may be NULL. */
const struct gpu_idle_power *gpu_idle_find(const struct gpu_idle_powers *powers, uint32_t index,
                                           const char *uuid);

/* Who is charged for what the node draws beyond its processors, memory and GPUs. */
enum node_overhead_policy {
    NODE_OVERHEAD_POLICY_PROPORTIONAL, /* in proportion to the joules of the other meters */
    NODE_OVERHEAD_POLICY_EQUAL,        /* all workloads, equally */
    NODE_OVERHEAD_POLICY_NONE,         /* it is `idle` */
};

/* Does the meter of the whole node include the GPUs? */
enum includes_gpus {
    INCLUDES_GPUS_AUTO, /* by what is known of its kind, or by correlated steps of power */
    INCLUDES_GPUS_YES,
    INCLUDES_GPUS_NO,
};

/* What is shown. Everything is booked regardless. */
enum expose {
    EXPOSE_ALL,
    EXPOSE_CONTAINERS, /* containers, in pods and outside; no processes */
    EXPOSE_PODS,       /* containers of pods; no processes */
};

static inline bool expose_has(enum expose expose, enum workload_kind kind)
{
    return expose == EXPOSE_ALL || kind == WORKLOAD_POD ||
           (expose == EXPOSE_CONTAINERS && kind == WORKLOAD_CONTAINER);
}

/* Other exporters whose metric names are shown, too; bits. */
enum compat {
    COMPAT_MY_GPU_EXPORTER = 1 << 0,
    COMPAT_DCGM_EXPORTER = 1 << 1,
    COMPAT_KEPLER = 1 << 2,
    COMPAT_CEEMS = 1 << 3,
};

/* How active energy is divided among the processes of a window. */
enum attribution_method {
    ATTRIBUTION_TIMESHARE, /* by utilisation samples won */
    ATTRIBUTION_INTENSITY, /* by time share, weighted by each process's learned power */
};
