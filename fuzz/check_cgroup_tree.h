/* The invariants of a tree of cgroups (tree.h), and what it must hold after an update. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "sources/cgroup/tree.h"

static void check_that(bool is_true)
{
    if (!is_true)
        abort();
}

/* In how many hierarchies it is; its parent is in all of them. */
static size_t check_place(const struct cgroup_tree *tree, const struct cgroup_node *node)
{
    const struct cgroup_node *parent = cgroup_nodes_get(&tree->nodes, node->parent);
    size_t count = 0;

    check_that(node->depth == 0 ? !parent : parent && node->depth == parent->depth + 1);
    check_that(node->depth == 0 ||
               cgroup_nodes_find(&tree->nodes, node->parent, node->name) == node);
    for (size_t h = 0; h < tree->hierarchies->count; h++) {
        count += node->dirs[h].inode != 0;
        check_that(node->dirs[h].inode == 0 || !parent || parent->dirs[h].inode != 0);
    }
    return count;
}

static size_t count_children(const struct cgroup_tree *tree, const struct cgroup_node *node)
{
    const struct cgroup_node *child = cgroup_nodes_get(&tree->nodes, node->first_child);
    struct cgroup_handle previous = {0};
    size_t count = 0;

    for (; child; child = cgroup_nodes_get(&tree->nodes, child->next)) {
        check_that(cgroup_nodes_get(&tree->nodes, child->parent) == node);
        check_that(child->previous.generation == previous.generation);
        previous = child->self;
        count++;
    }
    return count;
}

struct tree_counts {
    size_t nodes, children, workloads, watches, unwatched, events_watches, inner;
};

static void count_watches(const struct cgroup_tree *tree, const struct cgroup_node *node,
                          struct tree_counts *counts)
{
    int unified = tree->hierarchies->unified;

    for (size_t h = 0; h < tree->hierarchies->count; h++) {
        bool is_watched = node->watches[h] != CGROUP_UNWATCHED;
        bool may_be = node->is_open && node->dirs[h].inode != 0;

        check_that(may_be || !is_watched);
        counts->watches += is_watched;
        counts->unwatched += may_be && !is_watched;
    }
    if (node->watches[CGROUP_EVENTS_WATCH] == CGROUP_UNWATCHED)
        return;
    check_that(node->is_workload && unified != HIERARCHY_NONE && node->dirs[unified].inode != 0);
    counts->events_watches++;
}

static void count_node(const struct cgroup_tree *tree, const struct cgroup_node *node,
                       struct tree_counts *counts)
{
    check_that(check_place(tree, node) > 0);
    counts->nodes++;
    counts->children += count_children(tree, node);
    counts->workloads += node->is_workload;
    counts->inner += node->inner_count;
    count_watches(tree, node, counts);
}

/* Each node is counted by all workloads around it. */
static size_t count_around(const struct cgroup_tree *tree, const struct cgroup_node *node)
{
    size_t count = 0;

    while ((node = cgroup_nodes_find_around(&tree->nodes, node)))
        count++;
    return count;
}

static void check_cgroup_tree(const struct cgroup_tree *tree)
{
    struct tree_counts counts = {0};
    size_t around = 0;

    for (size_t i = 0; i < tree->nodes.capacity; i++)
        if (tree->nodes.items[i]) {
            check_that(tree->nodes.items[i]->self.index == i);
            count_node(tree, tree->nodes.items[i], &counts);
            around += count_around(tree, tree->nodes.items[i]);
        }
    check_that(counts.nodes == tree->nodes.count);
    check_that(counts.nodes == tree->nodes.by_name.count);
    check_that(counts.children == counts.nodes - 1); /* all but the root */
    check_that(counts.workloads == tree->workload_count);
    check_that(counts.watches == tree->watch_count);
    check_that(counts.unwatched == tree->unwatched_count);
    check_that(counts.events_watches == tree->events_watch_count);
    check_that(counts.watches + counts.events_watches == tree->by_watch.count);
    check_that(counts.inner == around);
}

static const struct cgroup_node *find_by_path(const struct cgroup_tree *tree, const char *path)
{
    char other[CGROUP_PATH_BYTES];

    for (size_t i = 0; i < tree->nodes.capacity; i++)
        if (tree->nodes.items[i] &&
            cgroup_nodes_get_path(&tree->nodes, tree->nodes.items[i], other) &&
            strcmp(path, other) == 0)
            return tree->nodes.items[i];
    return NULL;
}

/* Each node is in the other tree, too, and is the same there. */
static void check_is_part_of(const struct cgroup_tree *tree, const struct cgroup_tree *other)
{
    for (size_t i = 0; i < tree->nodes.capacity; i++) {
        const struct cgroup_node *node = tree->nodes.items[i], *twin;
        char path[CGROUP_PATH_BYTES];

        if (!node)
            continue;
        check_that(cgroup_nodes_get_path(&tree->nodes, node, path));
        twin = find_by_path(other, path);
        check_that(twin);
        for (size_t h = 0; h < HIERARCHIES_MAX; h++)
            /* Who owns a workload with everything below changes nothing. */
            check_that(
                twin->dirs[h].inode == node->dirs[h].inode &&
                (!node->is_open || twin->dirs[h].delegated_to == node->dirs[h].delegated_to));
        check_that(twin->is_workload == node->is_workload && twin->is_open == node->is_open);
    }
}
