/* Which workloads have which GPUs, by the kubelet's allocations, the runtimes and the host. */
#include "identity/identity_private.h"

#include <string.h>

#include "core/macros.h"

enum { ABSENT_SCANS = 3 };

/* Runtimes are polled at most once a second. */
static const uint64_t ABSENT_MIN_US = 3 * USEC_PER_SEC;

/* A container not seen since then is gone. */
static uint64_t present_since_us(const struct identity *identity)
{
    uint64_t now = identity_now_us(identity);

    return now - MIN(now, MAX(ABSENT_SCANS * identity->options.scan_interval_us, ABSENT_MIN_US));
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
    if (named.owner_kind == WORKLOAD_CONTAINER &&
        container_cache_find(to->identity->container_cache, named.owner_id,
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

/* The kubelet lists ended pods, too: only containers that have processes count, or that a runtime
 * lists as running. */
static void visit_allocation(void *context, const struct allocation *allocation)
{
    struct visiting *to = context;
    char id[WORKLOAD_CONTAINER_BYTES];

    if (container_cache_find_by_name(to->identity->container_cache, allocation->namespace,
                                     allocation->pod, allocation->container, true, to->since_us,
                                     id))
        to->visit(to->context,
                  &(struct attachment){
                      .owner_kind = WORKLOAD_CONTAINER,
                      .owner_id = id,
                      .source = allocation->is_claim ? ALLOCATED_BY_DRA : ALLOCATED_BY_KUBELET,
                      .container_name = allocation->container,
                      .namespace = allocation->namespace,
                      .pod = allocation->pod,
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
