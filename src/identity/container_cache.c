#include "identity/container_cache_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lock.h"
#include "core/macros.h"

enum { NAME_KEY_BYTES = 3 * (RUNTIME_TEXT_MAX + 1) };

int container_cache_new(struct container_cache **ret_cache)
{
    struct container_cache *cache = calloc(1, sizeof(*cache));

    if (!cache)
        return -ENOMEM;
    pthread_mutex_init(&cache->lock, NULL);
    lock_condition_init(&cache->changed);
    *ret_cache = cache;
    return 0;
}

/* Takes it out of its namesakes. */
static void unlink_entry(struct container_cache *cache, struct entry *entry)
{
    struct namesakes *namesakes = entry->namesakes;

    if (!namesakes)
        return;
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        namesakes->first = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    entry->namesakes = NULL;
    entry->previous = entry->next = NULL;
    if (!namesakes->first)
        table_remove(&cache->by_name, namesakes);
}

static void expire_entries(struct container_cache *cache, struct entries *entries,
                           uint64_t before_us)
{
    for (size_t i = entries->table.count; i-- > 0;) {
        struct entry *entry = entries->table.items[i];

        if (entry->used_us >= before_us)
            continue;
        entries->unasked_count -= entry->unasked;
        unlink_entry(cache, entry);
        container_forget(&entry->names);
        table_remove(&entries->table, entry);
    }
}

void container_cache_expire(struct container_cache *cache, uint64_t before_us)
{
    HOLD_LOCK(&cache->lock);

    expire_entries(cache, &cache->pods, before_us);
    expire_entries(cache, &cache->containers, before_us);
}

void container_cache_free(struct container_cache *cache)
{
    if (!cache)
        return;
    expire_entries(cache, &cache->pods, UINT64_MAX);
    expire_entries(cache, &cache->containers, UINT64_MAX);
    table_done(&cache->pods.table);
    table_done(&cache->containers.table);
    table_done(&cache->by_name);
    pthread_cond_destroy(&cache->changed);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static bool has_key(const void *entry, const void *key)
{
    return strcmp(((const struct entry *)entry)->key, key) == 0;
}

static struct entry *find_entry(const struct entries *entries, const char *key)
{
    return table_find(&entries->table, map_hash_bytes(span_of(key)), has_key, key);
}

struct entry *container_cache_entry(const struct container_cache *cache, const char *container_id)
{
    return find_entry(&cache->containers, container_id);
}

/* NULL where there is no room: it gets no names, and nothing else is lost. */
static struct entry *add_entry(struct container_cache *cache, struct entries *entries,
                               const char *key, bool is_hint, uint64_t now_us)
{
    bool is_pod = entries == &cache->pods;
    size_t len = strlen(key);
    struct entry *entry;

    if (entries->table.count >=
            (size_t)(is_pod ? CONTAINER_CACHE_PODS_MAX : CONTAINER_CACHE_ENTRIES_MAX) ||
        (is_hint && entries->unasked_count >= CONTAINER_CACHE_UNASKED_MAX) ||
        (is_pod ? len == 0 || len >= sizeof(entry->key) : len != RUNTIME_ID_BYTES - 1))
        return NULL;
    entry = table_add(&entries->table, map_hash_bytes(span_of(key)), sizeof(*entry));
    if (!entry)
        return NULL;
    memcpy(entry->key, key, len + 1);
    entry->wanted_us = entry->used_us = now_us;
    entry->unasked = is_hint;
    entries->unasked_count += is_hint;
    return entry;
}

static void notify(struct container_cache *cache)
{
    cache->generation++;
    pthread_cond_broadcast(&cache->changed);
}

void container_cache_wake(struct container_cache *cache)
{
    HOLD_LOCK(&cache->lock);

    notify(cache);
}

void container_cache_set_present(struct container_cache *cache, unsigned runtime, bool present)
{
    HOLD_LOCK(&cache->lock);

    if (cache->present[runtime] != present) {
        cache->present[runtime] = present;
        notify(cache);
    }
}

static void want_entry(struct container_cache *cache, struct entries *entries, const char *key,
                       bool is_claim, uint64_t now_us)
{
    struct entry *entry = find_entry(entries, key);
    bool is_new = !entry || entry->unasked;

    if (!entry)
        entry = add_entry(cache, entries, key, false, now_us);
    if (!entry)
        return;
    if (entry->unasked) {
        entry->unasked = false;
        entry->wanted_us = now_us;
        entries->unasked_count--;
    }
    if (entries == &cache->containers && (is_new || (entry->image_pending && entry->seen_us == 0)))
        notify(cache);
    entry->seen_us = entry->used_us = now_us;
    entry->taken |= !is_claim;
}

void container_cache_want(struct container_cache *cache, const char *container_id,
                          const char *pod_uid, bool is_claim, uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);

    want_entry(cache, &cache->containers, container_id, is_claim, now_us);
    want_entry(cache, &cache->pods, pod_uid, is_claim, now_us);
}

