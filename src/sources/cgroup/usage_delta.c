#include "sources/cgroup/cgroups.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "sources/cgroup/parse.h"

#define CPU_TIMES                                                                                  \
    (USAGE_BIT(USAGE_CPU_US) | USAGE_BIT(USAGE_CPU_USER_US) | USAGE_BIT(USAGE_CPU_SYSTEM_US))
/* The fields of which a cgroup's value is the sum over what is below it. */
#define SUMS                                                                                       \
    (CPU_TIMES | USAGE_BIT(USAGE_MEMORY_RSS_BYTES) | USAGE_BIT(USAGE_MEMORY_CACHE_BYTES) |         \
     USAGE_BIT(USAGE_MEMORY_INACTIVE_FILE_BYTES) | USAGE_BIT(USAGE_MEMORY_USED_BYTES) |            \
     USAGE_BIT(USAGE_MEMORY_SWAP_BYTES) | USAGE_BIT(USAGE_PIDS))

static uint64_t value_or_0(const struct usage *usage, enum usage_field field)
{
    return usage_has(usage, field) ? usage->values[field] : 0;
}

uint64_t usage_delta_cpu_us(const struct usage_owner *item, const struct usage *did)
{
    /* It could not be read until now: when it used all that is unknown. */
    if (item->is_older && !(item->before.valid & CPU_TIMES))
        return 0;
    if (usage_has(did, USAGE_CPU_US))
        return did->values[USAGE_CPU_US];
    return value_or_0(did, USAGE_CPU_USER_US) + value_or_0(did, USAGE_CPU_SYSTEM_US);
}

uint64_t usage_memory_bytes(const struct usage *usage)
{
    return value_or_0(usage, usage_has(usage, USAGE_MEMORY_RSS_BYTES) ? USAGE_MEMORY_RSS_BYTES
                                                                      : USAGE_MEMORY_USED_BYTES);
}

static void subtract(uint64_t *from, uint64_t amount)
{
    *from -= MIN(*from, amount);
}

/* What the whole cgroup did. `did` is empty and has room for the item's devices. */
static void usage_compute(const struct usage_owner *item, struct usage *did)
{
    const struct usage *now = &item->usage;

    did->valid = item->ended ? now->valid & USAGE_COUNTERS : now->valid;
    did->left_out = now->left_out;
    memcpy(did->values, now->values, sizeof(did->values));
    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (item->before.valid & USAGE_COUNTERS & USAGE_BIT(f))
            subtract(&did->values[f], item->before.values[f]);
    for (size_t i = 0; i < now->io_count; i++) {
        const struct usage_io *before =
            usage_find_io(&item->before, now->io[i].major, now->io[i].minor);
        struct usage_io *io = &did->io[did->io_count++];

        *io = now->io[i];
        for (size_t f = 0; before && f < USAGE_IO_FIELDS; f++)
            if (before->valid & 1U << f)
                subtract(&io->values[f], before->values[f]);
    }
    if (item->ended)
        return;
    for (size_t i = 0; i < now->rdma_count; i++)
        did->rdma[did->rdma_count++] = now->rdma[i];
    for (size_t i = 0; i < now->hugetlb_count; i++)
        did->hugetlb[did->hugetlb_count++] = now->hugetlb[i];
}

/* Subtracts an item from the workload around it. */
static void subtract_inner(const struct usage_owner *item, struct usage *did)
{
    struct usage_storage room;
    struct usage inner = usage_in(&room);

    usage_compute(item, &inner);
    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (inner.valid & did->valid & SUMS & USAGE_BIT(f))
            subtract(&did->values[f], inner.values[f]);
    for (size_t i = 0; i < inner.io_count; i++) {
        struct usage_io *io = usage_find_io(did, inner.io[i].major, inner.io[i].minor);

        for (size_t f = 0; io && f < USAGE_IO_FIELDS; f++)
            if (inner.io[i].valid & io->valid & 1U << f)
                subtract(&io->values[f], inner.io[i].values[f]);
    }
    for (size_t i = 0; i < inner.rdma_count; i++) {
        struct usage_rdma *rdma = usage_find_rdma(did, inner.rdma[i].device);

        if (rdma) {
            subtract(&rdma->handles, inner.rdma[i].handles);
            subtract(&rdma->objects, inner.rdma[i].objects);
        }
    }
    for (size_t i = 0; i < inner.hugetlb_count; i++) {
        struct usage_hugetlb *hugetlb = usage_find_hugetlb(did, inner.hugetlb[i].page_bytes);

        if (hugetlb)
            subtract(&hugetlb->used_bytes, inner.hugetlb[i].used_bytes);
    }
}

