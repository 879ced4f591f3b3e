/*
 * Where each cgroup controller lives. With v1 every controller, or a few together, have a tree of
 * directories of their own; with v2 there is one for all; a hybrid has both, and each controller is
 * in one of the two. A cgroup has the same path in all of them, but need not be in all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "host/host.h"

enum cgroup_controller {
    CONTROLLER_CPU,
    CONTROLLER_CPUACCT, /* v1 only */
    CONTROLLER_MEMORY,
    CONTROLLER_IO, /* "blkio" in v1 */
    CONTROLLER_PIDS,
    CONTROLLER_RDMA,
    CONTROLLER_HUGETLB,
    CONTROLLERS,
};

/* Each controller may be mounted by itself, and v2 beside them. */
enum { HIERARCHIES_MAX = CONTROLLERS + 1, HIERARCHY_NONE = -1 };

struct hierarchies {
    int fds[HIERARCHIES_MAX]; /* of their roots */
    size_t count;
    int unified; /* index of v2, or HIERARCHY_NONE */
    /* Index. Of a controller that v1 does not have, `unified`: whether v2 has it shows in the files
     * of each cgroup. */
    int homes[CONTROLLERS];
};

/*
 * Finds them by the mountinfo of the host's procfs; mount points are taken as below the host's
 * sysfs or rootfs, wherever that is mounted. 0, or -ENOENT: there are none.
 */
int hierarchies_open(const struct host *host, struct hierarchies *ret_hierarchies);
void hierarchies_close(struct hierarchies *hierarchies);

/* A line of mountinfo that is about cgroups. */
struct hierarchy_mount {
    bool unified;
    uint32_t controllers; /* bits of enum cgroup_controller */
    char point[4096];     /* unescaped */
};

/* Pure. False: of another kind, or malformed, or of a part of the tree only, as containers get it:
 * there the paths are not the node's. */
bool hierarchy_parse_mount(struct span line, struct hierarchy_mount *ret_mount);
