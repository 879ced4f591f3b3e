#include "sources/cgroup/node.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

struct key {
    const struct cgroup_node *parent;
    const char *name;
};

static uint64_t hash_of(const struct cgroup_node *parent, const char *name)
{
    return map_hash_u64(map_hash_bytes(span_of(name)) ^ (parent ? parent->index + 1 : 0));
}

static bool is_node(const void *context, uint32_t value, const void *key)
{
    const struct cgroup_nodes *nodes = context;
    const struct key *wanted = key;
    const struct cgroup_node *node = nodes->items[value];

    return node->parent == wanted->parent && strcmp(node->name, wanted->name) == 0;
}

struct cgroup_node *cgroup_nodes_find(const struct cgroup_nodes *nodes,
                                      const struct cgroup_node *parent, const char *name)
{
    struct key key = {parent, name};
    uint32_t index;

    return map_find(&nodes->by_name, hash_of(parent, name), is_node, nodes, &key, &index)
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

static struct cgroup_node *new_node(struct cgroup_node *parent, const char *name)
{
    struct cgroup_node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    node->name = strdup(name);
    node->parent = parent;
    node->depth = parent ? (uint8_t)(parent->depth + 1) : 0;
    for (size_t i = 0; i < HIERARCHIES_MAX; i++)
        node->watches[i] = CGROUP_UNWATCHED;
    node->events_watch = CGROUP_UNWATCHED;
    if (node->name)
        return node;
    free_node(node);
    return NULL;
}

static void link_to_parent(struct cgroup_node *node)
{
    node->next = node->parent->children;
    if (node->next)
        node->next->previous = node;
    node->parent->children = node;
}

static void unlink_from_parent(struct cgroup_node *node)
{
    if (node->next)
        node->next->previous = node->previous;
    if (node->previous)
        node->previous->next = node->next;
    else
        node->parent->children = node->next;
}

struct cgroup_node *cgroup_nodes_add(struct cgroup_nodes *nodes, struct cgroup_node *parent,
                                     const char *name)
{
    struct cgroup_node *node;
    uint32_t index;

    if ((parent && parent->depth >= CGROUP_DEPTH_MAX) || !make_room(nodes) ||
        !(node = new_node(parent, name)))
        return NULL;
    index = (uint32_t)nodes->lowest_free;
    if (map_insert(&nodes->by_name, hash_of(parent, name), index) < 0) {
        free_node(node);
        return NULL;
    }
    node->index = index;
    nodes->items[index] = node;
    nodes->count++;
    if (parent)
        link_to_parent(node);
    return node;
}

void cgroup_nodes_remove(struct cgroup_nodes *nodes, struct cgroup_node *node)
{
    map_remove(&nodes->by_name, hash_of(node->parent, node->name), node->index);
    nodes->items[node->index] = NULL;
    nodes->lowest_free = MIN(nodes->lowest_free, (size_t)node->index);
    nodes->count--;
    if (node->parent)
        unlink_from_parent(node);
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

bool cgroup_node_path(const struct cgroup_node *node, char path[static CGROUP_PATH_BYTES])
{
    size_t at = CGROUP_PATH_BYTES - 1;

    path[at] = '\0';
    if (!node->parent)
        path[--at] = '/';
    for (; node->parent; node = node->parent) {
        size_t len = strlen(node->name);

        if (len + 1 > at)
            return false;
        at -= len;
        memcpy(path + at, node->name, len);
        path[--at] = '/';
    }
    memmove(path, path + at, CGROUP_PATH_BYTES - at);
    return true;
}
