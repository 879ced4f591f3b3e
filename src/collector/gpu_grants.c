#include "collector/gpu_grants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/macros.h"
#include "host/proc.h"

void gpu_grants_init(struct gpu_grants *grants, const struct host *host)
{
    struct sample_process self;
    struct workload_owner owner;
    struct proc_reader reader;
    struct arena arena;

    *grants = (struct gpu_grants){0};
    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, host);
    if (proc_identify(&reader, (uint32_t)getpid(), &arena, &self) == 0) {
        identity_find_owner(&self, &owner);
        memcpy(grants->own_container_id, owner.container_id, sizeof(owner.container_id));
    }
    arena_done(&arena);
}

/* The list of one GPU while it is collected. */
struct grant_list {
    const struct gpu_grants *grants;
    struct snapshot_gpu gpu;
    bool privileged; /* those that were granted no GPU, but can use any */
    struct attached *items;
    size_t count, capacity;
};

static void add_grant(void *context, const struct attachment *attachment)
{
    struct grant_list *list = context;
    struct attached *attached;

    if (attachment->is_privileged != list->privileged || list->count == ATTACHED_MAX ||
        strlen(attachment->container_id) >= sizeof(attached->owner.container_id) ||
        strcmp(attachment->container_id, list->grants->own_container_id) == 0 ||
        !attachment_is_of(attachment, &list->gpu) ||
        !array_make_room(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return;
    attached = &list->items[list->count++];
    *attached = (struct attached){.units = 1, .memory_bytes = attachment->memory_bytes};
    snprintf(attached->owner.id, sizeof(attached->owner.id), "%s", attachment->container_id);
    snprintf(attached->owner.container_id, sizeof(attached->owner.container_id), "%s",
             attachment->container_id);
    snprintf(attached->name, sizeof(attached->name), "%.127s", attachment->container_name);
}

static int by_container(const void *a, const void *b)
{
    return strcmp(((const struct attached *)a)->owner.container_id,
                  ((const struct attached *)b)->owner.container_id);
}

/* A container that several sources report is one. */
static void merge_duplicates(struct grant_list *list)
{
    size_t kept = 0;

    if (list->count > 0)
        qsort(list->items, list->count, sizeof(*list->items), by_container);
    for (size_t i = 0; i < list->count; i++) {
        struct attached *last = kept > 0 ? &list->items[kept - 1] : NULL;

        if (!last || by_container(last, &list->items[i]) != 0) {
            list->items[kept++] = list->items[i];
            continue;
        }
        last->memory_bytes = MAX(last->memory_bytes, list->items[i].memory_bytes);
        if (!last->name[0])
            memcpy(last->name, list->items[i].name, sizeof(last->name));
    }
    list->count = kept;
}

/* A container of a pod is charged as one: it was seen as one before, or its names say so. */
static void set_kind(struct identity *identity, const struct pipeline *pipeline,
                     struct workload_owner *owner)
{
    struct workload_names names = {"", "", "", "", ""};
    uint32_t workload;

    owner->kind = WORKLOAD_POD;
    if (ledger_find_workload(pipeline->ledger, owner, &workload))
        return;
    owner->kind = WORKLOAD_CONTAINER;
    if (ledger_find_workload(pipeline->ledger, owner, &workload))
        return;
    if (identity_find_names(identity, owner, &names) && names.namespace[0])
        owner->kind = WORKLOAD_POD;
}

static void refresh_gpu(const struct gpu_grants *grants, struct identity *identity,
                        struct pipeline *pipeline, const struct gpu *gpu)
{
    struct grant_list list = {.grants = grants,
                              .gpu = {.gpu = gpu->index,
                                      .uuid = gpu->uuid,
                                      .has_minor = gpu->has_minor,
                                      .minor = gpu->minor}};

    identity_each_attachment(identity, add_grant, &list);
    if (list.count == 0) {
        list.privileged = true;
        identity_each_attachment(identity, add_grant, &list);
    }
    merge_duplicates(&list);
    for (size_t i = 0; i < list.count; i++)
        set_kind(identity, pipeline, &list.items[i].owner);
    pipeline_set_attached(pipeline, gpu->index, list.items, list.count);
}

void gpu_grants_refresh(const struct gpu_grants *grants, struct identity *identity,
                        struct pipeline *pipeline)
{
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i])
            refresh_gpu(grants, identity, pipeline, pipeline->gpus[i]);
}
