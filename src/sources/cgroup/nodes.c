/* The nodes of a tree, and their inotify watches. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#include "core/macros.h"
#include "sources/cgroup/tree.h"

struct node_key {
    struct cgroup_handle parent;
    const char *name;
};

struct cgroup_node *cgroup_nodes_get(const struct cgroup_nodes *nodes, struct cgroup_handle handle)
{
    struct cgroup_node *node = handle.index < nodes->capacity ? nodes->items[handle.index] : NULL;

    return node && node->self.generation == handle.generation ? node : NULL;
}

static uint64_t name_hash(struct cgroup_handle parent, const char *name)
{
    return map_hash_u64(map_hash_bytes(span_of(name)) ^ parent.generation);
}

static bool has_key(const void *context, uint32_t value, const void *key)
{
    const struct cgroup_nodes *nodes = context;
    const struct node_key *wanted = key;
    const struct cgroup_node *node = nodes->items[value];

    return node->parent.generation == wanted->parent.generation &&
           strcmp(node->name, wanted->name) == 0;
}

struct cgroup_node *cgroup_nodes_find(const struct cgroup_nodes *nodes, struct cgroup_handle parent,
                                      const char *name)
{
    struct node_key key = {parent, name};
    uint32_t index;

    return map_find(&nodes->by_name, name_hash(parent, name), has_key, nodes, &key, &index)
               ? nodes->items[index]
               : NULL;
}

bool cgroup_nodes_are_full(const struct cgroup_nodes *nodes)
{
    return nodes->count >= CGROUP_NODES_MAX;
}

/* False: there are too many, or no memory. */
static bool find_free_index(struct cgroup_nodes *nodes)
{
    size_t capacity = MAX(nodes->capacity * 2, (size_t)64);
    struct cgroup_node **grown;

    while (nodes->lowest_free < nodes->capacity && nodes->items[nodes->lowest_free])
        nodes->lowest_free++;
    if (nodes->lowest_free < nodes->capacity)
        return true;
    grown =
        cgroup_nodes_are_full(nodes) ? NULL : reallocarray(nodes->items, capacity, sizeof(void *));
    if (!grown)
        return false;
    while (nodes->capacity < capacity)
        grown[nodes->capacity++] = NULL;
    nodes->items = grown;
    return true;
}

struct cgroup_node *cgroup_nodes_add(struct cgroup_nodes *nodes, struct cgroup_node *parent,
                                     const char *name)
{
    struct cgroup_node *node, *sibling;

    if ((parent && parent->depth >= CGROUP_DEPTH_MAX) || !find_free_index(nodes) ||
        !(node = calloc(1, sizeof(*node) + strlen(name) + 1)))
        return NULL;
    memcpy(node->name, name, strlen(name));
    node->self = (struct cgroup_handle){(uint32_t)nodes->lowest_free, ++nodes->generations};
    for (size_t i = 0; i < CGROUP_WATCHES; i++)
        node->watches[i] = CGROUP_UNWATCHED;
    for (size_t i = 0; i < HIERARCHIES_MAX; i++)
        node->dirs[i].delegated_to = CGROUP_NOT_DELEGATED;
    if (parent) {
        node->parent = parent->self;
        node->depth = (uint8_t)(parent->depth + 1);
    }
    if (map_insert(&nodes->by_name, name_hash(node->parent, name), node->self.index) < 0) {
        free(node);
        return NULL;
    }
    nodes->items[node->self.index] = node;
    nodes->count++;
    if (!parent)
        return node;
    node->next = parent->first_child;
    sibling = cgroup_nodes_get(nodes, node->next);
    if (sibling)
        sibling->previous = node->self;
    parent->first_child = node->self;
    return node;
}

void cgroup_nodes_remove(struct cgroup_nodes *nodes, struct cgroup_node *node)
{
    struct cgroup_node *next = cgroup_nodes_get(nodes, node->next);
    struct cgroup_node *previous = cgroup_nodes_get(nodes, node->previous);
    struct cgroup_node *parent = cgroup_nodes_get(nodes, node->parent);

    map_remove(&nodes->by_name, name_hash(node->parent, node->name), node->self.index);
    if (next)
        next->previous = node->previous;
    if (previous)
        previous->next = node->next;
    else if (parent)
        parent->first_child = node->next;
    nodes->items[node->self.index] = NULL;
    nodes->lowest_free = MIN(nodes->lowest_free, (size_t)node->self.index);
    nodes->count--;
    free(node);
}

void cgroup_nodes_done(struct cgroup_nodes *nodes)
{
    for (size_t i = 0; i < nodes->capacity; i++)
        free(nodes->items[i]);
    free(nodes->items);
    map_done(&nodes->by_name);
    *nodes = (struct cgroup_nodes){0};
}

struct cgroup_node *cgroup_nodes_find_around(const struct cgroup_nodes *nodes,
                                             const struct cgroup_node *node)
{
    struct cgroup_node *outer = cgroup_nodes_get(nodes, node->parent);

    while (outer && !outer->is_workload)
        outer = cgroup_nodes_get(nodes, outer->parent);
    return outer;
}

bool cgroup_nodes_get_path(const struct cgroup_nodes *nodes, const struct cgroup_node *node,
                           char path[static CGROUP_PATH_BYTES])
{
    size_t at = CGROUP_PATH_BYTES - 1;

    path[at] = '\0';
    if (node->depth == 0)
        path[--at] = '/';
    for (; node && node->depth > 0; node = cgroup_nodes_get(nodes, node->parent)) {
        size_t len = strlen(node->name);

        if (len + 1 > at)
            return false;
        at -= len;
        memcpy(path + at, node->name, len);
        path[--at] = '/';
    }
    memmove(path, path + at, CGROUP_PATH_BYTES - at);
    return node != NULL;
}

static uint32_t delegated_to(const struct cgroup_node *node)
{
    size_t i = 0;

    while (i < HIERARCHIES_MAX - 1 && node->dirs[i].delegated_to == CGROUP_NOT_DELEGATED)
        i++;
    return node->dirs[i].delegated_to;
}

bool cgroup_nodes_get_marked_path(const struct cgroup_nodes *nodes, const struct cgroup_node *node,
                                  char path[static CGROUP_MARKED_BYTES])
{
    size_t passed_len = 0, below_len = 0, mark_len, at;
    uint32_t uid = CGROUP_NOT_DELEGATED;
    char mark[CGROUP_MARK_BYTES];

    if (!cgroup_nodes_get_path(nodes, node, path))
        return false;
    for (; node && node->depth > 0; node = cgroup_nodes_get(nodes, node->parent)) {
        if (delegated_to(node) != CGROUP_NOT_DELEGATED) {
            uid = delegated_to(node);
            below_len = passed_len;
        }
        passed_len += strlen(node->name) + 1;
    }
    if (uid == CGROUP_NOT_DELEGATED)
        return true;
    at = strlen(path) - below_len;
    mark_len = (size_t)snprintf(mark, sizeof(mark), "//%u", uid);
    memmove(path + at + mark_len, path + at, below_len + 1);
    memcpy(path + at, mark, mark_len);
    return true;
}

/* From here on: watches. */

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
