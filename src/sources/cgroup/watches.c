/* The inotify watches of a tree, and the node of each. */
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "sources/cgroup/tree.h"

static uint64_t watch_hash(int number)
{
    return map_hash_u64((uint64_t)number);
}

static bool is_watch_of(const void *context, uint32_t value, const void *key)
{
    const struct cgroup_tree *tree = context;
    const struct cgroup_node *node = tree->nodes.items[value];

    for (size_t i = 0; node && i < CGROUP_WATCHES; i++)
        if (node->watches[i] == *(const int *)key)
            return true;
    return false;
}

struct cgroup_node *cgroup_watches_find(const struct cgroup_tree *tree, int number,
                                        size_t *ret_slot)
{
    const struct cgroup_node *node;
    uint32_t index;
    size_t slot = 0;

    if (!map_find(&tree->by_watch, watch_hash(number), is_watch_of, tree, &number, &index))
        return NULL;
    node = tree->nodes.items[index];
    while (node->watches[slot] != number)
        slot++;
    *ret_slot = slot;
    return tree->nodes.items[index];
}

static void watch_add(struct cgroup_tree *tree, struct cgroup_node *node, size_t slot,
                      const char *path, uint32_t mask)
{
    size_t other;
    int number;

    if (tree->inotify_fd < 0 || node->watches[slot] != CGROUP_UNWATCHED ||
        tree->watch_count + tree->events_watch_count >= tree->watches_max)
        return;
    number = inotify_add_watch(tree->inotify_fd, path, mask);
    /* The kernel has one watch for a directory, even if it is mounted twice. */
    if (number < 0 || cgroup_watches_find(tree, number, &other))
        return;
    if (map_insert(&tree->by_watch, watch_hash(number), node->self.index) < 0) {
        (void)inotify_rm_watch(tree->inotify_fd, number);
        return;
    }
    node->watches[slot] = number;
    if (slot == CGROUP_EVENTS_WATCH) {
        tree->events_watch_count++;
    } else {
        tree->watch_count++;
        tree->unwatched_count--;
    }
}

void cgroup_watches_add_dir(struct cgroup_tree *tree, struct cgroup_node *node, size_t hierarchy,
                            int dir_fd)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", dir_fd);
    watch_add(tree, node, hierarchy, path,
              IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR);
}

void cgroup_watches_add_events(struct cgroup_tree *tree, struct cgroup_node *node)
{
    int root_fd = tree->hierarchies->fds[tree->hierarchies->unified];
    char cgroup[CGROUP_PATH_BYTES], path[PATH_MAX];

    if (tree->events_watch_count >= tree->events_watches_max ||
        !cgroup_nodes_get_path(&tree->nodes, node, cgroup))
        return;
    if (snprintf(path, sizeof(path), "/proc/self/fd/%d%s/cgroup.events", root_fd, cgroup) <
        (int)sizeof(path))
        watch_add(tree, node, CGROUP_EVENTS_WATCH, path, IN_MODIFY | IN_DONT_FOLLOW);
}

void cgroup_watches_forget(struct cgroup_tree *tree, struct cgroup_node *node, size_t slot)
{
    map_remove(&tree->by_watch, watch_hash(node->watches[slot]), node->self.index);
    node->watches[slot] = CGROUP_UNWATCHED;
    if (slot == CGROUP_EVENTS_WATCH) {
        tree->events_watch_count--;
    } else {
        tree->watch_count--;
        tree->unwatched_count++;
    }
}

/* The kernel does not end a watch of cgroup.events by itself: the file lives as long. */
void cgroup_watches_remove(struct cgroup_tree *tree, struct cgroup_node *node, size_t slot)
{
    int number = node->watches[slot];

    if (number != CGROUP_UNWATCHED) {
        cgroup_watches_forget(tree, node, slot);
        (void)inotify_rm_watch(tree->inotify_fd, number); /* the kernel may have ended it */
    }
    if (slot != CGROUP_EVENTS_WATCH)
        tree->unwatched_count--;
}
