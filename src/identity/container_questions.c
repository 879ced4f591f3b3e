/* What the runtimes are to be asked for, and when. */
#include "identity/container_cache_private.h"

#include <string.h>

#include "core/macros.h"

enum {
    HINT_TRIES = 1
}; /* what is hinted waits for one answer of each runtime, and no second one */

static bool image_is_due(const struct container_entry *entry, unsigned runtime, uint64_t now_us)
{
    return entry->image_pending && entry->image_runtime == runtime && entry->seen_us > 0 &&
           now_us >= entry->image_due_us;
}

bool container_cache_next_image(struct container_cache *cache, unsigned runtime, uint64_t now_us,
                                char ret_id[RUNTIME_ID_BYTES])
{
    HOLD_LOCK(&cache->lock);

    for (size_t i = 0; i < cache->table.count && cache->pending_count > 0; i++) {
        const struct container_entry *entry = cache->table.items[i];

        if (image_is_due(entry, runtime, now_us)) {
            memcpy(ret_id, entry->id, RUNTIME_ID_BYTES);
            return true;
        }
    }
    return false;
}

void container_cache_note_failure(struct container_cache *cache, unsigned runtime)
{
    HOLD_LOCK(&cache->lock);

    cache->failing[runtime] = true;
}

void container_cache_note_asked(struct container_cache *cache, unsigned runtime, uint64_t asked_us)
{
    HOLD_LOCK(&cache->lock);

    cache->failing[runtime] = false;
    for (size_t i = 0; i < cache->table.count && cache->unknown_count > 0; i++) {
        struct container_entry *entry = cache->table.items[i];

        /* One that was wanted only after the question is not answered by it. */
        if (entry->known || entry->unasked || entry->wanted_us > asked_us)
            continue;
        entry->tries[runtime] = (uint8_t)MIN(entry->tries[runtime] + 1, CONTAINER_CACHE_TRIES_MAX);
        entry->asked_us[runtime] = asked_us;
    }
}

static uint64_t due_us(const struct container_entry *entry, unsigned runtime)
{
    unsigned tries = entry->tries[runtime];

    if (entry->known || entry->unasked || tries >= CONTAINER_CACHE_TRIES_MAX)
        return UINT64_MAX;
    return tries == 0 ? entry->wanted_us : entry->asked_us[runtime] + (USEC_PER_SEC << (tries - 1));
}

static uint64_t next_due_us(const struct container_cache *cache, unsigned runtime)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t i = 0; i < cache->table.count && cache->unknown_count > 0; i++)
        next_us = MIN(next_us, due_us(cache->table.items[i], runtime));
    return next_us;
}

static uint64_t next_image_us(const struct container_cache *cache, unsigned runtime)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t i = 0; i < cache->table.count && cache->pending_count > 0; i++) {
        const struct container_entry *entry = cache->table.items[i];

        if (image_is_due(entry, runtime, UINT64_MAX))
            next_us = MIN(next_us, entry->image_due_us);
    }
    return next_us;
}

uint64_t container_cache_next_ask_us(struct container_cache *cache, unsigned runtime)
{
    HOLD_LOCK(&cache->lock);
    uint64_t due_us = next_due_us(cache, runtime), image_us = next_image_us(cache, runtime);

    return MIN(due_us, image_us);
}

bool container_cache_is_missing(struct container_cache *cache, unsigned runtime, uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);

    return next_due_us(cache, runtime) <= now_us;
}

bool container_cache_may_learn(struct container_cache *cache, const char *container_id)
{
    HOLD_LOCK(&cache->lock);
    const struct container_entry *entry = container_cache_entry(cache, container_id);
    bool may = false;

    for (unsigned i = 0; i < CONTAINER_CACHE_RUNTIMES_MAX && entry && !entry->known; i++)
        may |= cache->present[i] &&
               entry->tries[i] < (entry->hinted ? HINT_TRIES : CONTAINER_CACHE_TRIES_MAX);
    may |= entry && entry->image_pending && cache->present[entry->image_runtime];
    return may;
}

bool container_cache_is_awaited(struct container_cache *cache, const char *container_id)
{
    HOLD_LOCK(&cache->lock);
    const struct container_entry *entry = container_cache_entry(cache, container_id);
    bool awaited = false;

    for (unsigned i = 0; i < CONTAINER_CACHE_HINTS && entry && !entry->known; i++)
        awaited |= cache->present[i] && !cache->failing[i] && entry->tries[i] == 0;
    return awaited;
}

uint64_t container_cache_generation(struct container_cache *cache)
{
    HOLD_LOCK(&cache->lock);

    return cache->generation;
}

void container_cache_wait(struct container_cache *cache, uint64_t generation, uint64_t until_us)
{
    HOLD_LOCK(&cache->lock);

    while (cache->generation == generation &&
           lock_wait_until(&cache->changed, &cache->lock, until_us))
        ;
}
