#include "identity/container_cache_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

int container_cache_new(struct container_cache **ret_directory)
{
    struct container_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return -ENOMEM;
    pthread_mutex_init(&cache->lock, NULL);
    lock_condition_init(&cache->changed);
    *ret_directory = cache;
    return 0;
}

static void forget_names(struct container_entry *entry)
{
    for (int i = 0; i < TEXT_COUNT; i++) {
        free(entry->texts[i]);
        entry->texts[i] = NULL;
    }
    entry->is_pod_certain = false;
}

void container_cache_free(struct container_cache *cache)
{
    if (!cache)
        return;
    for (size_t i = 0; i < cache->table.count; i++)
        forget_names(cache->table.items[i]);
    table_done(&cache->table);
    pod_names_done(&cache->pods);
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static bool has_id(const void *entry, const void *key)
{
    return strcmp(((const struct container_entry *)entry)->id, key) == 0;
}

struct container_entry *container_cache_entry(struct container_cache *cache, const char *id)
{
    return table_find(&cache->table, map_hash_bytes(span_of(id)), has_id, id);
}

/* NULL where there is no room: such an id has no names, and nothing else is lost. */
static struct container_entry *add(struct container_cache *cache, const char *id, uint64_t now_us)
{
    struct container_entry *entry = NULL;

    if (cache->table.count < CONTAINER_CACHE_ENTRIES_MAX && strlen(id) == RUNTIME_ID_BYTES - 1)
        entry = table_add(&cache->table, map_hash_bytes(span_of(id)), sizeof(*entry));
    if (!entry)
        return NULL;
    memcpy(entry->id, id, RUNTIME_ID_BYTES);
    entry->wanted_us = now_us;
    entry->used_us = now_us;
    cache->unknown_count++;
    return entry;
}

static void notify(struct container_cache *cache)
{
    cache->generation++;
    pthread_cond_broadcast(&cache->changed);
}

void container_cache_set_present(struct container_cache *cache, unsigned runtime, bool present)
{
    HOLD_LOCK(&cache->lock);

    if (cache->present[runtime] != present) {
        cache->present[runtime] = present;
        notify(cache);
    }
}

/* A process was seen in what was so far only heard of. */
static void begin_to_ask(struct container_cache *cache, struct container_entry *entry,
                         uint64_t now_us)
{
    entry->unasked = false;
    entry->wanted_us = now_us;
    cache->unasked_count--;
    notify(cache);
}

void container_cache_want(struct container_cache *cache, const char *container_id,
                          const char *pod_uid, bool is_claim, uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);
    struct container_entry *entry = container_cache_entry(cache, container_id);

    if (!entry && (entry = add(cache, container_id, now_us)))
        notify(cache);
    if (entry && entry->unasked)
        begin_to_ask(cache, entry, now_us);
    if (entry && entry->image_pending && entry->seen_us == 0)
        notify(cache);
    pod_names_want(&cache->pods, pod_uid, now_us);
    if (entry) {
        entry->seen_us = entry->used_us = now_us;
        entry->taken |= !is_claim;
    }
}

static void set_pending(struct container_cache *cache, struct container_entry *entry, bool pending)
{
    cache->pending_count += (size_t)pending - (size_t)entry->image_pending;
    entry->image_pending = pending;
}

static void take_text(struct container_entry *entry, enum container_text which, const char *text)
{
    char *copy = text[0] != '\0' ? strdup(text) : NULL;

    /* A second runtime that knows the container adds to what the first one said. */
    if (copy) {
        free(entry->texts[which]);
        entry->texts[which] = copy;
    }
}

static void take_names(struct container_entry *entry, const struct container *container)
{
    const char *const from[TEXT_COUNT] = {container->name, container->namespace, container->pod,
                                          container->pod_uid, container->image};

    for (enum container_text i = 0; i < TEXT_COUNT; i++)
        if (i != TEXT_IMAGE || !container->image_is_digest || !entry->texts[TEXT_IMAGE])
            take_text(entry, i, from[i]);
    entry->is_pod_certain |= container->is_pod_certain;
}

static void learn(struct container_cache *cache, unsigned runtime, struct container_entry *entry,
                  const struct container *container)
{
    bool has_image;

    if (entry->hinted)
        forget_names(entry);
    entry->hinted = false;
    has_image = entry->texts[TEXT_IMAGE] != NULL;
    take_names(entry, container);
    if (!container->image_is_digest && container->image[0]) {
        set_pending(cache, entry, false);
    } else if (container->image_is_digest && !has_image) {
        set_pending(cache, entry, true);
        entry->image_runtime = runtime;
        entry->image_tries = 0;
        entry->image_due_us = 0;
    }
    if (!entry->known) {
        entry->known = true;
        cache->unknown_count--;
    }
}

void container_cache_learn(struct container_cache *cache, unsigned runtime,
                           const struct container_list *list, uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);

    for (size_t i = 0; i < list->count; i++) {
        const struct container *container = &list->items[i];
        struct container_entry *entry = container_cache_entry(cache, container->id);

        if (container->is_pod_certain &&
            (!container->ended || pod_names_is_missing(&cache->pods, container->pod_uid)))
            pod_names_learn(&cache->pods, container->pod_uid, container->namespace, container->pod,
                            false, now_us);
        if (!entry && !container->ended)
            entry = add(cache, container->id, now_us);
        if (entry)
            learn(cache, runtime, entry, container);
    }
}