/* "": it is in no pod, or has no name. Others may have the same key; they are compared. */
static void write_name_key(char key[NAME_KEY_BYTES], const char *namespace, const char *pod,
                           const char *container)
{
    key[0] = '\0';
    if (pod && pod[0] && container && container[0])
        snprintf(key, NAME_KEY_BYTES, "%s/%s/%s", namespace ? namespace : "", pod, container);
}

static bool has_name_key(const void *entry, const void *key)
{
    return strcmp(((const struct namesakes *)entry)->key, key) == 0;
}

static struct namesakes *find_namesakes(const struct container_cache *cache, const char *key)
{
    return table_find(&cache->by_name, map_hash_bytes(span_of(key)), has_name_key, key);
}

/* Puts it among its namesakes, after its names may have changed. Without memory it is not found by
 * name. */
static void link_entry(struct container_cache *cache, struct entry *entry)
{
    struct namesakes *namesakes;
    char key[NAME_KEY_BYTES];

    write_name_key(key, entry->names.namespace, entry->names.pod, entry->names.name);
    if (entry->namesakes && strcmp(entry->namesakes->key, key) == 0) /* as nearly always */
        return;
    unlink_entry(cache, entry);
    if (key[0] == '\0')
        return;
    namesakes = find_namesakes(cache, key);
    if (!namesakes) {
        namesakes = table_add(&cache->by_name, map_hash_bytes(span_of(key)),
                              sizeof(*namesakes) + strlen(key) + 1);
        if (!namesakes)
            return;
        memcpy(namesakes->key, key, strlen(key) + 1);
    }
    entry->namesakes = namesakes;
    entry->next = namesakes->first;
    if (entry->next)
        entry->next->previous = entry;
    namesakes->first = entry;
}

static void learn_names(struct entry *entry, const struct container *names)
{
    if (entry->hinted)
        container_forget(&entry->names);
    entry->hinted = false;
    entry->known = true;
    container_keep(&entry->names, names);
}

static void hint_names(struct entry *entry, const struct container *names)
{
    if (entry->known)
        return;
    container_forget(&entry->names);
    entry->hinted = true;
    container_keep(&entry->names, names);
}

static void learn_pod(struct container_cache *cache, const struct container *container,
                      bool is_hint, uint64_t now_us)
{
    const struct container names = {.namespace = container->namespace, .pod = container->pod};
    struct entry *pod = find_entry(&cache->pods, container->pod_uid);

    if (!container->pod[0])
        return;
    if (!pod)
        pod = add_entry(cache, &cache->pods, container->pod_uid, is_hint, now_us);
    if (pod)
        (is_hint ? hint_names : learn_names)(pod, &names);
}

static void learn_container(struct entry *entry, unsigned runtime,
                            const struct container *container)
{
    bool has_image = !entry->hinted && entry->names.image;

    learn_names(entry, container);
    if (!container->image_is_digest && container->image[0]) {
        entry->image_pending = false;
    } else if (container->image_is_digest && !has_image) {
        entry->image_pending = true;
        entry->image_runtime = runtime;
        entry->image_tries = 0;
        entry->image_due_us = 0;
    }
}

void container_cache_learn(struct container_cache *cache, unsigned runtime,
                           const struct container_list *list, uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);

    for (size_t i = 0; i < list->count; i++) {
        const struct container *container = &list->items[i];
        const struct entry *pod = find_entry(&cache->pods, container->pod_uid);
        struct entry *entry = find_entry(&cache->containers, container->id);

        if (container->is_pod_certain &&
            (!container->ended || (pod && pod->seen_us > 0 && !pod->known)))
            learn_pod(cache, container, false, now_us);
        if (!entry && !container->ended)
            entry = add_entry(cache, &cache->containers, container->id, false, now_us);
        if (!entry)
            continue;
        learn_container(entry, runtime, container);
        link_entry(cache, entry);
        if (!container->ended)
            entry->listed_us = now_us;
    }
}

