#include "identity/gpus/attachments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/lock.h"
#include "core/macros.h"
#include "core/table.h"

/* Old drivers name the GPU of a MIG device: MIG-GPU-<uuid>/<gi>/<ci>. */
static bool is_mig_of(const char *id, const char *uuid)
{
    size_t len = strlen(uuid);

    return strncmp(id, "MIG-", 4) == 0 && strncmp(id + 4, uuid, len) == 0 && id[4 + len] == '/';
}

bool attachment_is_of(const struct attachment *attachment, const struct snapshot_gpu *gpu)
{
    switch (attachment->kind) {
    case ALLOCATION_GPU_UUID:
        return attachment->id[0] != '\0' &&
               strncasecmp(attachment->id, gpu->uuid, strlen(attachment->id)) == 0;
    case ALLOCATION_MIG_UUID:
        return is_mig_of(attachment->id, gpu->uuid);
    case ALLOCATION_MINOR:
        return gpu->has_minor && gpu->minor == attachment->index;
    case ALLOCATION_INDEX:
        return gpu->gpu == attachment->index;
    case ALLOCATION_ALL:
        return true;
    case ALLOCATION_TEGRA:
    case ALLOCATION_PCI:
    case ALLOCATION_DRM:
    case ALLOCATION_XCP:
        break; /* of vendors whose GPUs are not read yet */
    }
    return false;
}

/* From here on: containers and their GPUs. */

struct entry {
    struct table_entry entry;
    char id[RUNTIME_ID_BYTES];
    uint64_t round; /* the last list of the source that it was in */
    bool inspected;
    uint64_t inspected_us;
    unsigned failures;
    uint64_t retry_us;
    struct gpu_access *gpus; /* NULL: none */
    size_t gpu_count;
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

static bool has_id(const void *entry, const void *key)
{
    return strcmp(((const struct entry *)entry)->id, key) == 0;
}

static struct entry *find_entry(const struct source *source, const char *id)
{
    return table_find(&source->table, map_hash_bytes(span_of(id)), has_id, id);
}

/* Without room for it, that container's GPUs are unknown, and nothing else is lost. */
static void list_container(struct source *source, const struct container *container)
{
    struct entry *entry = find_entry(source, container->id);

    if (!entry && source->table.count < RUNTIME_CONTAINERS_MAX &&
        strlen(container->id) == RUNTIME_ID_BYTES - 1) {
        entry = table_add(&source->table, map_hash_bytes(span_of(container->id)), sizeof(*entry));
        if (entry)
            memcpy(entry->id, container->id, RUNTIME_ID_BYTES);
    }
    if (entry)
        entry->round = source->round;
}

void attachments_list(struct attachments *attachments, unsigned source,
                      const struct container_list *list, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct source *from = &attachments->sources[source];

    from->round++;
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].ended)
            list_container(from, &list->items[i]);
    forget_unlisted(from);
    from->listed_us = now_us;
}

bool attachments_is_due(struct attachments *attachments, unsigned source, const char *container_id,
                        uint64_t again_us, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    const struct entry *entry = find_entry(&attachments->sources[source], container_id);

    return entry && now_us >= entry->retry_us &&
           (!entry->inspected || now_us - MIN(now_us, entry->inspected_us) >= again_us);
}

void attachments_set(struct attachments *attachments, unsigned source, const char *container_id,
                     const struct gpu_access_list *gpus, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct entry *entry = find_entry(&attachments->sources[source], container_id);
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
    }
    entry->inspected = true;
    entry->inspected_us = now_us;
    entry->failures = 0;
}

void attachments_note_failure(struct attachments *attachments, unsigned source,
                              const char *container_id, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct entry *entry = find_entry(&attachments->sources[source], container_id);

    if (entry) {
        entry->failures = MIN(entry->failures + 1, (unsigned)ATTACHMENTS_TRIES_MAX);
        entry->retry_us = now_us + (USEC_PER_SEC << entry->failures);
    }
}

static bool is_fresh(const struct source *source, uint64_t since_us)
{
    return source->listed_us > 0 && source->listed_us >= since_us;
}

static void visit_gpus(const struct entry *entry, attachments_visit *visit, void *context)
{
    for (size_t i = 0; i < entry->gpu_count; i++)
        visit(context, &(struct attachment){
                           .container_id = entry->id,
                           .container_name = "",
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
