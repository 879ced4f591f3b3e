#include "identity/container_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/macros.h"
#include "core/table.h"
#include "identity/pod_names.h"

enum {
    ID_BYTES = RUNTIME_ID_BYTES,
    HINT_TRIES = 1, /* what is hinted waits for one answer of each runtime, and for no second one */
};

/* What an entry holds of a container; the order of struct container, without the id. */
enum text { NAME, NAMESPACE, POD, POD_UID, IMAGE, TEXT_COUNT };

struct entry {
    struct table_entry entry;
    char id[ID_BYTES];
    bool known;   /* a runtime has told */
    bool hinted;  /* somebody else has, which is good until a runtime tells */
    bool unasked; /* it is here for a hint alone: no process was seen in it yet */
    bool taken;   /* it was wanted by other than a claim */
    bool is_pod_certain;
    bool image_pending;     /* it is a digest, and may still get its name from: */
    unsigned image_runtime; /* who said it */
    uint8_t image_tries;
    uint64_t image_due_us;
    uint8_t tries[CONTAINER_CACHE_RUNTIMES_MAX];
    uint64_t asked_us[CONTAINER_CACHE_RUNTIMES_MAX];
    uint64_t wanted_us; /* first */
    uint64_t seen_us;   /* last wanted; 0: never */
    uint64_t used_us;
    char *texts[TEXT_COUNT]; /* of what is known; NULL: "" */
};

struct container_cache {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t generation;
    bool present[CONTAINER_CACHE_RUNTIMES_MAX];
    bool failing[CONTAINER_CACHE_RUNTIMES_MAX]; /* the last answer was none */
    struct table table;
    size_t unknown_count, unasked_count, pending_count;
    struct pod_names pods;
};

int container_cache_new(struct container_cache **ret_directory)
{
    struct container_cache *cache = calloc(1, sizeof(*cache));
    pthread_condattr_t attributes;

    if (!cache)
        return -ENOMEM;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&cache->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_directory = cache;
    return 0;
}

static void forget_names(struct entry *entry)
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
    return strcmp(((const struct entry *)entry)->id, key) == 0;
}

static struct entry *find(struct container_cache *cache, const char *id)
{
    return table_find(&cache->table, map_hash_bytes(span_of(id)), has_id, id);
}

/* NULL where there is no room: such an id has no names, and nothing else is lost. */
static struct entry *add(struct container_cache *cache, const char *id, uint64_t now_us)
{
    struct entry *entry = NULL;

    if (cache->table.count < CONTAINER_CACHE_ENTRIES_MAX && strlen(id) == ID_BYTES - 1)
        entry = table_add(&cache->table, map_hash_bytes(span_of(id)), sizeof(*entry));
    if (!entry)
        return NULL;
    memcpy(entry->id, id, ID_BYTES);
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
    pthread_mutex_lock(&cache->lock);
    if (cache->present[runtime] != present) {
        cache->present[runtime] = present;
        notify(cache);
    }
    pthread_mutex_unlock(&cache->lock);
}

/* A process was seen in what was so far only heard of. */
static void begin_to_ask(struct container_cache *cache, struct entry *entry, uint64_t now_us)
{
    entry->unasked = false;
    entry->wanted_us = now_us;
    cache->unasked_count--;
    notify(cache);
}

void container_cache_want(struct container_cache *cache, const char *container_id,
                          const char *pod_uid, bool is_claim, uint64_t now_us)
{
    struct entry *entry;

    pthread_mutex_lock(&cache->lock);
    entry = find(cache, container_id);
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
    pthread_mutex_unlock(&cache->lock);
}

static void set_pending(struct container_cache *cache, struct entry *entry, bool pending)
{
    cache->pending_count += (size_t)pending - (size_t)entry->image_pending;
    entry->image_pending = pending;
}

static void take_text(struct entry *entry, enum text which, const char *text)
{
    char *copy = text[0] != '\0' ? strdup(text) : NULL;

    /* A second runtime that knows the container adds to what the first one said. */
    if (copy) {
        free(entry->texts[which]);
        entry->texts[which] = copy;
    }
}

static void take_names(struct entry *entry, const struct container *container)
{
    const char *const from[TEXT_COUNT] = {container->name, container->namespace, container->pod,
                                          container->pod_uid, container->image};

    for (enum text i = 0; i < TEXT_COUNT; i++)
        if (i != IMAGE || !container->image_is_digest || !entry->texts[IMAGE])
            take_text(entry, i, from[i]);
    entry->is_pod_certain |= container->is_pod_certain;
}

static void learn(struct container_cache *cache, unsigned runtime, struct entry *entry,
                  const struct container *container)
{
    bool has_image;

    if (entry->hinted)
        forget_names(entry);
    entry->hinted = false;
    has_image = entry->texts[IMAGE] != NULL;
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
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < list->count; i++) {
        const struct container *container = &list->items[i];
        struct entry *entry = find(cache, container->id);

        if (container->is_pod_certain &&
            (!container->ended || pod_names_is_missing(&cache->pods, container->pod_uid)))
            pod_names_learn(&cache->pods, container->pod_uid, container->namespace, container->pod,
                            false, now_us);
        if (!entry && !container->ended)
            entry = add(cache, container->id, now_us);
        if (entry)
            learn(cache, runtime, entry, container);
    }
    pthread_mutex_unlock(&cache->lock);
}

