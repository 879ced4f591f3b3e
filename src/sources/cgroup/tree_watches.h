/*
 * The watches of a tree: which node each leads to. A directory is watched before it is listed, so
 * that nothing comes between. The tree's own.
 */
#pragma once

#include "sources/cgroup/tree.h"

/* The node that a watch of this number is of, and the hierarchy if it is of a directory. NULL and
 * false: there is none. */
struct cgroup_node *tree_watches_find(const struct cgroup_tree *tree, int number);
bool tree_watches_hierarchy(const struct cgroup_tree *tree, const struct cgroup_node *node,
                            int number, size_t *ret_hierarchy);

/* Watches a node's directory, or its cgroup.events, if there is room for one more. */
void tree_watches_try(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy,
                      int dir_fd);
void tree_watches_try_events(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy);

/* The kernel has ended the watch of a directory: it must be listed from now on. */
void tree_watches_forget(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy);

/* Ends a watch: nobody has to list the directory either. */
void tree_watches_stop(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy);
void tree_watches_stop_events(struct cgroup_tree *tree, struct cgroup_node *node);
