#include "identity/directory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/macros.h"
#include "core/map.h"
#include "identity/pod_names.h"

enum {
    ID_BYTES = RUNTIME_ID_BYTES,
    HINT_TRIES = 1, /* what is hinted waits for one answer of each runtime, and for no second one */
};

/* What an entry holds of a container; the order of struct container, without the id. */
enum text { NAME, NAMESPACE, POD, POD_UID, IMAGE, TEXT_COUNT };

struct entry {
    char id[ID_BYTES]; /* "": a free slot */
    bool known;        /* a runtime has told */
    bool hinted;       /* somebody else has, which is good until a runtime tells */
    bool unasked;      /* it is here for a hint alone: no process was seen in it yet */
    bool taken;        /* it was wanted by other than a claim */
    bool is_pod_certain;
    bool image_pending;     /* it is a digest, and may still get its name from: */
    unsigned image_runtime; /* who said it */
    uint8_t image_tries;
    uint64_t image_due_us;
    uint8_t tries[DIRECTORY_RUNTIMES_MAX];
    uint64_t asked_us[DIRECTORY_RUNTIMES_MAX];
    uint64_t wanted_us; /* first */
    uint64_t seen_us;   /* last wanted; 0: never */
    uint64_t used_us;
    char *texts[TEXT_COUNT]; /* of what is known; NULL: "" */
};

struct directory {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t generation;
    bool present[DIRECTORY_RUNTIMES_MAX];
    bool failing[DIRECTORY_RUNTIMES_MAX]; /* the last answer was none */
    struct entry *entries;
    size_t slots, count, unknown_count, unasked_count, pending_count;
    struct map map;
    struct pod_names pods;
};

