/*
 * Node: a cgroup, by its path; and all of them, found by parent and name. tree.c's inner half.
 *
 * Whoever may make and remove cgroups decides when nodes come and go. So nobody keeps a pointer to
 * one, the nodes themselves included: what is kept is a handle, which is looked up at each use, and
 * which leads nowhere once its node is gone. A pointer is good until the next node is removed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/map.h"
#include "sources/cgroup_hierarchy.h"

enum {
    CGROUP_NODES_MAX = 1 << 17,
    CGROUP_DEPTH_MAX = 32,
    CGROUP_PATH_BYTES = 4096, /* more than the kernel shows in /proc/PID/cgroup */
    CGROUP_UNWATCHED = -1,
};

struct cgroup_handle {
    uint32_t index;
    uint64_t generation; /* no two nodes have the same; 0: no node */
};

struct cgroup_node {
    struct cgroup_handle self;
    struct cgroup_handle parent, first_child, next, previous;
    char *name;
    uint64_t inodes[HIERARCHIES_MAX]; /* 0: it is not in that hierarchy */
    int watches[HIERARCHIES_MAX];
    int events_watch; /* of its cgroup.events, which only v2 has */
    bool is_workload;
    bool is_open;    /* others may be below */
    bool is_leaving; /* one hierarchy has lost it, and all will */
    bool is_older;   /* it was there by another name, or as another node */
    uint8_t depth;
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
    uint64_t generations;
    struct map by_name;
};

void cgroup_nodes_done(struct cgroup_nodes *nodes);

/* NULL: it is gone, or the handle is of no node. */
struct cgroup_node *cgroup_nodes_get(const struct cgroup_nodes *nodes, struct cgroup_handle handle);

/* The parent of the root is NULL. NULL: no memory, too deep, or there are too many. */
struct cgroup_node *cgroup_nodes_add(struct cgroup_nodes *nodes, struct cgroup_node *parent,
                                     const char *name);
struct cgroup_node *cgroup_nodes_find(const struct cgroup_nodes *nodes,
                                      const struct cgroup_node *parent, const char *name);

/* It has no children any more. */
void cgroup_nodes_remove(struct cgroup_nodes *nodes, struct cgroup_node *node);

/* The innermost workload that it is in, or NULL. */
struct cgroup_node *cgroup_nodes_find_around(const struct cgroup_nodes *nodes,
                                             const struct cgroup_node *node);

/* "/a/b", and "/" of the root. False: it does not fit. */
bool cgroup_nodes_get_path(const struct cgroup_nodes *nodes, const struct cgroup_node *node,
                           char path[static CGROUP_PATH_BYTES]);
