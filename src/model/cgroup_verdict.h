/* Which cgroups are workloads. */
#pragma once

#include "model/workload.h"

enum cgroup_verdict {
    CGROUP_IS_PASSAGE,  /* no workload, but some may be below */
    CGROUP_IS_WORKLOAD, /* and all below is part of it */
    CGROUP_IS_HOLDER,   /* a workload, and below may be others: a unit, a user */
    CGROUP_IS_NOTHING,  /* neither it nor what is below */
};

/*
 * Whose is this path ("/a/b", as in /proc/PID/cgroup)? Writes the owner of workloads and holders. A
 * directory whose owner is that of the holder around it is part of that one.
 */
typedef enum cgroup_verdict cgroup_find_owner(void *context, const char *path,
                                              struct workload_owner *ret_owner);
