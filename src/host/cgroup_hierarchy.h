/*
 * The mounted cgroup hierarchies. In v1 each controller, or a few together, have one; in v2 all
 * share one; a hybrid has both, with each controller in one of them. A cgroup has the same path in
 * all, but need not exist in all.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

struct host;

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

/* Each controller may have one of its own, besides v2. */
enum { HIERARCHIES_MAX = CONTROLLERS + 1, HIERARCHY_NONE = -1 };

struct hierarchies {
    int fds[HIERARCHIES_MAX]; /* of their roots */
    size_t count;
    int unified; /* index of v2, or HIERARCHY_NONE */
    /* Index of each controller's hierarchy; `unified` if v1 does not have it: the files of a cgroup
     * show whether v2 does. */
    int homes[CONTROLLERS];
    /* Root of v1's cpuset, which is asked for settings only, and is none of the above: it lists no
     * cgroups of its own. -1: v2 has it. */
    int cpuset_fd;
};

/* Finds them in the mountinfo of the host's procfs; mount points are relative to the host's sysfs
 * or rootfs. 0, or -ENOENT: there are none. */
int hierarchies_open(const struct host *host, struct hierarchies *ret_hierarchies);
void hierarchies_close(struct hierarchies *hierarchies);

enum { HIERARCHY_OPTIONS_BYTES = 512 };

/* A line of mountinfo about cgroups. */
struct hierarchy_mount {
    bool unified;
    bool is_cpuset;                        /* of v1 */
    uint32_t controllers;                  /* bits of enum cgroup_controller */
    char options[HIERARCHY_OPTIONS_BYTES]; /* of v1: "rw,cpu,cpuacct"; "-" if they do not fit */
    char point[4096];                      /* unescaped */
};

/* Pure. False: of another kind, malformed, or only a part of the tree, as containers see it, where
 * paths are not the node's. */
bool hierarchy_parse_mount(struct span line, struct hierarchy_mount *ret_mount);

/* Calls `visit` with each mount of our namespace and of the node's that shows a whole tree; one
 * tree may have several. The descriptor of its root stays ours. */
void hierarchy_each_mount(const struct host *host,
                          void (*visit)(void *context, const struct hierarchy_mount *mount,
                                        int root_fd),
                          void *context);