void container_cache_hint(struct container_cache *cache, const struct container_list *list,
                          uint64_t now_us)
{
    HOLD_LOCK(&cache->lock);

    for (size_t i = 0; i < list->count; i++) {
        const struct container *container = &list->items[i];
        struct entry *entry = find_entry(&cache->containers, container->id);

        learn_pod(cache, container, true, now_us);
        if (!entry)
            entry = add_entry(cache, &cache->containers, container->id, true, now_us);
        if (!entry || entry->known)
            continue;
        hint_names(entry, container);
        link_entry(cache, entry);
        entry->tries[CONTAINER_CACHE_HINTS] = CONTAINER_CACHE_TRIES_MAX; /* no more will come */
    }
}

/* From here on: lookups. */

static struct container copy_names(struct arena *arena, const struct container *names)
{
    struct container copy = *names;

    for (size_t i = 0; i < CONTAINER_TEXTS; i++) {
        const char *text = names->texts[i];

        text = text ? arena_copy(arena, text, strlen(text)) : NULL;
        copy.texts[i] = text ? text : "";
    }
    return copy;
}

static bool find_names(struct entries *entries, const char *key, uint64_t now_us,
                       struct arena *arena, struct container *ret_names)
{
    struct entry *entry = find_entry(entries, key);

    if (entry)
        entry->used_us = now_us;
    if (!entry || (!entry->known && !entry->hinted))
        return false;
    *ret_names = copy_names(arena, &entry->names);
    return true;
}

bool container_cache_find(struct container_cache *cache, const char *container_id, uint64_t now_us,
                          struct arena *arena, struct container *ret_container)
{
    HOLD_LOCK(&cache->lock);

    return find_names(&cache->containers, container_id, now_us, arena, ret_container);
}

bool container_cache_find_pod(struct container_cache *cache, const char *pod_uid, uint64_t now_us,
                              struct arena *arena, const char **ret_namespace, const char **ret_pod)
{
    HOLD_LOCK(&cache->lock);
    struct container names;

    if (!find_names(&cache->pods, pod_uid, now_us, arena, &names))
        return false;
    *ret_namespace = names.namespace;
    *ret_pod = names.pod;
    return true;
}

bool container_cache_is_taken(struct container_cache *cache, const char *container_id)
{
    HOLD_LOCK(&cache->lock);
    const struct entry *entry = find_entry(&cache->containers, container_id);

    return entry && entry->taken;
}

static bool is_text(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

bool container_cache_find_by_name(struct container_cache *cache, const char *namespace,
                                  const char *pod, const char *container, bool or_listed,
                                  uint64_t since_us, char ret_id[RUNTIME_ID_BYTES])
{
    HOLD_LOCK(&cache->lock);
    const struct namesakes *namesakes;
    uint64_t newest_us = 0;
    char key[NAME_KEY_BYTES];

    write_name_key(key, namespace, pod, container);
    namesakes = find_namesakes(cache, key);
    for (const struct entry *entry = namesakes ? namesakes->first : NULL; entry;
         entry = entry->next) {
        bool counts_list = or_listed && entry->names.is_pod_certain;
        uint64_t present_us = counts_list ? MAX(entry->seen_us, entry->listed_us) : entry->seen_us;

        cache->visited++;
        if (present_us < since_us || present_us <= newest_us || !is_text(entry->names.pod, pod) ||
            !is_text(entry->names.namespace, namespace) || !is_text(entry->names.name, container))
            continue;
        newest_us = present_us;
        memcpy(ret_id, entry->key, RUNTIME_ID_BYTES);
    }
    return newest_us > 0;
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

bool container_cache_is_full(struct container_cache *cache)
{
    HOLD_LOCK(&cache->lock);

    return cache->containers.table.count >= CONTAINER_CACHE_ENTRIES_MAX ||
           cache->pods.table.count >= CONTAINER_CACHE_PODS_MAX;
}
