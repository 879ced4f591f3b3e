/* Node: a cgroup, by its path; and all of them, found by parent and name. tree.c's inner half. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/map.h"
#include "sources/cgroup/hierarchy.h"

enum {
    CGROUP_NODES_MAX = 1 << 17,
    CGROUP_DEPTH_MAX = 32,
    CGROUP_PATH_BYTES = 4096, /* more than the kernel shows in /proc/PID/cgroup */
    CGROUP_UNWATCHED = -1,
};

struct cgroup_node {
    struct cgroup_node *parent, *children, *next, *previous;
    struct cgroup_node *around; /* the workload that it is in, or NULL */
    char *name;
    uint64_t inodes[HIERARCHIES_MAX]; /* 0: it is not in that hierarchy */
    int watches[HIERARCHIES_MAX];
    int events_watch; /* of its cgroup.events, which only v2 has */
    bool is_workload;
    bool is_open;    /* others may be below */
    bool is_leaving; /* one hierarchy has lost it, and all will */
    uint8_t depth;
    uint32_t index;
    uint32_t inner_count; /* nodes inside of this workload */
    uint64_t owner_hash;
    uint64_t listing; /* the last one that showed it */
    uint64_t update;  /* in which it was added */

    /* The reader's. */
    uint32_t workload;
    uint32_t limit_turn;
    uint64_t limit_bytes;
};

struct cgroup_nodes {
    struct cgroup_node **items; /* by index; NULL: free */
    size_t count, capacity;
    size_t lowest_free;
    struct map by_name;
};

void cgroup_nodes_done(struct cgroup_nodes *nodes);

/* The parent of the root is NULL. NULL: no memory, too deep, or there are too many. */
struct cgroup_node *cgroup_nodes_add(struct cgroup_nodes *nodes, struct cgroup_node *parent,
                                     const char *name);
struct cgroup_node *cgroup_nodes_find(const struct cgroup_nodes *nodes,
                                      const struct cgroup_node *parent, const char *name);

/* It has no children any more. */
void cgroup_nodes_remove(struct cgroup_nodes *nodes, struct cgroup_node *node);

/* "/a/b", and "/" of the root. False: it does not fit. */
bool cgroup_node_path(const struct cgroup_node *node, char path[static CGROUP_PATH_BYTES]);
