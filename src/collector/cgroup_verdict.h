/* Which cgroups are workloads: the owner rule (identity/owner.h), for the tree of cgroups. */
#pragma once

#include "model/workload.h"

/*
 * A container is one, but not the pod around it, and neither is what is in it. Units and users hold
 * others. What is the system's is none. Pure; the context is not used.
 */
enum cgroup_verdict cgroup_verdict_find(void *context, const char *path,
                                        struct workload_owner *ret_owner);
