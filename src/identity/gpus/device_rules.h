/* The device rules of cgroup v1 (devices.list). With v2 they are a program in the kernel, which
 * only a tracer of the whole node could read. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "host/host.h"
#include "model/workload.h"

enum { DEVICE_RULES_BYTES = 64 << 10 };

/* Pure. May a character device be read and written? May all? */
bool device_rules_allow(struct span rules, uint32_t major, uint32_t minor);
bool device_rules_allow_all(struct span rules);

/* Pure. Do the rules name devices of this major number one by one? Not if a rule allows all of
 * them. A cgroup that allows everything but some devices, as Slurm's do by default, cannot be told
 * from one that allows everything: the kernel shows "a *:* rwm" for both. */
bool device_rules_are_specific(struct span rules, uint32_t major);

/* Pure. The path of the devices controller in /proc/PID/cgroup. False: there is none, as with v2,
 * or it is outside our cgroup namespace. */
bool device_rules_find_path(struct span cgroup_file, struct span *ret_path);

/* The rules of the cgroup itself, by the text of /proc/PID/cgroup. False with v2. */
bool device_rules_read(const struct host *host, struct span cgroup_file, char *rules,
                       size_t size_bytes, size_t *ret_len);

/* Those of the owner as a whole: of the outermost cgroup that is still the owner's. False also if
 * the devices controller has no cgroup of this owner. */
bool device_rules_read_owner(const struct host *host, const struct workload_owner *owner,
                             struct span cgroup_file, char *rules, size_t size_bytes,
                             size_t *ret_len);
