/*
 * The directories of the cgroup hierarchies that are workloads, kept up to date without walking
 * through all of them: the kernel says what comes and goes (watch.h). Directories that it does not
 * watch for us are listed at each update, all others only by a rescan. Not thread-safe.
 *
 * A path that is in several hierarchies is one node. Its identity are the path and the inode
 * numbers: a directory that was removed and made again is another one, and has another inode
 * (measured on v1 and v2). If it was replaced in one hierarchy, it has ended in all: runtimes
 * remove all of them before they make new ones.
 *
 * What always holds, whatever happens to the directories and in whatever order we learn of it:
 * - A node is in a hierarchy only if its parent is, so that a parent never goes before its
 * children.
 * - A node is in at least one hierarchy: one that leaves its last is removed at once.
 * - A directory is looked at only in that very directory which its parent's inode number says: an
 *   event that comes late does not lead into another one of the same path.
 *
 * The kernel also says when the last process of a workload has ended, on v2: the observer is told,
 * so that it can look once more while there is something to see.
 *
 * Users may make as many cgroups as they like in what is delegated to them. So there are caps, one
 * of them for what is inside of a workload: whoever makes too many takes nobody else's room.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/map.h"
#include "model/workload.h"
#include "sources/cgroup/node.h"
#include "sources/cgroup/watch.h"
#include "sources/cgroup_hierarchy.h"

enum {
    CGROUP_WORKLOADS_MAX = 16384,
    CGROUP_INNER_MAX = 2048, /* nodes inside of one workload */
};

/* Called during updates only. A node is valid during the call; what is kept is its handle. */
struct cgroup_observer {
    cgroup_find_owner *find_owner;
    void *owner_context;
    /* False: there is no room for it. */
    bool (*appeared)(void *context, struct cgroup_node *node, const struct workload_owner *owner);
    void (*joined)(void *context, struct cgroup_node *node); /* one more hierarchy, or the first */
    /* Its first process came or its last one went, or (v1) a first hierarchy has lost it: it may be
     * about to end. */
    void (*stirred)(void *context, struct cgroup_node *node);
    void (*ended)(void *context, struct cgroup_node *node); /* what is around it has not */
    void *context;
};

struct cgroup_tree {
    const struct hierarchies *hierarchies;
    struct cgroup_observer observer;
    struct cgroup_nodes nodes;
    struct watch watch;
    struct map by_watch;             /* to the index of a node */
    size_t watch_count, watches_max; /* of directories; and of all */
    /* Of cgroup.events. Without one, what a workload does last goes unseen, and nothing else: so
     * directories come first. */
    size_t events_watch_count, events_watches_max;
    bool is_behind;         /* something got lost: the next update is a rescan */
    size_t unwatched_count; /* directories that must be listed */
    size_t workload_count, workloads_max;
    uint64_t listings, updates;
    bool is_moving;    /* what is found at present was there by another name */
    uint64_t left_out; /* directories beyond the caps, at the last rescan and since */
};

/* 0 or -ENOMEM. What is passed stays the caller's. The tree is empty before its first rescan. */
int cgroup_tree_init(struct cgroup_tree *tree, const struct hierarchies *hierarchies,
                     const struct cgroup_observer *observer);
void cgroup_tree_done(struct cgroup_tree *tree);

/* Lower caps, for what is to come. Half of the watches may be on cgroup.events. */
void cgroup_tree_set_caps(struct cgroup_tree *tree, size_t workloads, size_t watches);

/* A lower cap of watches on cgroup.events. */
void cgroup_tree_set_events_cap(struct cgroup_tree *tree, size_t watches);

/* What has come and gone since the last time; with `rescan`, all is looked at. May block as long as
 * the file system does. */
void cgroup_tree_update(struct cgroup_tree *tree, bool rescan);

/* What the kernel has told since the last time, or some hundred events of it: nothing is listed but
 * what is new, so that it can be called often. To be called when tree.watch.fd is readable. */
void cgroup_tree_attend(struct cgroup_tree *tree);

/* A descriptor of its directory in that hierarchy, if it still is the very same one; or -errno. */
int cgroup_tree_open(const struct cgroup_tree *tree, const struct cgroup_node *node,
                     size_t hierarchy);
