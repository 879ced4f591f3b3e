/* Which containers have which GPUs, by the kubelet's allocations, the runtimes and the host. */
#include "identity/identity_private.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"

enum { ROWS_MAX = 4096, ABSENT_SCANS = 3 };

/* Runtimes are polled at most once a second. */
static const uint64_t ABSENT_MIN_US = 3 * USEC_PER_SEC;

/* A container not seen since then is gone. */
static uint64_t present_since_us(const struct identity *identity)
{
    uint64_t now = identity_now_us(identity);

    return now - MIN(now, MAX(ABSENT_SCANS * identity->options.scan_interval_us, ABSENT_MIN_US));
}

struct allocating {
    struct identity *identity;
    struct snapshot *snapshot;
    struct snapshot_allocation *rows;
    size_t count;
};

static void add_row(struct allocating *to, const struct allocation *allocation, const char *id,
                    uint32_t gpu)
{
    struct arena *arena = &to->snapshot->arena;

    for (size_t i = 0; i < to->count; i++)
        if (to->rows[i].gpu == gpu && strcmp(to->rows[i].container_id, id) == 0)
            return; /* two replicas of one GPU */
    if (to->count == ROWS_MAX)
        return;
    to->rows[to->count++] = (struct snapshot_allocation){
        .container_id = identity_copy(arena, id),
        .names = {.name = identity_copy(arena, allocation->pod),
                  .namespace = identity_copy(arena, allocation->namespace),
                  .pod = identity_copy(arena, allocation->pod),
                  .container = identity_copy(arena, allocation->container)},
        .gpu = gpu,
    };
}

/* The kubelet lists ended pods, too: only containers that have processes count. */
static void add_allocation(void *context, const struct allocation *allocation)
{
    const struct attachment gpu = {
        .kind = allocation->kind, .id = allocation->id, .index = allocation->index};
    struct allocating *to = context;
    char id[WORKLOAD_CONTAINER_BYTES];

    if (!container_cache_find_by_name(to->identity->container_cache, allocation->namespace,
                                      allocation->pod, allocation->container, false,
                                      present_since_us(to->identity), id))
        return;
    for (size_t i = 0; i < to->snapshot->gpu_count; i++)
        if (attachment_is_of(&gpu, &to->snapshot->gpus[i]))
            add_row(to, allocation, id, to->snapshot->gpus[i].gpu);
}

int identity_add_allocations(struct identity *identity, struct snapshot *snapshot)
{
    struct allocating to = {.identity = identity, .snapshot = snapshot};

    if (!identity->kubelet)
        return 0;
    to.rows = arena_array(&snapshot->arena, ROWS_MAX, sizeof(*to.rows));
    if (!to.rows)
        return -ENOMEM;
    kubelet_each(identity->kubelet, add_allocation, &to);
    snapshot->allocations = to.rows;
    snapshot->allocation_count = to.count;
    return 0;
}

enum { NAMES_CAP_BYTES = 64 << 10 }; /* of one container */

struct visiting {
    struct identity *identity;
    struct arena names;
    uint64_t since_us;
    attachments_visit *visit;
    void *context;
};

static void visit_attachment(void *context, const struct attachment *attachment)
{
    struct visiting *to = context;
    struct attachment named = *attachment;
    struct container container;

    arena_reset(&to->names);
    if (container_cache_find(to->identity->container_cache, named.container_id,
                             identity_now_us(to->identity), &to->names, &container))
        named.container_name = container.name;
    to->visit(to->context, &named);
}

/* A shared part has no memory of its own. */
static uint64_t allocated_bytes(const struct allocation *allocation)
{
    uint64_t bytes = gpu_access_profile_bytes(span_of(allocation->id));

    if (allocation->shared)
        return 0;
    return bytes > 0 ? bytes : gpu_access_profile_bytes(span_of(allocation->resource));
}

/* A container that a runtime lists counts even if its processes are not visible. */
static void visit_allocation(void *context, const struct allocation *allocation)
{
    struct visiting *to = context;
    char id[WORKLOAD_CONTAINER_BYTES];

    if (container_cache_find_by_name(to->identity->container_cache, allocation->namespace,
                                     allocation->pod, allocation->container, true, to->since_us,
                                     id))
        to->visit(to->context, &(struct attachment){
                                   .container_id = id,
                                   .container_name = allocation->container,
                                   .kind = allocation->kind,
                                   .id = allocation->id,
                                   .index = allocation->index,
                                   .memory_bytes = allocated_bytes(allocation),
                               });
}

void identity_each_attachment(struct identity *identity, attachments_visit *visit, void *context)
{
    struct visiting to = {.identity = identity, .visit = visit, .context = context};

    if (!identity->attachments)
        return;
    arena_init(&to.names, NAMES_CAP_BYTES);
    to.since_us = present_since_us(identity);
    attachments_each(identity->attachments, to.since_us, visit_attachment, &to);
    if (identity->kubelet)
        kubelet_each(identity->kubelet, visit_allocation, &to);
    arena_done(&to.names);
}
