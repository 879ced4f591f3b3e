/*
 * Host: the roots below which the node's files are read, so that tests and containers can inject
 * them, and its cgroup root.
 *
 * In a cgroup namespace of our own /proc/PID/cgroup shows paths relative to where the namespace
 * begins (its root): "/" is that one, "/../other" is beside it. The node's cgroup file system,
 * mounted into the container, names the root: our own process is in it. That needs no capability.
 */
#pragma once

#include <stdbool.h>

#include "core/error.h"
#include "core/span.h"
#include "host/cgroup_delegation.h"
#include "host/program_key.h"

struct host {
    int procfs_fd;
    int sysfs_fd;
    int rootfs_fd;
    char *cgroup_root; /* where our cgroup namespace begins; NULL: at the node's root, or unknown */
    struct cgroup_views *cgroup_views;    /* who owns cgroups; NULL: unknown */
    struct program_secret program_secret; /* zero: programs have no keys */
    /* When the kernel started, since the epoch, for the start times of processes; 0: whoever needs
     * it reads it. It changes when the clock is set, but start times must not. */
    uint64_t boot_us;
};

/* Opens the three directories and finds cgroup_root where it can. On error nothing is left open. */
int host_open(const char *procfs_path, const char *sysfs_path, const char *rootfs_path,
              struct host *ret_host, struct error *err);
void host_close(struct host *host);

/*
 * Finds where our cgroup namespace begins: an absolute path in malloc'ed memory, or NULL if pid 1
 * is in it, too, and all paths are the node's. Walks the cgroup tree below sysfs until it finds our
 * process. -ENOENT: the node's tree is not mounted, or we are not in it; -EAGAIN: it is too large.
 */
int host_find_cgroup_root(const struct host *host, char **ret_root);

/* Pure. Does a path of /proc/PID/cgroup lead out of our cgroup namespace? */
bool host_is_outside(struct span path);

/*
 * Pure. Rewrites the line of cgroup v2 ("0::PATH") in the text of a /proc/PID/cgroup, in place.
 * -EFBIG: it does not fit, and nothing has changed. Paths that lead above the node's root stay as
 * they are.
 */
int host_apply_cgroup_root(struct span root, char *text, size_t size_bytes, size_t *len);