static bool image_is_due(const struct entry *entry, unsigned runtime, uint64_t now_us)
{
    return entry->image_pending && entry->image_runtime == runtime && entry->seen_us > 0 &&
           now_us >= entry->image_due_us;
}

bool container_cache_next_image(struct container_cache *cache, unsigned runtime, uint64_t now_us,
                                char ret_id[RUNTIME_ID_BYTES])
{
    bool found = false;

    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < cache->table.count && cache->pending_count > 0 && !found; i++) {
        const struct entry *entry = cache->table.items[i];

        found = image_is_due(entry, runtime, now_us);
        if (found)
            memcpy(ret_id, entry->id, ID_BYTES);
    }
    pthread_mutex_unlock(&cache->lock);
    return found;
}

void container_cache_set_image(struct container_cache *cache, const char *container_id,
                               const char *image)
{
    struct entry *entry;

    pthread_mutex_lock(&cache->lock);
    entry = find(cache, container_id);
    if (entry && entry->image_pending) {
        take_text(entry, IMAGE, image ? image : "");
        set_pending(cache, entry, false);
    }
    pthread_mutex_unlock(&cache->lock);
}

void container_cache_note_image_failure(struct container_cache *cache, const char *container_id,
                                        uint64_t now_us)
{
    struct entry *entry;

    pthread_mutex_lock(&cache->lock);
    entry = find(cache, container_id);
    if (entry && entry->image_pending) {
        entry->image_due_us = now_us + (USEC_PER_SEC << entry->image_tries++);
        if (entry->image_tries == CONTAINER_CACHE_IMAGE_TRIES_MAX)
            set_pending(cache, entry, false);
    }
    pthread_mutex_unlock(&cache->lock);
}

static struct entry *add_unasked(struct container_cache *cache, const char *id, uint64_t now_us)
{
    struct entry *entry =
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
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < list->count; i++) {
        const struct container *container = &list->items[i];
        struct entry *entry = find(cache, container->id);

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
    pthread_mutex_unlock(&cache->lock);
}

void container_cache_note_failure(struct container_cache *cache, unsigned runtime)
{
    pthread_mutex_lock(&cache->lock);
    cache->failing[runtime] = true;
    pthread_mutex_unlock(&cache->lock);
}

void container_cache_note_asked(struct container_cache *cache, unsigned runtime, uint64_t asked_us)
{
    pthread_mutex_lock(&cache->lock);
    cache->failing[runtime] = false;
    for (size_t i = 0; i < cache->table.count && cache->unknown_count > 0; i++) {
        struct entry *entry = cache->table.items[i];

        /* One that was wanted only after the question is not answered by it. */
        if (entry->known || entry->unasked || entry->wanted_us > asked_us)
            continue;
        entry->tries[runtime] = (uint8_t)MIN(entry->tries[runtime] + 1, CONTAINER_CACHE_TRIES_MAX);
        entry->asked_us[runtime] = asked_us;
    }
    pthread_mutex_unlock(&cache->lock);
}

static uint64_t due_us(const struct entry *entry, unsigned runtime)
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
        const struct entry *entry = cache->table.items[i];

        if (image_is_due(entry, runtime, UINT64_MAX))
            next_us = MIN(next_us, entry->image_due_us);
    }
    return next_us;
}

uint64_t container_cache_next_ask_us(struct container_cache *cache, unsigned runtime)
{
    uint64_t next_us;

    pthread_mutex_lock(&cache->lock);
    next_us = MIN(next_due_us(cache, runtime), next_image_us(cache, runtime));
    pthread_mutex_unlock(&cache->lock);
    return next_us;
}

bool container_cache_is_missing(struct container_cache *cache, unsigned runtime, uint64_t now_us)
{
    bool missing;

    pthread_mutex_lock(&cache->lock);
    missing = next_due_us(cache, runtime) <= now_us;
    pthread_mutex_unlock(&cache->lock);
    return missing;
}

bool container_cache_may_learn(struct container_cache *cache, const char *container_id)
{
    const struct entry *entry;
    bool may = false;

    pthread_mutex_lock(&cache->lock);
    entry = find(cache, container_id);
    for (unsigned i = 0; i < CONTAINER_CACHE_RUNTIMES_MAX && entry && !entry->known; i++)
        may |= cache->present[i] &&
               entry->tries[i] < (entry->hinted ? HINT_TRIES : CONTAINER_CACHE_TRIES_MAX);
    may |= entry && entry->image_pending && cache->present[entry->image_runtime];
    pthread_mutex_unlock(&cache->lock);
    return may;
}

