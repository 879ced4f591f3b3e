/*
 * The owner rule: a process belongs to the innermost pod, batch job or VM around it, else to its
 * container, else to its machine (LXC, nspawn), else to its unit, else to its user, else to the
 * system. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "identity/cgroup_path.h"
#include "model/workload.h"

#define OWNER_UID_UNKNOWN UINT32_MAX

/*
 * `uid` is that of the process, for paths that name no user. Without a place the owner is the user;
 * without a uid either, it is a WORKLOAD_PROCESS with the id "", which the caller fills in.
 *
 * A monitor (conmon, slurmstepd, ...) belongs to the service that runs it (or to slurmstepd.scope),
 * else to the user or the system, and not to the workload that it monitors.
 */
void owner_find(const struct cgroup_place *place, uint32_t uid, struct workload_owner *ret_owner);

/* The same from the text of /proc/PID/cgroup. */
void owner_find_by_cgroup_file(struct span text, uint32_t uid, struct workload_owner *ret_owner);

/* Does a process with this /proc/PID/cgroup belong to the owner? */
bool owner_has_cgroup_file(const struct workload_owner *owner, struct span text);
