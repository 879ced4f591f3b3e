#include "identity/cgroup/cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

void cgroup_cache_done(struct cgroup_cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        free(cache->items[i]);
    free(cache->items);
    map_done(&cache->map);
    *cache = (struct cgroup_cache){0};
}

static bool is_text(const void *context, uint32_t value, const void *key)
{
    const struct cgroup_text *held = ((const struct cgroup_cache *)context)->items[value];
    const struct span *wanted = key;

    return held->len == wanted->len && memcmp(held->bytes, wanted->data, wanted->len) == 0;
}

struct cgroup_text *cgroup_cache_find(const struct cgroup_cache *cache, struct span bytes)
{
    uint32_t index;

    if (!map_find(&cache->map, map_hash_bytes(bytes), is_text, cache, &bytes, &index))
        return NULL;
    return cache->items[index];
}

static size_t bytes_of(size_t len)
{
    return sizeof(struct cgroup_text) + len;
}

static bool make_room(struct cgroup_cache *cache, size_t len)
{
    size_t capacity = MAX(cache->capacity * 2, (size_t)64);
    struct cgroup_text **items;

    if (bytes_of(len) > CGROUP_CACHE_BYTES_MAX - cache->used_bytes)
        return false;
    if (cache->count < cache->capacity)
        return true;
    items = realloc(cache->items, capacity * sizeof(struct cgroup_text *));
    if (!items)
        return false;
    cache->items = items;
    cache->capacity = capacity;
    return true;
}

struct cgroup_text *cgroup_cache_add(struct cgroup_cache *cache, struct span bytes)
{
    _cleanup_free_ struct cgroup_text *text = NULL;

    if (!make_room(cache, bytes.len))
        return NULL;
    text = malloc(bytes_of(bytes.len));
    if (!text)
        return NULL;
    *text = (struct cgroup_text){
        .hash = map_hash_bytes(bytes),
        .index = (uint32_t)cache->count,
        .len = (uint32_t)bytes.len,
    };
    if (map_insert(&cache->map, text->hash, text->index) < 0)
        return NULL;
    memcpy(text->bytes, bytes.data, bytes.len);
    cache->used_bytes += bytes_of(bytes.len);
    cache->items[cache->count++] = text;
    return TAKE_PTR(text);
}

void cgroup_cache_leave(struct cgroup_cache *cache, struct cgroup_text *text)
{
    struct cgroup_text *last;

    if (!text || --text->processes > 0)
        return;
    last = cache->items[--cache->count];
    map_remove(&cache->map, text->hash, text->index);
    if (last != text) { /* the last one takes its place */
        map_remove(&cache->map, last->hash, last->index);
        last->index = text->index;
        cache->items[last->index] = last;
        /* Cannot fail: there is room for the two that were taken out. */
        (void)map_insert(&cache->map, last->hash, last->index);
    }
    cache->used_bytes -= bytes_of(text->len);
    free(text);
}
