/* The devices that a cgroup may use, where version 1 tells (devices.list). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"

/* Read and write of a character device. */
bool device_rules_allow(struct span rules, uint32_t major, uint32_t minor);
bool device_rules_allow_all(struct span rules);

/* The path of the devices controller in the text of /proc/PID/cgroup. False: it has none of its
 * own, as with version 2, or one that is outside of our cgroup namespace. */
bool device_rules_find_path(struct span cgroup_file, struct span *ret_path);
