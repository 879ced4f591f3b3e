/*
 * Tree: the cgroup directories that are workloads, kept current without walking all of them:
 * inotify reports what comes and goes. A directory without a watch is listed at each update, all
 * others only by a rescan. Not thread-safe.
 *
 * A path is one node, in however many hierarchies it exists. A directory that was removed and made
 * again has another inode (measured on v1 and v2) and is another node. One that was replaced in one
 * hierarchy has ended in all: runtimes remove all of them before they make new ones. So is one that
 * has got another owner, as what is below may be another workload's: noticed when the next cgroup
 * is made in it, or by a rescan.
 *
 * Invariants, whatever happens to the directories and in whatever order events arrive:
 * - A node is in a hierarchy only if its parent is, so a parent never goes before its children.
 * - A node is in at least one hierarchy: one that leaves its last is removed at once.
 * - A directory is only opened if it has its node's inode: a late event does not lead into another
 *   directory of the same path.
 *
 * Users may create any number of cgroups in what is delegated to them. Hence the caps, one of them
 * for each workload, so that it cannot take the room of others.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/map.h"
#include "host/cgroup_delegation.h"
#include "host/cgroup_hierarchy.h"
#include "model/workload.h"

enum {
    /* The kernel has no more memory cgroups (MEM_CGROUP_ID_MAX). */
    CGROUP_WORKLOADS_MAX = 65536,
    CGROUP_NODES_MAX = 4 * CGROUP_WORKLOADS_MAX,
    CGROUP_DEPTH_MAX = 32,
    CGROUP_PATH_BYTES = 4096, /* more than the kernel shows in /proc/PID/cgroup */
    CGROUP_MARKED_BYTES = CGROUP_PATH_BYTES + CGROUP_MARK_BYTES,
    CGROUP_INNER_MAX = 2048, /* nodes inside one workload */
};

/* A watch is on a node's directory in a hierarchy, or on its cgroup.events, which only v2 has. */
enum { CGROUP_EVENTS_WATCH = HIERARCHIES_MAX, CGROUP_WATCHES, CGROUP_UNWATCHED = -1 };

/*
 * Any user who may create and remove cgroups decides when nodes come and go. So nothing keeps a
 * pointer to a node, not even another node: a handle is kept and resolved at each use, and resolves
 * to NULL once its node is gone. A pointer is valid until the next removal of a node.
 */
struct cgroup_handle {
    uint32_t index;
    uint64_t generation; /* unique; 0: no node */
};

/* A node's directory in one hierarchy. */
struct cgroup_dir {
    uint64_t inode;        /* 0: it is not in that hierarchy */
    uint32_t delegated_to; /* as cgroup_delegated_to */
};

/* UINT64_MAX: none. They apply to everything below. */
struct cgroup_limits {
    uint64_t memory_bytes;                          /* of v2; v1's memory.stat has it */
    uint64_t quota_thousandths, cpuset_thousandths; /* of a CPU */
};

struct cgroup_node {
    struct cgroup_handle self;
    struct cgroup_handle parent, first_child, next, previous;
    struct cgroup_dir dirs[HIERARCHIES_MAX];
    int watches[CGROUP_WATCHES]; /* inotify's numbers */
    bool is_workload;
    bool is_open;    /* workloads may be below */
    bool is_leaving; /* one hierarchy has lost it, and all will */
    bool is_older;   /* it existed by another name, or as another node */
    uint8_t depth;
    uint32_t inner_count; /* nodes inside this workload */
    uint64_t owner_hash;
    uint64_t listing; /* the last one that showed it */
    uint64_t update;  /* that added it */

    /* The reader's. */
    uint32_t workload;
    uint32_t limit_turn;
    struct cgroup_limits limits;

    char name[];
};

/* All nodes, by handle, and by parent and name. Zeroed, it is empty. */
struct cgroup_nodes {
    struct cgroup_node **items; /* NULL: free */
    size_t count, capacity;
    size_t lowest_free;
    uint64_t generations;
    struct map by_name;
};

void cgroup_nodes_done(struct cgroup_nodes *nodes);

/* NULL: it is gone, or the handle is of no node. */
struct cgroup_node *cgroup_nodes_get(const struct cgroup_nodes *nodes, struct cgroup_handle handle);

/* The root's parent is NULL. NULL: out of memory, too deep, or too many. */
struct cgroup_node *cgroup_nodes_add(struct cgroup_nodes *nodes, struct cgroup_node *parent,
                                     const char *name);