void container_cache_set_image(struct container_cache *cache, const char *container_id,
                               const char *image)
{
    HOLD_LOCK(&cache->lock);
    struct container_entry *entry = container_cache_entry(cache, container_id);

    if (entry && entry->image_pending) {
        take_text(entry, TEXT_IMAGE, image ? image : "");
        set_pending(cache, entry, false);
    }
}

void container_cache_note_image_failure(struct container_cache *cache, const char *container_id,
                                        uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);
    struct container_entry *entry = container_cache_entry(cache, container_id);

    if (entry && entry->image_pending) {
        entry->image_due_us = now_us + (USEC_PER_SEC << entry->image_tries++);
        if (entry->image_tries == CONTAINER_CACHE_IMAGE_TRIES_MAX)
            set_pending(cache, entry, false);
    }
}

static struct container_entry *add_unasked(struct container_cache *cache, const char *id,
                                           uint64_t now_us)
{
    struct container_entry *entry =
        cache->unasked_count < CONTAINER_CACHE_UNASKED_MAX ? add(cache, id, now_us) : NULL;

    if (entry) {
        entry->unasked = true;
        cache->unasked_count++;
    }
    return entry;
}

void container_cache_hint(struct container_cache *cache, const struct container_list *list,
                          uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);

    for (size_t i = 0; i < list->count; i++) {
        const struct container *container = &list->items[i];
        struct container_entry *entry = container_cache_entry(cache, container->id);

        pod_names_learn(&cache->pods, container->pod_uid, container->namespace, container->pod,
                        true, now_us);
        if (!entry)
            entry = add_unasked(cache, container->id, now_us);
        if (!entry || entry->known)
            continue;
        forget_names(entry);
        take_names(entry, container);
        entry->hinted = true;
        entry->tries[CONTAINER_CACHE_HINTS] =
            CONTAINER_CACHE_TRIES_MAX; /* it has told what it knows */
    }
}

static const char *copy_text(struct arena *arena, const char *text)
{
    const char *copy = text ? arena_copy(arena, text, strlen(text)) : "";

    return copy ? copy : "";
}

bool container_cache_find(struct container_cache *cache, const char *container_id, uint64_t now_us,
                          struct arena *arena, struct container *ret_container)
{
    HOLD_LOCK(&cache->lock);
    struct container_entry *entry = container_cache_entry(cache, container_id);
    bool known = entry && (entry->known || entry->hinted);

    if (entry)
        entry->used_us = now_us;
    if (known)
        *ret_container = (struct container){
            .id = copy_text(arena, entry->id),
            .name = copy_text(arena, entry->texts[TEXT_NAME]),
            .namespace = copy_text(arena, entry->texts[TEXT_NAMESPACE]),
            .pod = copy_text(arena, entry->texts[TEXT_POD]),
            .pod_uid = copy_text(arena, entry->texts[TEXT_POD_UID]),
            .image = copy_text(arena, entry->texts[TEXT_IMAGE]),
            .is_pod_certain = entry->is_pod_certain,
        };
    return known;
}

bool container_cache_find_pod(struct container_cache *cache, const char *pod_uid, uint64_t now_us,
                              struct arena *arena, const char **ret_namespace, const char **ret_pod)
{
    HOLD_LOCK(&cache->lock);
    const struct pod_name *pod = pod_names_find(&cache->pods, pod_uid, now_us);

    if (pod) {
        *ret_namespace = copy_text(arena, pod->namespace);
        *ret_pod = copy_text(arena, pod->name);
    }
    return pod != NULL;
}

bool container_cache_is_taken(struct container_cache *cache, const char *container_id)
{
    HOLD_LOCK(&cache->lock);
    const struct container_entry *entry = container_cache_entry(cache, container_id);

    return entry && entry->taken;
}

static bool is_text(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

bool container_cache_find_by_name(struct container_cache *cache, const char *namespace,
                                  const char *pod, const char *container, uint64_t since_us,
                                  char ret_id[RUNTIME_ID_BYTES])
{
    HOLD_LOCK(&cache->lock);
    const struct container_entry *newest = NULL;

    for (size_t i = 0; i < cache->table.count; i++) {
        const struct container_entry *entry = cache->table.items[i];

        /* One that was restarted has left its old id behind. */
        if ((entry->known || entry->hinted) && entry->seen_us >= since_us &&
            is_text(entry->texts[TEXT_POD], pod) &&
            is_text(entry->texts[TEXT_NAMESPACE], namespace) &&
            is_text(entry->texts[TEXT_NAME], container) &&
            (!newest || entry->seen_us > newest->seen_us))
            newest = entry;
    }
    if (newest)
        memcpy(ret_id, newest->id, RUNTIME_ID_BYTES);
    return newest != NULL;
}

void container_cache_wake(struct container_cache *cache)
{
    HOLD_LOCK(&cache->lock);

    notify(cache);
}

void container_cache_expire(struct container_cache *cache, uint64_t before_us)
{
    HOLD_LOCK(&cache->lock);

    pod_names_expire(&cache->pods, before_us);
    for (size_t i = cache->table.count; i-- > 0;) {
        struct container_entry *entry = cache->table.items[i];

        if (entry->used_us >= before_us)
            continue;
        cache->pending_count -= entry->image_pending;
        cache->unknown_count -= !entry->known;
        cache->unasked_count -= entry->unasked;
        forget_names(entry);
        table_remove(&cache->table, entry);
    }
}
