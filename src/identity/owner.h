/*
 * The owner rule: the innermost pod, batch job or VM around a process, else its container, else its
 * machine (LXC, nspawn), else its unit, else its user, else the system. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "identity/cgroup_path.h"
#include "model/workload.h"

#define OWNER_UID_UNKNOWN UINT32_MAX

/*
 * `uid` is that of the process, for where the path names no user.
 *
 * A monitor (conmon, slurmstepd, ...) is part of what runs workloads, not of the one that it looks
 * after: it is the service's that it belongs to (or slurmstepd.scope's), else the user's or the
 * system's.
 */
void owner_find(const struct cgroup_place *place, uint32_t uid, struct workload_owner *ret_owner);

/* Both steps: from the text of /proc/PID/cgroup. A text that says nothing is the user's; without a
 * uid, too, it is a WORKLOAD_PROCESS with the id "", which the caller fills in. */
void owner_of_cgroup_file(struct span text, uint32_t uid, struct workload_owner *ret_owner);
