#include "identity/gpus/attachments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/lock.h"
#include "core/macros.h"
#include "core/table.h"

/* Old drivers name the board of a MIG device: MIG-GPU-<uuid>/<gi>/<ci>. */
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
        break; /* of makers whose GPUs are not read yet */
    }
    return false;
}

/* From here on: the containers and their GPUs. */

enum { ID_BYTES = 65 };

/* What an entry holds of a container. */
enum text { NAME, NAMESPACE, POD, TEXT_COUNT };

struct entry {
    struct table_entry entry;
    char id[ID_BYTES];
    bool is_pod_certain;
    uint64_t round; /* of the source's lists, the last that it was in */
    bool looked;
    uint64_t looked_us;
    unsigned tries; /* in vain */
    uint64_t retry_us;
    char *texts[TEXT_COUNT]; /* NULL: "" */
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

static void free_texts(struct entry *entry)
{
    for (int i = 0; i < TEXT_COUNT; i++)
        free(entry->texts[i]);
    free(entry->gpus);
}

void attachments_free(struct attachments *attachments)
{
    if (!attachments)
        return;
    for (size_t i = 0; i < ATTACHMENTS_SOURCES_MAX; i++) {
        struct table *table = &attachments->sources[i].table;

        for (size_t k = 0; k < table->count; k++)
            free_texts(table->items[k]);
        table_done(table);
    }
    pthread_mutex_destroy(&attachments->lock);
    free(attachments);
}

static bool has_id(const void *entry, const void *key)
{
    return strcmp(((const struct entry *)entry)->id, key) == 0;
}

static struct entry *find(const struct source *source, const char *id)
{
    return table_find(&source->table, map_hash_bytes(span_of(id)), has_id, id);
}

/* NULL where there is no room: that container's GPUs are not known, and nothing else is lost. */
static struct entry *add(struct source *source, const char *id)
{
    struct entry *entry = NULL;

    if (source->table.count < RUNTIME_CONTAINERS_MAX && strlen(id) == ID_BYTES - 1)
        entry = table_add(&source->table, map_hash_bytes(span_of(id)), sizeof(*entry));
    if (entry)
        memcpy(entry->id, id, ID_BYTES);
    return entry;
}

static void set_text(char **text, const char *to)
{
    char *copy;

    if (strcmp(*text ? *text : "", to) == 0)
        return; /* as nearly always */
    copy = strdup(to);
    if (!copy)
        return;
    free(*text);
    *text = copy;
}

static void note_listed(struct source *source, const struct container *container)
{
    struct entry *entry = find(source, container->id);

    if (!entry)
        entry = add(source, container->id);
    if (!entry)
        return;
    set_text(&entry->texts[NAME], container->name);
    set_text(&entry->texts[NAMESPACE], container->namespace);
    set_text(&entry->texts[POD], container->pod);
    entry->is_pod_certain = container->is_pod_certain;
    entry->round = source->round;
}

static void forget_unlisted(struct source *source)
{
    for (size_t i = source->table.count; i-- > 0;) {
        struct entry *entry = source->table.items[i];

        if (entry->round == source->round)
            continue;
        free_texts(entry);
        table_remove(&source->table, entry);
    }
}

void attachments_list(struct attachments *attachments, unsigned source,
                      const struct container_list *list, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct source *from = &attachments->sources[source];

    from->round++;
    for (size_t i = 0; i < list->count; i++)
        if (!list->items[i].ended)
            note_listed(from, &list->items[i]);
    forget_unlisted(from);
    from->listed_us = now_us;
}

bool attachments_is_due(struct attachments *attachments, unsigned source, const char *container_id,
                        uint64_t again_us, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    const struct entry *entry = find(&attachments->sources[source], container_id);

    return entry && now_us >= entry->retry_us &&
           (!entry->looked || now_us - MIN(now_us, entry->looked_us) >= again_us);
}

static void set_gpus(struct entry *entry, const struct gpu_access_list *gpus)
{
    struct gpu_access *copy = NULL;

    if (gpus->count > 0) {
        copy = malloc(gpus->count * sizeof(*copy));
        if (!copy)
            return;
        memcpy(copy, gpus->items, gpus->count * sizeof(*copy));
    }
    free(entry->gpus);
    entry->gpus = copy;
    entry->gpu_count = gpus->count;
}

void attachments_set(struct attachments *attachments, unsigned source, const char *container_id,
                     const struct gpu_access_list *gpus, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct entry *entry = find(&attachments->sources[source], container_id);

    if (entry) {
        set_gpus(entry, gpus);
        entry->looked = true;
        entry->looked_us = now_us;
        entry->tries = 0;
    }
}

void attachments_note_failure(struct attachments *attachments, unsigned source,
                              const char *container_id, uint64_t now_us)
{
    HOLD_LOCK(&attachments->lock);
    struct entry *entry = find(&attachments->sources[source], container_id);

    if (entry) {
        entry->tries = MIN(entry->tries + 1, ATTACHMENTS_TRIES_MAX);
        entry->retry_us = now_us + (USEC_PER_SEC << entry->tries);
    }
}

static void hand_out(const struct entry *entry,
                     void (*take)(void *context, const struct attachment *attachment),
                     void *context)
{
    for (size_t i = 0; i < entry->gpu_count; i++) {
        const struct gpu_access *gpu = &entry->gpus[i];

        take(context, &(struct attachment){
                          .container_id = entry->id,
                          .container_name = entry->texts[NAME] ? entry->texts[NAME] : "",
                          .kind = gpu->kind,
                          .id = gpu->id,
                          .index = gpu->index,
                          .is_privileged = gpu->is_privileged,
                      });
    }
}

static bool is_fresh(const struct source *source, uint64_t since_us)
{
    return source->listed_us > 0 && source->listed_us >= since_us;
}

void attachments_each(struct attachments *attachments, uint64_t since_us,
                      void (*take)(void *context, const struct attachment *attachment),
                      void *context)
{
    HOLD_LOCK(&attachments->lock);

    for (size_t i = 0; i < ATTACHMENTS_SOURCES_MAX; i++) {
        const struct source *source = &attachments->sources[i];

        for (size_t k = 0; k < source->table.count && is_fresh(source, since_us); k++)
            hand_out(source->table.items[k], take, context);
    }
}

static bool is_text(const char *text, const char *wanted)
{
    return text && strcmp(text, wanted) == 0;
}

static const struct entry *find_by_name(const struct source *source, const char *namespace,
                                        const char *pod, const char *container)
{
    for (size_t i = 0; i < source->table.count; i++) {
        const struct entry *entry = source->table.items[i];

        if (entry->is_pod_certain && is_text(entry->texts[POD], pod) &&
            is_text(entry->texts[NAMESPACE], namespace) && is_text(entry->texts[NAME], container))
            return entry;
    }
    return NULL;
}

bool attachments_find_by_name(struct attachments *attachments, const char *namespace,
                              const char *pod, const char *container, uint64_t since_us,
                              char ret_id[ID_BYTES])
{
    HOLD_LOCK(&attachments->lock);
    const struct entry *found = NULL;

    for (size_t i = 0; i < ATTACHMENTS_SOURCES_MAX && !found; i++)
        if (is_fresh(&attachments->sources[i], since_us))
            found = find_by_name(&attachments->sources[i], namespace, pod, container);
    if (found)
        memcpy(ret_id, found->id, ID_BYTES);
    return found != NULL;
}
