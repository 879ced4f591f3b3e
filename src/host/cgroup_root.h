/*
 * Seeing the node's cgroups from a cgroup namespace of our own, as containers have on cgroup v2.
 *
 * There /proc/PID/cgroup shows every path from the cgroup at which the namespace begins (its root):
 * "/" is that one, "/../other" is beside it, and what stands above is not named. The node's cgroup
 * file system, mounted into the container, does name it: it is where our own process is. Neither a
 * capability nor entering the node's namespace (CAP_SYS_ADMIN) is needed for that.
 */
#pragma once

#include <stddef.h>

#include "core/span.h"
#include "host/host.h"

/*
 * Where the namespace begins, as an absolute path in malloc'ed memory; NULL if pid 1 is in it, too,
 * and all paths are what they seem. Walks the cgroup tree below the host's sysfs once, until it has
 * found us. -ENOENT: the node's tree is not there, or we are not in it; -EAGAIN: it is too large.
 */
int cgroup_root_find(const struct host *host, char **ret_root);

/*
 * Pure. Rewrites the line of cgroup v2 ("0::PATH") in the text of a /proc/PID/cgroup, in place.
 * -EFBIG: no room for that; nothing has changed. Paths that lead above the node's own root, which
 * there are not, stay as they are.
 */
int cgroup_root_apply(struct span root, char *text, size_t size_bytes, size_t *len);