int usage_delta_compute(const struct usage_owner *items, size_t item_count, struct arena *arena,
                        struct usage *did)
{
    static const struct usage none = {0};

    for (size_t i = 0; i < item_count; i++) {
        const struct usage *now = &items[i].usage;

        did[i] = (struct usage){
            .io_room = now->io_count,
            .rdma_room = now->rdma_count,
            .hugetlb_room = now->hugetlb_count,
            .io = arena_array(arena, now->io_count, sizeof(*did->io)),
            .rdma = arena_array(arena, now->rdma_count, sizeof(*did->rdma)),
            .hugetlb = arena_array(arena, now->hugetlb_count, sizeof(*did->hugetlb)),
        };
        if (!did[i].io || !did[i].rdma || !did[i].hugetlb)
            return -ENOMEM;
        usage_compute(&items[i], &did[i]);
    }
    /* One level at a time, from what was read: what is two levels inside is in the one between. */
    for (size_t i = 0; i < item_count; i++)
        if (items[i].around < item_count)
            subtract_inner(&items[i], &did[items[i].around]);
    /* Each cgroup's CPU time is divided into halves by ticks: one half is often too large to be
     * subtracted from that of the cgroup around it. The total is right, so it is divided again. */
    for (size_t i = 0; i < item_count; i++)
        if (items[i].around < item_count)
            cgroup_divide_cpu(&did[items[i].around], &none);
    return 0;
}

/* Two cgroups may be of one container: its traffic is the first one's. */
static bool is_assigned(const struct sample_workload *workloads, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (workloads[k].has_traffic &&
            strcmp(workloads[k].container_id, workloads[i].container_id) == 0)
            return true;
    return false;
}

/* A task is in the group of its parent: a container's group counts everything inside it. */
static bool is_inside(const struct usage_owner *items, const struct sample_workload *workloads,
                      size_t count, size_t i)
{
    for (size_t steps = 0; steps < count && items[i].around < count; steps++) {
        i = items[i].around;
        if (workloads[i].has_traffic)
            return true;
    }
    return false;
}

void usage_traffic_assign(const struct resctrl *resctrl, const struct usage_owner *items,
                          struct sample_workload *workloads, struct sample_usage *usage)
{
    uint64_t total_bytes = resctrl_total_bytes(resctrl), matched_bytes = 0;

    for (size_t i = 0; i < usage->count; i++) {
        const struct workload_owner *owner = &items[i].owner;
        uint64_t bytes;

        /* A job's own claim does not count: it may name the container of another. */
        if (owner->container_is_claim || !resctrl_find(resctrl, owner->container_id, &bytes))
            continue;
        workloads[i].traffic_bytes = is_assigned(workloads, i) ? 0 : bytes;
        workloads[i].has_traffic = usage->has_traffic = true;
        matched_bytes += workloads[i].traffic_bytes;
    }
    if (!usage->has_traffic)
        return;
    for (size_t i = 0; i < usage->count; i++)
        workloads[i].has_traffic |= is_inside(items, workloads, usage->count, i);
    usage->other_traffic_bytes = total_bytes - MIN(total_bytes, matched_bytes);
}

void usage_others_add(struct sample_workload *workloads, struct sample_usage *usage)
{
    struct sample_workload *others = &workloads[usage->count];
    uint64_t cpu_us = 0, memory_bytes = 0;

    for (size_t i = 0; i < usage->count; i++) {
        cpu_us += workloads[i].cpu_us;
        memory_bytes += workloads[i].memory_bytes;
    }
    *others = (struct sample_workload){
        .kind = WORKLOAD_OTHER,
        .id = "other",
        .container_id = "",
        .pod_uid = "",
        .cpu_us = usage->busy_us - MIN(usage->busy_us, cpu_us),
        .memory_bytes = usage->memory_used_bytes - MIN(usage->memory_used_bytes, memory_bytes),
    };
    usage->count++;
}
