/* What the operator decides about the bookkeeping; the words of the flags. */
#pragma once

/* Who pays the idle floor of a GPU. */
enum idle_policy {
    IDLE_POLICY_PROPORTIONAL, /* the active, by time share; `idle` if nobody is */
    IDLE_POLICY_EQUAL,        /* the workloads that hold a context, equally */
    IDLE_POLICY_RESERVED,     /* the workloads that were given the GPU, equally */
    IDLE_POLICY_NONE,         /* nobody: floor and context step are `idle` */
};

/* Who pays what the node draws beyond its processors, memory and GPUs. */
enum node_overhead_policy {
    NODE_OVERHEAD_POLICY_PROPORTIONAL, /* whoever drew the others' joules, in proportion to them */
    NODE_OVERHEAD_POLICY_EQUAL,        /* the workloads that are there, equally */
    NODE_OVERHEAD_POLICY_NONE,         /* nobody: it is `idle` */
};

/* Does the meter of the whole node measure the GPUs, too? */
enum includes_gpus {
    INCLUDES_GPUS_AUTO, /* as its kind is known to, or as steps of their power show */
    INCLUDES_GPUS_YES,
    INCLUDES_GPUS_NO,
};

/* What is shown. All of it is booked, whatever is chosen here. */
enum expose {
    EXPOSE_ALL,
    EXPOSE_CONTAINERS, /* workloads that are containers, in pods and outside; no processes */
    EXPOSE_PODS,       /* workloads that are containers of pods; no processes */
};

/* Exporters whose names are shown besides our own; bits. */
enum compat {
    COMPAT_MY_GPU_EXPORTER = 1 << 0,
};

/* How active energy is divided among those who shared a window. */
enum attribution_method {
    ATTRIBUTION_TIMESHARE, /* by utilisation samples won */
    ATTRIBUTION_INTENSITY, /* by time, and by what each was learned to draw */
};
