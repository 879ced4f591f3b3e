#include "identity/process/process_owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "identity/owner.h"

void process_owners_done(struct process_owners *owners)
{
    for (size_t i = 0; i < owners->count; i++)
        free(owners->items[i]);
    free(owners->items);
    map_done(&owners->map);
    *owners = (struct process_owners){0};
}

static uint64_t hash_of(const struct workload_owner *owner)
{
    return map_hash_u64(map_hash_bytes(span_of(owner->id)) + owner->kind);
}

static bool is_owner(const void *context, uint32_t value, const void *key)
{
    const struct workload_owner *held =
        &((const struct process_owners *)context)->items[value]->view.owner;
    const struct workload_owner *wanted = key;

    return held->kind == wanted->kind && strcmp(held->id, wanted->id) == 0;
}

static int make_room(struct process_owners *owners)
{
    size_t capacity = MAX(owners->capacity * 2, (size_t)64);
    struct process_owner **items;

    if (owners->count >= owners->max)
        return -ENOSPC;
    if (owners->count < owners->capacity)
        return 0;
    items = realloc(owners->items, capacity * sizeof(struct process_owner *));
    if (!items)
        return -ENOMEM;
    owners->items = items;
    owners->capacity = capacity;
    return 0;
}

struct process_owner *process_owners_intern(struct process_owners *owners,
                                            const struct workload_owner *owner)
{
    _cleanup_free_ struct process_owner *made = NULL;
    uint64_t hash = hash_of(owner);
    uint32_t index;

    if (map_find(&owners->map, hash, is_owner, owners, owner, &index))
        return owners->items[index];
    if (make_room(owners) < 0)
        return NULL;
    index = (uint32_t)owners->count;
    made = malloc(sizeof(*made));
    if (!made || map_insert(&owners->map, hash, index) < 0)
        return NULL;
    *made = (struct process_owner){
        .view = {.owner = *owner, .uid = OWNER_UID_UNKNOWN},
        .hash = hash,
        .index = index,
    };
    owners->items[owners->count++] = made;
    return TAKE_PTR(made);
}

/* The last one takes the place of the one removed. */
static void remove_owner(struct process_owners *owners, struct process_owner *owner)
{
    struct process_owner *last = owners->items[--owners->count];

    map_remove(&owners->map, owner->hash, owner->index);
    if (last != owner) {
        map_remove(&owners->map, last->hash, last->index);
        last->index = owner->index;
        owners->items[last->index] = last;
        /* Cannot fail: there is room for the two that were taken out. */
        (void)map_insert(&owners->map, last->hash, last->index);
    }
    free(owner);
}

void process_owners_sweep(struct process_owners *owners)
{
    for (size_t i = owners->count; i-- > 0;)
        if (owners->items[i]->view.count == 0)
            remove_owner(owners, owners->items[i]);
}
