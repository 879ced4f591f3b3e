#include "identity/gpus/attachments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/lock.h"
#include "core/macros.h"
#include "core/table.h"

struct entry {
    struct table_entry entry;
    uint64_t round; /* the last list of the source that it was in */
    bool inspected;
    uint64_t inspected_us;
    unsigned failures;
    uint64_t retry_us;
    struct gpu_access *gpus; /* NULL: none */
    size_t gpu_count, unknown;
    enum workload_kind kind;
    char id[];
};

struct source {
    struct table table;
    uint64_t round, listed_us; /* 0: never */
};

struct attachments {
    pthread_mutex_t lock;
    struct source sources[ATTACHMENTS_SOURCES_MAX];
};

int attachments_new(struct attachments **ret_attachments)
{
    struct attachments *attachments = calloc(1, sizeof(*attachments));

    if (!attachments)
        return -ENOMEM;
    pthread_mutex_init(&attachments->lock, NULL);
    *ret_attachments = attachments;
    return 0;
}

/* Removes what was not in the last list. */
static void forget_unlisted(struct source *source)
{
    for (size_t i = source->table.count; i-- > 0;) {
        struct entry *entry = source->table.items[i];

        if (entry->round == source->round)
            continue;
        free(entry->gpus);
        table_remove(&source->table, entry);
    }
}

void attachments_free(struct attachments *attachments)
{
    if (!attachments)
        return;
    for (size_t i = 0; i < ATTACHMENTS_SOURCES_MAX; i++) {
        attachments->sources[i].round++;
        forget_unlisted(&attachments->sources[i]);
        table_done(&attachments->sources[i].table);
    }
    pthread_mutex_destroy(&attachments->lock);
    free(attachments);
}

static bool has_key(const void *entry, const void *key)
{
    const struct entry *listed = entry;
    const struct attachment_key *wanted = key;

    return listed->kind == wanted->kind && strcmp(listed->id, wanted->id) == 0;
}

static uint64_t hash_of(struct attachment_key key)
{
    return map_hash_u64(map_hash_bytes(span_of(key.id)) + key.kind);
}

static struct entry *find_entry(const struct source *source, struct attachment_key key)
{
    return table_find(&source->table, hash_of(key), has_key, &key);
}

/* Without room for it, that workload's GPUs are unknown, and nothing else is lost. */
static void list_owner(struct source *source, struct attachment_key key)
{
    struct entry *entry = find_entry(source, key);
    size_t id_bytes = strlen(key.id) + 1;

    if (!entry && source->table.count < RUNTIME_CONTAINERS_MAX && id_bytes <= WORKLOAD_ID_BYTES) {
        entry = table_add(&source->table, hash_of(key), sizeof(*entry) + id_bytes);
        if (entry) {
            entry->kind = key.kind;
            memcpy(entry->id, key.id, id_bytes);
        }
    }
    if (entry)
        entry->round = source->round;
}

static void finish_list(struct source *source, uint64_t now_us)
{
    forget_unlisted(source);
    source->listed_us = now_us;
}

void attachments_list(struct attachments *attachments, unsigned source,
                      const struct container_list *list, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct source *from = &attachments->sources[source];

    from->round++;
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].ended && strlen(list->items[i].id) == RUNTIME_ID_BYTES - 1)
            list_owner(from, attachment_container(list->items[i].id));
    finish_list(from, now_us);
}

void attachments_begin(struct attachments *attachments, unsigned source)
{
    HOLD_LOCK(&attachments->lock);

    attachments->sources[source].round++;
}

void attachments_keep(struct attachments *attachments, unsigned source, struct attachment_key key)
{
    HOLD_LOCK(&attachments->lock);

    list_owner(&attachments->sources[source], key);
}

void attachments_end(struct attachments *attachments, unsigned source, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);

    finish_list(&attachments->sources[source], now_us);
}

bool attachments_is_due(struct attachments *attachments, unsigned source, struct attachment_key key,
                        uint64_t again_us, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    const struct entry *entry = find_entry(&attachments->sources[source], key);

    return entry && now_us >= entry->retry_us &&
           (!entry->inspected || now_us - MIN(now_us, entry->inspected_us) >= again_us);
}

void attachments_set(struct attachments *attachments, unsigned source, struct attachment_key key,
                     const struct gpu_access_list *gpus, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct entry *entry = find_entry(&attachments->sources[source], key);
    size_t bytes = gpus->count * sizeof(*gpus->items);
    struct gpu_access *copy = entry && bytes > 0 ? malloc(bytes) : NULL;

    if (!entry)
        return;
    if (copy || bytes == 0) { /* without memory the old ones stay */
        if (copy)
            memcpy(copy, gpus->items, bytes);
        free(entry->gpus);
        entry->gpus = copy;
        entry->gpu_count = gpus->count;
        entry->unknown = gpus->unknown;
    }
    entry->inspected = true;
    entry->inspected_us = now_us;
    entry->failures = 0;
}

void attachments_note_failure(struct attachments *attachments, unsigned source,
                              struct attachment_key key, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct entry *entry = find_entry(&attachments->sources[source], key);

    if (entry) {
        entry->failures = MIN(entry->failures + 1, (unsigned)ATTACHMENTS_TRIES_MAX);
        entry->retry_us = now_us + (USEC_PER_SEC << entry->failures);
    }
}

void attachments_recall(struct attachments *attachments, unsigned source, struct attachment_key key,
                        struct gpu_access_list *gpus)
{
    HOLD_LOCK(&attachments->lock);
    const struct entry *entry = find_entry(&attachments->sources[source], key);

    for (size_t i = 0; entry && i < entry->gpu_count; i++)
        gpu_access_add(gpus, &entry->gpus[i]);
}

uint64_t attachments_count_unknown(struct attachments *attachments)
{
    HOLD_LOCK(&attachments->lock);
    uint64_t count = 0;

    for (size_t i = 0; i < ATTACHMENTS_SOURCES_MAX; i++) {
        const struct table *table = &attachments->sources[i].table;

        for (size_t k = 0; k < table->count; k++)
            count += ((const struct entry *)table->items[k])->unknown;
    }
    return count;
}

static bool is_fresh(const struct source *source, uint64_t since_us)
{
    return source->listed_us > 0 && source->listed_us >= since_us;
}

static void visit_gpus(const struct entry *entry, attachments_visit *visit, void *context)
{
    for (size_t i = 0; i < entry->gpu_count; i++)
        visit(context, &(struct attachment){
                           .owner_kind = entry->kind,
                           .owner_id = entry->id,
                           .container_name = "",
                           .source = entry->gpus[i].source,
                           .is_unverified = entry->gpus[i].is_unverified,
                           .kind = entry->gpus[i].kind,
                           .id = entry->gpus[i].id,
                           .index = entry->gpus[i].index,
                           .is_privileged = entry->gpus[i].is_privileged,
                       });
}

void attachments_each(struct attachments *attachments, uint64_t since_us, attachments_visit *visit,
                      void *context)
{
    HOLD_LOCK(&attachments->lock);

    for (size_t i = 0; i < ATTACHMENTS_SOURCES_MAX; i++) {
        const struct source *source = &attachments->sources[i];

        for (size_t k = 0; k < source->table.count && is_fresh(source, since_us); k++)
            visit_gpus(source->table.items[k], visit, context);
    }
}
