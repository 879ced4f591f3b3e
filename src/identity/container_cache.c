#include "identity/container_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/lock.h"
#include "core/macros.h"
#include "core/table.h"
#include "model/workload.h"

enum { HINT_TRIES = 1 }; /* a hinted container waits for one answer of each runtime */

/* A container by its id, or a pod by its uid. */
struct entry {
    struct table_entry entry;
    char key[WORKLOAD_POD_UID_BYTES];
    struct container names;
    bool known;         /* from a runtime */
    bool hinted;        /* from a hint, until a runtime knows it */
    bool unasked;       /* added by a hint: no process was seen in it */
    bool taken;         /* wanted, other than by a claim */
    uint64_t wanted_us; /* first */
    uint64_t seen_us;   /* last wanted; 0: never */
    uint64_t listed_us; /* last, as running; 0: never */
    uint64_t used_us;

    /* Of containers: the polls for it. */
    uint8_t tries[CONTAINER_CACHE_RUNTIMES_MAX];
    uint64_t polled_us[CONTAINER_CACHE_RUNTIMES_MAX];
    bool image_pending;     /* the image is a digest, and may still get its name from: */
    unsigned image_runtime; /* the runtime that listed it */
    uint8_t image_tries;
    uint64_t image_due_us;
};

struct entries {
    struct table table;
    size_t unasked_count;
};

struct container_cache {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t generation;
    bool present[CONTAINER_CACHE_RUNTIMES_MAX];
    bool failing[CONTAINER_CACHE_RUNTIMES_MAX]; /* at the last poll */
    struct entries containers, pods;
};

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

static void expire_entries(struct entries *entries, uint64_t before_us)
{
    for (size_t i = entries->table.count; i-- > 0;) {
        struct entry *entry = entries->table.items[i];

        if (entry->used_us >= before_us)
            continue;
        entries->unasked_count -= entry->unasked;
        container_forget(&entry->names);
        table_remove(&entries->table, entry);
    }
}

void container_cache_expire(struct container_cache *cache, uint64_t before_us)
{
    HOLD_LOCK(&cache->lock);

    expire_entries(&cache->pods, before_us);
    expire_entries(&cache->containers, before_us);
}

void container_cache_free(struct container_cache *cache)
{
    if (!cache)
        return;
    expire_entries(&cache->pods, UINT64_MAX);
    expire_entries(&cache->containers, UINT64_MAX);
    table_done(&cache->pods.table);
    table_done(&cache->containers.table);
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
        if (entry)
            learn_container(entry, runtime, container);
        if (entry && !container->ended)
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
    uint64_t newest_us = 0;

    for (size_t i = 0; i < cache->containers.table.count; i++) {
        const struct entry *entry = cache->containers.table.items[i];
        bool counts_list = or_listed && entry->names.is_pod_certain;
        uint64_t present_us = counts_list ? MAX(entry->seen_us, entry->listed_us) : entry->seen_us;

        /* A restarted container leaves its old id behind. */
        if (present_us < since_us || present_us <= newest_us || !is_text(entry->names.pod, pod) ||
            !is_text(entry->names.namespace, namespace) || !is_text(entry->names.name, container))
            continue;
        newest_us = present_us;
        memcpy(ret_id, entry->key, RUNTIME_ID_BYTES);
    }
    return newest_us > 0;
}

/* From here on: what runtimes are to be polled for, and when. */

static bool is_image_due(const struct entry *entry, unsigned runtime, uint64_t now_us)
{
    return entry->image_pending && entry->image_runtime == runtime && entry->seen_us > 0 &&
           now_us >= entry->image_due_us;
}

bool container_cache_next_image(struct container_cache *cache, unsigned runtime, uint64_t now_us,
                                char ret_id[RUNTIME_ID_BYTES])
{
    HOLD_LOCK(&cache->lock);

    for (size_t i = 0; i < cache->containers.table.count; i++) {
        const struct entry *entry = cache->containers.table.items[i];

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
    struct entry *entry = find_entry(&cache->containers, container_id);

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
    const struct entry *entry = find_entry(&cache->containers, container_id);
    bool may = false;

    for (unsigned i = 0; i < CONTAINER_CACHE_RUNTIMES_MAX && entry && !entry->known; i++)
        may |= cache->present[i] &&
               entry->tries[i] < (entry->hinted ? HINT_TRIES : CONTAINER_CACHE_TRIES_MAX);
    return may || (entry && entry->image_pending && cache->present[entry->image_runtime]);
}

bool container_cache_is_awaited(struct container_cache *cache, const char *container_id)
{
    HOLD_LOCK(&cache->lock);
    const struct entry *entry = find_entry(&cache->containers, container_id);
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