struct cgroup_node *cgroup_nodes_find(const struct cgroup_nodes *nodes, struct cgroup_handle parent,
                                      const char *name);

/* It must have no children. */
void cgroup_nodes_remove(struct cgroup_nodes *nodes, struct cgroup_node *node);

/* Are there as many nodes as there may be? */
bool cgroup_nodes_are_full(const struct cgroup_nodes *nodes);

/* The innermost workload around it, or NULL. */
struct cgroup_node *cgroup_nodes_find_around(const struct cgroup_nodes *nodes,
                                             const struct cgroup_node *node);

/* "/a/b", and "/" for the root. False: it does not fit. */
bool cgroup_nodes_get_path(const struct cgroup_nodes *nodes, const struct cgroup_node *node,
                           char path[static CGROUP_PATH_BYTES]);

/* The same with a mark of delegation (host/cgroup_delegation.h), as processes in it have it. What
 * was delegated in one hierarchy counts for all. */
bool cgroup_nodes_get_marked_path(const struct cgroup_nodes *nodes, const struct cgroup_node *node,
                                  char path[static CGROUP_MARKED_BYTES]);

/* Called during updates only. Keep a node's handle, not its address. */
struct cgroup_observer {
    cgroup_find_owner *find_owner;
    /* False: no room for it. */
    bool (*appeared)(void *context, struct cgroup_node *node, const struct workload_owner *owner);
    void (*joined)(void *context, struct cgroup_node *node); /* one more hierarchy, or the first */
    /* Its first process came or its last one went, or (v1) a first hierarchy has lost it: it may be
     * about to end, and this is the time for a last read. */
    void (*changed)(void *context, struct cgroup_node *node);
    void (*ended)(void *context, struct cgroup_node *node); /* before the workloads around it */
    void *context;
};

struct cgroup_tree {
    const struct hierarchies *hierarchies;
    bool sees_owners[HIERARCHIES_MAX];
    struct cgroup_observer observer;
    struct cgroup_nodes nodes;
    int inotify_fd;                  /* -1: the kernel has none */
    struct map by_watch;             /* to the index of a node */
    size_t watch_count, watches_max; /* of directories; of all: the kernel's limit */
    /* Of cgroup.events. Without one, only a workload's last moments go unseen: so directories
     * come first. */
    size_t events_watch_count, events_watches_max;
    bool is_behind;         /* an event was lost: the next update is a rescan */
    size_t unwatched_count; /* directories that must be listed */
    size_t workload_count, workloads_max;
    uint64_t listings, updates;
    bool is_moving;        /* what is found at present had another name before */
    uint64_t left_out;     /* directories beyond the caps, at the last rescan and since */
    bool misses_workloads; /* some of them are in no workload that would have their usage */
};

/* 0 or -ENOMEM. The arguments stay the caller's. The tree is empty until its first rescan. It has
 * at most CGROUP_WORKLOADS_MAX workloads. */
int cgroup_tree_init(struct cgroup_tree *tree, const struct hierarchies *hierarchies,
                     const struct cgroup_observer *observer);
void cgroup_tree_done(struct cgroup_tree *tree);

/* Finds what has come and gone; with `rescan`, lists all directories. May block as long as the file
 * system does. */
void cgroup_tree_update(struct cgroup_tree *tree, bool rescan);

/* Handles queued events, a few hundred at most, and lists only new directories: cheap enough to
 * call whenever `inotify_fd` is readable. */
void cgroup_tree_attend(struct cgroup_tree *tree);

/* A descriptor of its directory in that hierarchy, if that is still the same one; or -errno. */
int cgroup_tree_open(const struct cgroup_tree *tree, const struct cgroup_node *node,
                     size_t hierarchy);

/*
 * Watches, for tree.c only. `slot` is a hierarchy or CGROUP_EVENTS_WATCH. A directory is watched
 * before it is listed, so that nothing is missed in between.
 */
struct cgroup_node *cgroup_watches_find(const struct cgroup_tree *tree, int number,
                                        size_t *ret_slot);
void cgroup_watches_add_dir(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy,
                            int dir_fd);
void cgroup_watches_add_events(struct cgroup_tree *tree, struct cgroup_node *node);

/* The kernel has ended the watch: a directory must be listed from now on. */
void cgroup_watches_forget(struct cgroup_tree *tree, struct cgroup_node *node, size_t slot);

/* Ends a watch, if there is one; the directory need not be listed either. */
void cgroup_watches_remove(struct cgroup_tree *tree, struct cgroup_node *node, size_t slot);