bool container_cache_is_awaited(struct container_cache *cache, const char *container_id)
{
    const struct entry *entry;
    bool awaited = false;

    pthread_mutex_lock(&cache->lock);
    entry = find(cache, container_id);
    for (unsigned i = 0; i < CONTAINER_CACHE_HINTS && entry && !entry->known; i++)
        awaited |= cache->present[i] && !cache->failing[i] && entry->tries[i] == 0;
    pthread_mutex_unlock(&cache->lock);
    return awaited;
}

static const char *copy_text(struct arena *arena, const char *text)
{
    const char *copy = text ? arena_copy(arena, text, strlen(text)) : "";

    return copy ? copy : "";
}

bool container_cache_find(struct container_cache *cache, const char *container_id, uint64_t now_us,
                          struct arena *arena, struct container *ret_container)
{
    struct entry *entry;
    bool known;

    pthread_mutex_lock(&cache->lock);
    entry = find(cache, container_id);
    known = entry && (entry->known || entry->hinted);
    if (entry)
        entry->used_us = now_us;
    if (known)
        *ret_container = (struct container){
            .id = copy_text(arena, entry->id),
            .name = copy_text(arena, entry->texts[NAME]),
            .namespace = copy_text(arena, entry->texts[NAMESPACE]),
            .pod = copy_text(arena, entry->texts[POD]),
            .pod_uid = copy_text(arena, entry->texts[POD_UID]),
            .image = copy_text(arena, entry->texts[IMAGE]),
            .is_pod_certain = entry->is_pod_certain,
        };
    pthread_mutex_unlock(&cache->lock);
    return known;
}

bool container_cache_find_pod(struct container_cache *cache, const char *pod_uid, uint64_t now_us,
                              struct arena *arena, const char **ret_namespace, const char **ret_pod)
{
    const struct pod_name *pod;

    pthread_mutex_lock(&cache->lock);
    pod = pod_names_find(&cache->pods, pod_uid, now_us);
    if (pod) {
        *ret_namespace = copy_text(arena, pod->namespace);
        *ret_pod = copy_text(arena, pod->name);
    }
    pthread_mutex_unlock(&cache->lock);
    return pod != NULL;
}

bool container_cache_is_taken(struct container_cache *cache, const char *container_id)
{
    const struct entry *entry;
    bool taken;

    pthread_mutex_lock(&cache->lock);
    entry = find(cache, container_id);
    taken = entry && entry->taken;
    pthread_mutex_unlock(&cache->lock);
    return taken;
}

static bool is_text(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

bool container_cache_find_by_name(struct container_cache *cache, const char *namespace,
                                  const char *pod, const char *container, uint64_t since_us,
                                  char ret_id[ID_BYTES])
{
    const struct entry *newest = NULL;

    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < cache->table.count; i++) {
        const struct entry *entry = cache->table.items[i];

        /* One that was restarted has left its old id behind. */
        if ((entry->known || entry->hinted) && entry->seen_us >= since_us &&
            is_text(entry->texts[POD], pod) && is_text(entry->texts[NAMESPACE], namespace) &&
            is_text(entry->texts[NAME], container) && (!newest || entry->seen_us > newest->seen_us))
            newest = entry;
    }
    if (newest)
        memcpy(ret_id, newest->id, ID_BYTES);
    pthread_mutex_unlock(&cache->lock);
    return newest != NULL;
}

uint64_t container_cache_generation(struct container_cache *cache)
{
    uint64_t generation;

    pthread_mutex_lock(&cache->lock);
    generation = cache->generation;
    pthread_mutex_unlock(&cache->lock);
    return generation;
}

void container_cache_wait(struct container_cache *cache, uint64_t generation, uint64_t until_us)
{
    struct timespec until = {.tv_sec = (time_t)(until_us / USEC_PER_SEC),
                             .tv_nsec = (long)(until_us % USEC_PER_SEC) * 1000};
    int r = 0;

    pthread_mutex_lock(&cache->lock);
    while (cache->generation == generation && r != ETIMEDOUT)
        r = until_us == UINT64_MAX ? pthread_cond_wait(&cache->changed, &cache->lock)
                                   : pthread_cond_timedwait(&cache->changed, &cache->lock, &until);
    pthread_mutex_unlock(&cache->lock);
}

void container_cache_wake(struct container_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    notify(cache);
    pthread_mutex_unlock(&cache->lock);
}

void container_cache_expire(struct container_cache *cache, uint64_t before_us)
{
    pthread_mutex_lock(&cache->lock);
    pod_names_expire(&cache->pods, before_us);
    for (size_t i = cache->table.count; i-- > 0;) {
        struct entry *entry = cache->table.items[i];

        if (entry->used_us >= before_us)
            continue;
        cache->pending_count -= entry->image_pending;
        cache->unknown_count -= !entry->known;
        cache->unasked_count -= entry->unasked;
        forget_names(entry);
        table_remove(&cache->table, entry);
    }
    pthread_mutex_unlock(&cache->lock);
}