int directory_new(struct directory **ret_directory)
{
    struct directory *directory = calloc(1, sizeof(*directory));
    pthread_condattr_t attributes;

    if (!directory)
        return -ENOMEM;
    pthread_mutex_init(&directory->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&directory->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_directory = directory;
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

static void empty_entry(struct entry *entry)
{
    forget_names(entry);
    *entry = (struct entry){0};
}

void directory_free(struct directory *directory)
{
    if (!directory)
        return;
    for (size_t i = 0; i < directory->slots; i++)
        empty_entry(&directory->entries[i]);
    free(directory->entries);
    map_done(&directory->map);
    pod_names_done(&directory->pods);
    pthread_cond_destroy(&directory->changed);
    pthread_mutex_destroy(&directory->lock);
    free(directory);
}

static bool has_id(const void *context, uint32_t value, const void *key)
{
    return strcmp(((const struct directory *)context)->entries[value].id, key) == 0;
}

static struct entry *find(struct directory *directory, const char *id)
{
    uint32_t index;

    return map_find(&directory->map, map_hash_bytes(span_of(id)), has_id, directory, id, &index)
               ? &directory->entries[index]
               : NULL;
}

static int take_slot(struct directory *directory, uint32_t *ret_index)
{
    size_t slots = MAX(directory->slots * 2, (size_t)64);
    struct entry *entries;

    if (directory->entries && directory->count < directory->slots) {
        for (*ret_index = 0; directory->entries[*ret_index].id[0] != '\0'; ++*ret_index)
            ;
        return 0;
    }
    entries = realloc(directory->entries, slots * sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    memset(entries + directory->slots, 0, (slots - directory->slots) * sizeof(*entries));
    *ret_index = (uint32_t)directory->slots;
    directory->entries = entries;
    directory->slots = slots;
    return 0;
}

/* NULL where there is no room: such an id has no names, and nothing else is lost. */
static struct entry *add(struct directory *directory, const char *id, uint64_t now_us)
{
    struct entry *entry;
    uint32_t index;

    if (directory->count == DIRECTORY_ENTRIES_MAX || strlen(id) != ID_BYTES - 1 ||
        take_slot(directory, &index) < 0 ||
        map_insert(&directory->map, map_hash_bytes(span_of(id)), index) < 0)
        return NULL;
    entry = &directory->entries[index];
    memcpy(entry->id, id, ID_BYTES);
    entry->wanted_us = now_us;
    entry->used_us = now_us;
    directory->count++;
    directory->unknown_count++;
    return entry;
}

static void notify(struct directory *directory)
{
    directory->generation++;
    pthread_cond_broadcast(&directory->changed);
}

void directory_set_present(struct directory *directory, unsigned runtime, bool present)
{
    pthread_mutex_lock(&directory->lock);
    if (directory->present[runtime] != present) {
        directory->present[runtime] = present;
        notify(directory);
    }
    pthread_mutex_unlock(&directory->lock);
}

/* A process was seen in what was so far only heard of. */
static void begin_to_ask(struct directory *directory, struct entry *entry, uint64_t now_us)
{
    entry->unasked = false;
    entry->wanted_us = now_us;
    directory->unasked_count--;
    notify(directory);
}

void directory_want(struct directory *directory, const char *container_id, const char *pod_uid,
                    bool is_claim, uint64_t now_us)
{
    struct entry *entry;

    pthread_mutex_lock(&directory->lock);
    entry = find(directory, container_id);
    if (!entry && (entry = add(directory, container_id, now_us)))
        notify(directory);
    if (entry && entry->unasked)
        begin_to_ask(directory, entry, now_us);
    if (entry && entry->image_pending && entry->seen_us == 0)
        notify(directory);
    pod_names_want(&directory->pods, pod_uid, now_us);
    if (entry) {
        entry->seen_us = entry->used_us = now_us;
        entry->taken |= !is_claim;
    }
    pthread_mutex_unlock(&directory->lock);
}

static void set_pending(struct directory *directory, struct entry *entry, bool pending)
{
    directory->pending_count += (size_t)pending - (size_t)entry->image_pending;
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

static void learn(struct directory *directory, unsigned runtime, struct entry *entry,
                  const struct container *container)
{
    bool has_image;

    if (entry->hinted)
        forget_names(entry);
    entry->hinted = false;
    has_image = entry->texts[IMAGE] != NULL;
    take_names(entry, container);
    if (!container->image_is_digest && container->image[0]) {
        set_pending(directory, entry, false);
    } else if (container->image_is_digest && !has_image) {
        set_pending(directory, entry, true);
        entry->image_runtime = runtime;
        entry->image_tries = 0;
        entry->image_due_us = 0;
    }
    if (!entry->known) {
        entry->known = true;
        directory->unknown_count--;
    }
}

void directory_learn(struct directory *directory, unsigned runtime,
                     const struct container_list *list, uint64_t now_us)
{
    pthread_mutex_lock(&directory->lock);
    for (size_t i = 0; i < list->count; i++) {
        const struct container *container = &list->items[i];
        struct entry *entry = find(directory, container->id);

        if (container->is_pod_certain &&
            (!container->ended || pod_names_is_missing(&directory->pods, container->pod_uid)))
            pod_names_learn(&directory->pods, container->pod_uid, container->namespace,
                            container->pod, false, now_us);
        if (!entry && !container->ended)
            entry = add(directory, container->id, now_us);
        if (entry)
            learn(directory, runtime, entry, container);
    }
    pthread_mutex_unlock(&directory->lock);
}

static bool image_is_due(const struct entry *entry, unsigned runtime, uint64_t now_us)
{
    return entry->image_pending && entry->image_runtime == runtime && entry->seen_us > 0 &&
           now_us >= entry->image_due_us;
}

bool directory_next_image(struct directory *directory, unsigned runtime, uint64_t now_us,
                          char ret_id[RUNTIME_ID_BYTES])
{
    bool found = false;

    pthread_mutex_lock(&directory->lock);
    for (size_t i = 0; i < directory->slots && directory->pending_count > 0 && !found; i++) {
        found = image_is_due(&directory->entries[i], runtime, now_us);
        if (found)
            memcpy(ret_id, directory->entries[i].id, ID_BYTES);
    }
    pthread_mutex_unlock(&directory->lock);
    return found;
}

void directory_set_image(struct directory *directory, const char *container_id, const char *image)
{
    struct entry *entry;

    pthread_mutex_lock(&directory->lock);
    entry = find(directory, container_id);
    if (entry && entry->image_pending) {
        take_text(entry, IMAGE, image ? image : "");
        set_pending(directory, entry, false);
    }
    pthread_mutex_unlock(&directory->lock);
}

void directory_note_image_failure(struct directory *directory, const char *container_id,
                                  uint64_t now_us)
{
    struct entry *entry;

    pthread_mutex_lock(&directory->lock);
    entry = find(directory, container_id);
    if (entry && entry->image_pending) {
        entry->image_due_us = now_us + (USEC_PER_SEC << entry->image_tries++);
        if (entry->image_tries == DIRECTORY_IMAGE_TRIES_MAX)
            set_pending(directory, entry, false);
    }
    pthread_mutex_unlock(&directory->lock);
}

static struct entry *add_unasked(struct directory *directory, const char *id, uint64_t now_us)
{
    struct entry *entry =
        directory->unasked_count < DIRECTORY_UNASKED_MAX ? add(directory, id, now_us) : NULL;

    if (entry) {
        entry->unasked = true;
        directory->unasked_count++;
    }
    return entry;
}

void directory_hint(struct directory *directory, const struct container_list *list, uint64_t now_us)
{
    pthread_mutex_lock(&directory->lock);
    for (size_t i = 0; i < list->count; i++) {
        const struct container *container = &list->items[i];
        struct entry *entry = find(directory, container->id);

        pod_names_learn(&directory->pods, container->pod_uid, container->namespace, container->pod,
                        true, now_us);
        if (!entry)
            entry = add_unasked(directory, container->id, now_us);
        if (!entry || entry->known)
            continue;
        forget_names(entry);
        take_names(entry, container);
        entry->hinted = true;
        entry->tries[DIRECTORY_HINTS] = DIRECTORY_TRIES_MAX; /* it has told what it knows */
    }
    pthread_mutex_unlock(&directory->lock);
}

void directory_note_failure(struct directory *directory, unsigned runtime)
{
    pthread_mutex_lock(&directory->lock);
    directory->failing[runtime] = true;
    pthread_mutex_unlock(&directory->lock);
}

void directory_note_asked(struct directory *directory, unsigned runtime, uint64_t asked_us)
{
    pthread_mutex_lock(&directory->lock);
    directory->failing[runtime] = false;
    for (size_t i = 0; i < directory->slots && directory->unknown_count > 0; i++) {
        struct entry *entry = &directory->entries[i];

        /* One that was wanted only after the question is not answered by it. */
        if (entry->id[0] == '\0' || entry->known || entry->unasked || entry->wanted_us > asked_us)
            continue;
        entry->tries[runtime] = (uint8_t)MIN(entry->tries[runtime] + 1, DIRECTORY_TRIES_MAX);
        entry->asked_us[runtime] = asked_us;
    }
    pthread_mutex_unlock(&directory->lock);
}

static uint64_t due_us(const struct entry *entry, unsigned runtime)
{
    unsigned tries = entry->tries[runtime];

    if (entry->known || entry->unasked || tries >= DIRECTORY_TRIES_MAX)
        return UINT64_MAX;
    return tries == 0 ? entry->wanted_us : entry->asked_us[runtime] + (USEC_PER_SEC << (tries - 1));
}

static uint64_t next_due_us(const struct directory *directory, unsigned runtime)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t i = 0; i < directory->slots && directory->unknown_count > 0; i++)
        if (directory->entries[i].id[0] != '\0')
            next_us = MIN(next_us, due_us(&directory->entries[i], runtime));
    return next_us;
}

static uint64_t next_image_us(const struct directory *directory, unsigned runtime)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t i = 0; i < directory->slots && directory->pending_count > 0; i++)
        if (image_is_due(&directory->entries[i], runtime, UINT64_MAX))
            next_us = MIN(next_us, directory->entries[i].image_due_us);
    return next_us;
}

