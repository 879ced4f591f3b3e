/* Host: the roots below which the node's files are read, so that tests and containers can inject
 * them. */
#pragma once

#include "core/error.h"

struct host {
    int procfs_fd;
    int sysfs_fd;
    int rootfs_fd;
    char *cgroup_root; /* where our cgroup namespace begins; NULL: it is the node's, or that is
                          unknown */
};

/* Opens the three directories; finds cgroup_root where it can (cgroup_root.h). On error nothing is
 * left open. */
int host_open(const char *procfs_path, const char *sysfs_path, const char *rootfs_path,
              struct host *ret_host, struct error *err);
void host_close(struct host *host);
