/* What the operator decides about the bookkeeping; the words of --idle-policy and --attribution. */
#pragma once

/* Who pays the idle floor of a GPU. */
enum idle_policy {
    IDLE_POLICY_PROPORTIONAL, /* the active, by time share; `idle` if nobody is */
    IDLE_POLICY_EQUAL,        /* the workloads that hold a context, equally */
    IDLE_POLICY_RESERVED,     /* the workloads that were given the GPU, equally */
    IDLE_POLICY_NONE,         /* nobody: floor and context step are `idle` */
};

/* What is shown. All of it is booked, whatever is chosen here. */
enum expose {
    EXPOSE_ALL,
    EXPOSE_CONTAINERS, /* workloads that are containers, in pods and outside; no processes */
    EXPOSE_PODS,       /* workloads that are containers of pods; no processes */
};

/* How active energy is divided among those who shared a window. */
enum attribution_method {
    ATTRIBUTION_TIMESHARE, /* by utilisation samples won */
    ATTRIBUTION_INTENSITY, /* by time, and by what each was learned to draw */
};