uint64_t directory_next_ask_us(struct directory *directory, unsigned runtime)
{
    uint64_t next_us;

    pthread_mutex_lock(&directory->lock);
    next_us = MIN(next_due_us(directory, runtime), next_image_us(directory, runtime));
    pthread_mutex_unlock(&directory->lock);
    return next_us;
}

bool directory_is_missing(struct directory *directory, unsigned runtime, uint64_t now_us)
{
    bool missing;

    pthread_mutex_lock(&directory->lock);
    missing = next_due_us(directory, runtime) <= now_us;
    pthread_mutex_unlock(&directory->lock);
    return missing;
}

bool directory_may_learn(struct directory *directory, const char *container_id)
{
    const struct entry *entry;
    bool may = false;

    pthread_mutex_lock(&directory->lock);
    entry = find(directory, container_id);
    for (unsigned i = 0; i < DIRECTORY_RUNTIMES_MAX && entry && !entry->known; i++)
        may |= directory->present[i] &&
               entry->tries[i] < (entry->hinted ? HINT_TRIES : DIRECTORY_TRIES_MAX);
    may |= entry && entry->image_pending && directory->present[entry->image_runtime];
    pthread_mutex_unlock(&directory->lock);
    return may;
}

bool directory_is_awaited(struct directory *directory, const char *container_id)
{
    const struct entry *entry;
    bool awaited = false;

    pthread_mutex_lock(&directory->lock);
    entry = find(directory, container_id);
    for (unsigned i = 0; i < DIRECTORY_HINTS && entry && !entry->known; i++)
        awaited |= directory->present[i] && !directory->failing[i] && entry->tries[i] == 0;
    pthread_mutex_unlock(&directory->lock);
    return awaited;
}

