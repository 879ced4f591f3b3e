#include "collector/gpu_grants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "host/proc.h"

void gpu_grants_init(struct gpu_grants *set, const struct host *host)
{
    struct sample_process self;
    struct workload_owner owner;
    struct proc_reader reader;
    struct arena arena;

    *set = (struct gpu_grants){0};
    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, host);
    if (proc_identify(&reader, (uint32_t)getpid(), &arena, &self) == 0) {
        identity_find_owner(&self, &owner);
        memcpy(set->own_container_id, owner.container_id, sizeof(owner.container_id));
    }
    arena_done(&arena);
}

/* The list of one GPU in the making. */
struct gathering {
    const struct gpu_grants *set;
    struct snapshot_gpu gpu;
    bool privileged; /* those who were not given the GPU, but could use any */
    struct attached *items;
    size_t count, capacity;
};

static struct attached *add(struct gathering *to)
{
    if (to->count == to->capacity) {
        size_t capacity = MIN(MAX(to->capacity * 2, (size_t)16), (size_t)ATTACHED_MAX);
        struct attached *items =
            to->count < capacity ? realloc(to->items, capacity * sizeof(*items)) : NULL;

        if (!items)
            return NULL;
        to->items = items;
        to->capacity = capacity;
    }
    to->items[to->count] = (struct attached){.units = 1};
    return &to->items[to->count++];
}

static void take(void *context, const struct attachment *attachment)
{
    struct gathering *to = context;
    struct attached *attached;

    if (attachment->is_privileged != to->privileged ||
        strlen(attachment->container_id) >= sizeof(attached->owner.container_id) ||
        strcmp(attachment->container_id, to->set->own_container_id) == 0 ||
        !attachment_is_of(attachment, &to->gpu))
        return;
    attached = add(to);
    if (!attached)
        return;
    snprintf(attached->owner.id, sizeof(attached->owner.id), "%s", attachment->container_id);
    snprintf(attached->owner.container_id, sizeof(attached->owner.container_id), "%s",
             attachment->container_id);
    snprintf(attached->name, sizeof(attached->name), "%.127s", attachment->container_name);
    attached->memory_bytes = attachment->memory_bytes;
}

static int by_container(const void *a, const void *b)
{
    return strcmp(((const struct attached *)a)->owner.container_id,
                  ((const struct attached *)b)->owner.container_id);
}

/* The same container by several who say so is one. */
static void unite(struct gathering *to)
{
    size_t kept = 0;

    if (to->count > 0)
        qsort(to->items, to->count, sizeof(*to->items), by_container);
    for (size_t i = 0; i < to->count; i++) {
        struct attached *last = kept > 0 ? &to->items[kept - 1] : NULL;

        if (!last || by_container(last, &to->items[i]) != 0) {
            to->items[kept++] = to->items[i];
            continue;
        }
        last->memory_bytes = MAX(last->memory_bytes, to->items[i].memory_bytes);
        if (!last->name[0])
            memcpy(last->name, to->items[i].name, sizeof(last->name));
    }
    to->count = kept;
}

/* A container pays as what it is: as a pod's if it was ever seen as one, or is called like one. */
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

static void refresh_gpu(const struct gpu_grants *set, struct identity *identity,
                        struct pipeline *pipeline, const struct gpu *gpu)
{
    struct gathering to = {.set = set,
                           .gpu = {.gpu = gpu->index,
                                   .uuid = gpu->uuid,
                                   .has_minor = gpu->has_minor,
                                   .minor = gpu->minor}};

    identity_each_attachment(identity, take, &to);
    if (to.count == 0) {
        to.privileged = true;
        identity_each_attachment(identity, take, &to);
    }
    unite(&to);
    for (size_t i = 0; i < to.count; i++)
        set_kind(identity, pipeline, &to.items[i].owner);
    pipeline_set_attached(pipeline, gpu->index, to.items, to.count);
}

void gpu_grants_refresh(const struct gpu_grants *set, struct identity *identity,
                        struct pipeline *pipeline)
{
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i])
            refresh_gpu(set, identity, pipeline, pipeline->gpus[i]);
}
