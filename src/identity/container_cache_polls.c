/* What runtimes are to be polled for, and when. */
#include "identity/container_cache_private.h"

#include <string.h>

#include "core/lock.h"
#include "core/macros.h"

enum { HINT_TRIES = 1 }; /* a hinted container waits for one answer of each runtime */

static bool is_image_due(const struct entry *entry, unsigned runtime, uint64_t now_us)
{
    return entry->image_pending && entry->image_runtime == runtime && entry->seen_us > 0 &&
           now_us >= entry->image_due_us;
}

bool container_cache_next_image(struct container_cache *cache, unsigned runtime, uint64_t now_us,
                                char ret_id[RUNTIME_ID_BYTES])
{
    HOLD_LOCK(&cache->lock);
    size_t count = cache->containers.table.count;

    /* From where the last one was found: those before it are not due again so soon. */
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = cache->containers.table.items[cache->image_cursor++ % count];

        cache->visited++;
        if (is_image_due(entry, runtime, now_us)) {
            memcpy(ret_id, entry->key, RUNTIME_ID_BYTES);
            return true;
        }
    }
    return false;
}

void container_cache_note_image(struct container_cache *cache, const char *container_id,
                                const char *image, uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);
    struct entry *entry = container_cache_entry(cache, container_id);

    if (!entry || !entry->image_pending)
        return;
    container_keep(&entry->names, &(struct container){.image = image});
    entry->image_due_us = now_us + (USEC_PER_SEC << entry->image_tries++);
    entry->image_pending = !image && entry->image_tries < CONTAINER_CACHE_IMAGE_TRIES_MAX;
}

void container_cache_note_poll(struct container_cache *cache, unsigned runtime, int result,
                               uint64_t polled_us)
{
    HOLD_LOCK(&cache->lock);

    cache->failing[runtime] = result < 0;
    for (size_t i = 0; i < cache->containers.table.count && result == 0; i++) {
        struct entry *entry = cache->containers.table.items[i];

        /* A poll does not answer what was wanted after it. */
        if (entry->known || entry->unasked || entry->wanted_us > polled_us)
            continue;
        entry->tries[runtime] = (uint8_t)MIN(entry->tries[runtime] + 1, CONTAINER_CACHE_TRIES_MAX);
        entry->polled_us[runtime] = polled_us;
    }
}

static uint64_t entry_due_us(const struct entry *entry, unsigned runtime)
{
    unsigned tries = entry->tries[runtime];

    if (entry->known || entry->unasked || tries >= CONTAINER_CACHE_TRIES_MAX)
        return UINT64_MAX;
    return tries == 0 ? entry->wanted_us
                      : entry->polled_us[runtime] + (USEC_PER_SEC << (tries - 1));
}

static uint64_t next_due_us(const struct container_cache *cache, unsigned runtime, bool with_images)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t i = 0; i < cache->containers.table.count; i++) {
        const struct entry *entry = cache->containers.table.items[i];
        uint64_t due_us = entry_due_us(entry, runtime);

        next_us = MIN(next_us, due_us);
        if (with_images && is_image_due(entry, runtime, UINT64_MAX))
            next_us = MIN(next_us, entry->image_due_us);
    }
    return next_us;
}

uint64_t container_cache_next_poll_us(struct container_cache *cache, unsigned runtime)
{
    HOLD_LOCK(&cache->lock);

    return next_due_us(cache, runtime, true);
}

bool container_cache_is_missing(struct container_cache *cache, unsigned runtime, uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);

    return next_due_us(cache, runtime, false) <= now_us;
}

bool container_cache_may_learn(struct container_cache *cache, const char *container_id)
{
    HOLD_LOCK(&cache->lock);
    const struct entry *entry = container_cache_entry(cache, container_id);
    bool may = false;

    for (unsigned i = 0; i < CONTAINER_CACHE_RUNTIMES_MAX && entry && !entry->known; i++)
        may |= cache->present[i] &&
               entry->tries[i] < (entry->hinted ? HINT_TRIES : CONTAINER_CACHE_TRIES_MAX);
    return may || (entry && entry->image_pending && cache->present[entry->image_runtime]);
}

bool container_cache_is_awaited(struct container_cache *cache, const char *container_id)
{
    HOLD_LOCK(&cache->lock);
    const struct entry *entry = container_cache_entry(cache, container_id);
    bool awaited = false;

    for (unsigned i = 0; i < CONTAINER_CACHE_HINTS && entry && !entry->known; i++)
        awaited |= cache->present[i] && !cache->failing[i] && entry->tries[i] == 0;
    return awaited;
}
