#include "sources/cgroup/node.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

struct key {
    struct cgroup_handle parent;
    const char *name;
};

static const struct cgroup_handle NO_NODE = {0};

static bool is_same(struct cgroup_handle a, struct cgroup_handle b)
{
    return a.index == b.index && a.generation == b.generation;
}

struct cgroup_node *cgroup_nodes_get(const struct cgroup_nodes *nodes, struct cgroup_handle handle)
{
    struct cgroup_node *node = handle.index < nodes->capacity ? nodes->items[handle.index] : NULL;

    return node && is_same(node->self, handle) ? node : NULL;
}

static uint64_t hash_of(struct cgroup_handle parent, const char *name)
{
    return map_hash_u64(map_hash_bytes(span_of(name)) ^ parent.generation);
}

static bool is_node(const void *context, uint32_t value, const void *key)
{
    const struct cgroup_nodes *nodes = context;
    const struct key *wanted = key;
    const struct cgroup_node *node = nodes->items[value];

    return is_same(node->parent, wanted->parent) && strcmp(node->name, wanted->name) == 0;
}

struct cgroup_node *cgroup_nodes_find(const struct cgroup_nodes *nodes,
                                      const struct cgroup_node *parent, const char *name)
{
    struct key key = {parent->self, name};
    uint32_t index;

    return map_find(&nodes->by_name, hash_of(parent->self, name), is_node, nodes, &key, &index)
               ? nodes->items[index]
               : NULL;
}

static bool make_room(struct cgroup_nodes *nodes)
{
    size_t capacity = MAX(nodes->capacity * 2, (size_t)64);
    struct cgroup_node **grown;

    while (nodes->lowest_free < nodes->capacity && nodes->items[nodes->lowest_free])
        nodes->lowest_free++;
    if (nodes->lowest_free < nodes->capacity)
        return true;
    grown = nodes->count < CGROUP_NODES_MAX ? reallocarray(nodes->items, capacity, sizeof(void *))
                                            : NULL;
    if (!grown)
        return false;
    while (nodes->capacity < capacity)
        grown[nodes->capacity++] = NULL;
    nodes->items = grown;
    return true;
}

static void free_node(struct cgroup_node *node)
{
    if (node)
        free(node->name);
    free(node);
}

static struct cgroup_node *new_node(const struct cgroup_node *parent, const char *name)
{
    struct cgroup_node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    node->name = strdup(name);
    node->parent = parent ? parent->self : NO_NODE;
    node->depth = parent ? (uint8_t)(parent->depth + 1) : 0;
    for (size_t i = 0; i < HIERARCHIES_MAX; i++)
        node->watches[i] = CGROUP_UNWATCHED;
    node->events_watch = CGROUP_UNWATCHED;
    if (node->name)
        return node;
    free_node(node);
    return NULL;
}

static void link_to_parent(const struct cgroup_nodes *nodes, struct cgroup_node *parent,
                           struct cgroup_node *node)
{
    struct cgroup_node *next = cgroup_nodes_get(nodes, parent->first_child);

    node->next = parent->first_child;
    if (next)
        next->previous = node->self;
    parent->first_child = node->self;
}

static void unlink_from_parent(const struct cgroup_nodes *nodes, const struct cgroup_node *node)
{
    struct cgroup_node *next = cgroup_nodes_get(nodes, node->next);
    struct cgroup_node *previous = cgroup_nodes_get(nodes, node->previous);
    struct cgroup_node *parent = cgroup_nodes_get(nodes, node->parent);

    if (next)
        next->previous = node->previous;
    if (previous)
        previous->next = node->next;
    else if (parent)
        parent->first_child = node->next;
}

struct cgroup_node *cgroup_nodes_add(struct cgroup_nodes *nodes, struct cgroup_node *parent,
                                     const char *name)
{
    struct cgroup_node *node;

    if ((parent && parent->depth >= CGROUP_DEPTH_MAX) || !make_room(nodes) ||
        !(node = new_node(parent, name)))
        return NULL;
    node->self = (struct cgroup_handle){(uint32_t)nodes->lowest_free, ++nodes->generations};
    if (map_insert(&nodes->by_name, hash_of(node->parent, name), node->self.index) < 0) {
        free_node(node);
        return NULL;
    }
    nodes->items[node->self.index] = node;
    nodes->count++;
    if (parent)
        link_to_parent(nodes, parent, node);
    return node;
}

void cgroup_nodes_remove(struct cgroup_nodes *nodes, struct cgroup_node *node)
{
    map_remove(&nodes->by_name, hash_of(node->parent, node->name), node->self.index);
    unlink_from_parent(nodes, node);
    nodes->items[node->self.index] = NULL;
    nodes->lowest_free = MIN(nodes->lowest_free, (size_t)node->self.index);
    nodes->count--;
    free_node(node);
}

void cgroup_nodes_done(struct cgroup_nodes *nodes)
{
    for (size_t i = 0; i < nodes->capacity; i++)
        free_node(nodes->items[i]);
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
