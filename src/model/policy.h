/* What the operator decides about the bookkeeping; the words of --idle-policy and --attribution. */
#pragma once

/* Who pays the idle floor of a GPU. */
enum idle_policy {
    IDLE_POLICY_PROPORTIONAL, /* the active, by time share; `idle` if nobody is */
    IDLE_POLICY_EQUAL,        /* the workloads that hold a context, equally */
    IDLE_POLICY_NONE,         /* nobody: floor and context step are `idle` */
};

/* How active energy is divided among those who shared a window. */
enum attribution_method {
    ATTRIBUTION_TIMESHARE, /* by utilisation samples won */
};
