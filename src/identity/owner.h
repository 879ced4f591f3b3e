/*
 * The owner rule: the innermost pod, batch job or VM around a process, else its container, else
 * its unit, else its user, else the system. Pure.
 */
#pragma once

#include "identity/cgroup_path.h"
#include "model/workload.h"

#define OWNER_UID_UNKNOWN UINT32_MAX

/* `uid` is that of the process, for where the path names no user. */
void owner_find(const struct cgroup_place *place, uint32_t uid, struct workload_owner *ret_owner);

/* Both steps: from the text of /proc/PID/cgroup. A text that says nothing is the user's. */
void owner_of_cgroup_file(struct span text, uint32_t uid, struct workload_owner *ret_owner);