static const char *copy_text(struct arena *arena, const char *text)
{
    const char *copy = text ? arena_copy(arena, text, strlen(text)) : "";

    return copy ? copy : "";
}

bool directory_find(struct directory *directory, const char *container_id, uint64_t now_us,
                    struct arena *arena, struct container *ret_container)
{
    struct entry *entry;
    bool known;

    pthread_mutex_lock(&directory->lock);
    entry = find(directory, container_id);
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
    pthread_mutex_unlock(&directory->lock);
    return known;
}

bool directory_find_pod(struct directory *directory, const char *pod_uid, uint64_t now_us,
                        struct arena *arena, const char **ret_namespace, const char **ret_pod)
{
    const struct pod_name *pod;

    pthread_mutex_lock(&directory->lock);
    pod = pod_names_find(&directory->pods, pod_uid, now_us);
    if (pod) {
        *ret_namespace = copy_text(arena, pod->namespace);
        *ret_pod = copy_text(arena, pod->name);
    }
    pthread_mutex_unlock(&directory->lock);
    return pod != NULL;
}

bool directory_is_taken(struct directory *directory, const char *container_id)
{
    const struct entry *entry;
    bool taken;

    pthread_mutex_lock(&directory->lock);
    entry = find(directory, container_id);
    taken = entry && entry->taken;
    pthread_mutex_unlock(&directory->lock);
    return taken;
}

static bool is_text(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

bool directory_find_by_name(struct directory *directory, const char *namespace, const char *pod,
                            const char *container, uint64_t since_us, char ret_id[ID_BYTES])
{
    const struct entry *newest = NULL;

    pthread_mutex_lock(&directory->lock);
    for (size_t i = 0; i < directory->slots; i++) {
        const struct entry *entry = &directory->entries[i];

        /* One that was restarted has left its old id behind. */
        if ((entry->known || entry->hinted) && entry->seen_us >= since_us &&
            is_text(entry->texts[POD], pod) && is_text(entry->texts[NAMESPACE], namespace) &&
            is_text(entry->texts[NAME], container) && (!newest || entry->seen_us > newest->seen_us))
            newest = entry;
    }
    if (newest)
        memcpy(ret_id, newest->id, ID_BYTES);
    pthread_mutex_unlock(&directory->lock);
    return newest != NULL;
}

uint64_t directory_generation(struct directory *directory)
{
    uint64_t generation;

    pthread_mutex_lock(&directory->lock);
    generation = directory->generation;
    pthread_mutex_unlock(&directory->lock);
    return generation;
}

void directory_wait(struct directory *directory, uint64_t generation, uint64_t until_us)
{
    struct timespec until = {.tv_sec = (time_t)(until_us / USEC_PER_SEC),
                             .tv_nsec = (long)(until_us % USEC_PER_SEC) * 1000};
    int r = 0;

    pthread_mutex_lock(&directory->lock);
    while (directory->generation == generation && r != ETIMEDOUT)
        r = until_us == UINT64_MAX
                ? pthread_cond_wait(&directory->changed, &directory->lock)
                : pthread_cond_timedwait(&directory->changed, &directory->lock, &until);
    pthread_mutex_unlock(&directory->lock);
}

void directory_wake(struct directory *directory)
{
    pthread_mutex_lock(&directory->lock);
    notify(directory);
    pthread_mutex_unlock(&directory->lock);
}

void directory_expire(struct directory *directory, uint64_t before_us)
{
    pthread_mutex_lock(&directory->lock);
    pod_names_expire(&directory->pods, before_us);
    for (size_t i = 0; i < directory->slots; i++) {
        struct entry *entry = &directory->entries[i];

        if (entry->id[0] == '\0' || entry->used_us >= before_us)
            continue;
        map_remove(&directory->map, map_hash_bytes(span_of(entry->id)), (uint32_t)i);
        directory->pending_count -= entry->image_pending;
        directory->unknown_count -= !entry->known;
        directory->unasked_count -= entry->unasked;
        empty_entry(entry);
        directory->count--;
    }
    pthread_mutex_unlock(&directory->lock);
}
