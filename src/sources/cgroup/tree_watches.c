#include "sources/cgroup/tree_watches.h"

#include <stdio.h>

static bool is_same_watch(const void *context, uint32_t value, const void *key)
{
    const struct cgroup_tree *tree = context;
    const struct cgroup_node *node = tree->nodes.items[value];
    int number = *(const int *)key;

    for (size_t i = 0; node && i < tree->hierarchies->count; i++)
        if (node->watches[i] == number)
            return true;
    return node && node->events_watch == number;
}

struct cgroup_node *tree_watches_find(const struct cgroup_tree *tree, int number)
{
    uint32_t index;

    return map_find(&tree->by_watch, map_hash_u64((uint64_t)number), is_same_watch, tree, &number,
                    &index)
               ? tree->nodes.items[index]
               : NULL;
}

/* False: it has none of that number. */
bool tree_watches_hierarchy(const struct cgroup_tree *tree, const struct cgroup_node *node,
                            int number, size_t *ret_hierarchy)
{
    for (size_t i = 0; i < tree->hierarchies->count; i++)
        if (node->watches[i] == number) {
            *ret_hierarchy = i;
            return true;
        }
    return false;
}

/* True: `number` leads to the node from now on. */
static bool keep_watch(struct cgroup_tree *tree, const struct cgroup_node *node, int number)
{
    /* The kernel has one watch for a directory, also where we see it twice. */
    if (number < 0 || tree_watches_find(tree, number))
        return false;
    if (map_insert(&tree->by_watch, map_hash_u64((uint64_t)number), node->self.index) == 0)
        return true;
    watch_remove(&tree->watch, number);
    return false;
}

void tree_watches_forget(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    if (node->watches[hierarchy] == CGROUP_UNWATCHED)
        return;
    map_remove(&tree->by_watch, map_hash_u64((uint64_t)node->watches[hierarchy]), node->self.index);
    node->watches[hierarchy] = CGROUP_UNWATCHED;
    tree->watch_count--;
    tree->unwatched_count++;
}

void tree_watches_try(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy,
                      int dir_fd)
{
    int number;

    if (node->watches[hierarchy] != CGROUP_UNWATCHED ||
        tree->watch_count + tree->events_watch_count >= tree->watches_max)
        return;
    number = watch_add(&tree->watch, dir_fd);
    if (!keep_watch(tree, node, number))
        return;
    node->watches[hierarchy] = number;
    tree->watch_count++;
    tree->unwatched_count--;
}

void tree_watches_try_events(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    char path[CGROUP_PATH_BYTES], name[CGROUP_PATH_BYTES + sizeof("/cgroup.events")];
    int number;

    if ((int)hierarchy != tree->hierarchies->unified ||
        tree->events_watch_count >= tree->events_watches_max ||
        tree->watch_count + tree->events_watch_count >= tree->watches_max ||
        !cgroup_nodes_get_path(&tree->nodes, node, path))
        return;
    snprintf(name, sizeof(name), "%s/cgroup.events", path + 1);
    number = watch_add_file(&tree->watch, tree->hierarchies->fds[hierarchy], name);
    if (!keep_watch(tree, node, number))
        return;
    node->events_watch = number;
    tree->events_watch_count++;
}

/* The kernel does not end it by itself: the file lives as long as the watch. */
void tree_watches_stop_events(struct cgroup_tree *tree, struct cgroup_node *node)
{
    int number = node->events_watch;

    if (number == CGROUP_UNWATCHED)
        return;
    map_remove(&tree->by_watch, map_hash_u64((uint64_t)number), node->self.index);
    node->events_watch = CGROUP_UNWATCHED;
    tree->events_watch_count--;
    watch_remove(&tree->watch, number);
}

void tree_watches_stop(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy)
{
    int number = node->watches[hierarchy];

    tree_watches_forget(tree, node, hierarchy);
    if (number != CGROUP_UNWATCHED)
        watch_remove(&tree->watch, number);
    tree->unwatched_count--; /* nobody has to list it either */
}
