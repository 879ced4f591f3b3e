#include "sources/cgroup/usage_delta.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "sources/cgroup/parse.h"

#define SUMS                                                                                       \
    (USAGE_BIT(USAGE_CPU_US) | USAGE_BIT(USAGE_CPU_USER_US) | USAGE_BIT(USAGE_CPU_SYSTEM_US) |     \
     USAGE_BIT(USAGE_MEMORY_RSS_BYTES) | USAGE_BIT(USAGE_MEMORY_CACHE_BYTES) |                     \
     USAGE_BIT(USAGE_MEMORY_INACTIVE_FILE_BYTES) | USAGE_BIT(USAGE_MEMORY_USED_BYTES) |            \
     USAGE_BIT(USAGE_MEMORY_SWAP_BYTES) | USAGE_BIT(USAGE_PIDS))

static bool has_cpu(const struct usage *usage)
{
    return usage->valid & (USAGE_BIT(USAGE_CPU_US) | USAGE_BIT(USAGE_CPU_USER_US) |
                           USAGE_BIT(USAGE_CPU_SYSTEM_US));
}

static uint64_t usage_cpu_us(const struct usage *usage)
{
    if (usage_has(usage, USAGE_CPU_US))
        return usage->values[USAGE_CPU_US];
    return (usage_has(usage, USAGE_CPU_USER_US) ? usage->values[USAGE_CPU_USER_US] : 0) +
           (usage_has(usage, USAGE_CPU_SYSTEM_US) ? usage->values[USAGE_CPU_SYSTEM_US] : 0);
}

uint64_t usage_delta_cpu_us(const struct usage_owner *item, const struct usage *did)
{
    /* It could not be read until now: when it used all that, nobody knows. */
    if (item->is_older && !has_cpu(&item->before))
        return 0;
    return usage_cpu_us(did);
}

uint64_t usage_memory_bytes(const struct usage *usage)
{
    if (usage_has(usage, USAGE_MEMORY_RSS_BYTES))
        return usage->values[USAGE_MEMORY_RSS_BYTES];
    return usage_has(usage, USAGE_MEMORY_USED_BYTES) ? usage->values[USAGE_MEMORY_USED_BYTES] : 0;
}

static void take_out(uint64_t *from, uint64_t amount)
{
    *from -= MIN(*from, amount);
}

static void count_io(const struct usage_owner *item, struct usage *did)
{
    for (size_t i = 0; i < item->usage.io_count; i++) {
        const struct usage_io *now = &item->usage.io[i];
        const struct usage_io *before = usage_find_io(&item->before, now->major, now->minor);

        did->io[did->io_count] = *now;
        for (size_t f = 0; before && f < USAGE_IO_FIELDS; f++)
            if (before->valid & 1U << f)
                take_out(&did->io[did->io_count].values[f], before->values[f]);
        did->io_count++;
    }
}

/* What the whole cgroup did. `did` is empty and has room for the item's devices. */
static void count(const struct usage_owner *item, struct usage *did)
{
    const struct usage *now = &item->usage;

    did->valid = item->ended ? now->valid & USAGE_COUNTERS : now->valid;
    did->left_out = now->left_out;
    memcpy(did->values, now->values, sizeof(did->values));
    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (item->before.valid & USAGE_COUNTERS & USAGE_BIT(f))
            take_out(&did->values[f], item->before.values[f]);
    count_io(item, did);
    if (item->ended)
        return;
    for (size_t i = 0; i < now->rdma_count; i++)
        did->rdma[did->rdma_count++] = now->rdma[i];
    for (size_t i = 0; i < now->hugetlb_count; i++)
        did->hugetlb[did->hugetlb_count++] = now->hugetlb[i];
}

static void take_out_devices(const struct usage *inner, struct usage *did)
{
    for (size_t i = 0; i < inner->io_count; i++) {
        struct usage_io *io = usage_find_io(did, inner->io[i].major, inner->io[i].minor);

        for (size_t f = 0; io && f < USAGE_IO_FIELDS; f++)
            if (inner->io[i].valid & io->valid & 1U << f)
                take_out(&io->values[f], inner->io[i].values[f]);
    }
    for (size_t i = 0; i < inner->rdma_count; i++) {
        struct usage_rdma *rdma = usage_find_rdma(did, inner->rdma[i].device);

        if (rdma) {
            take_out(&rdma->handles, inner->rdma[i].handles);
            take_out(&rdma->objects, inner->rdma[i].objects);
        }
    }
    for (size_t i = 0; i < inner->hugetlb_count; i++) {
        struct usage_hugetlb *hugetlb = usage_find_hugetlb(did, inner->hugetlb[i].page_bytes);

        if (hugetlb)
            take_out(&hugetlb->used_bytes, inner->hugetlb[i].used_bytes);
    }
}

static void take_out_inner(const struct usage_owner *item, struct usage *did)
{
    struct usage_room room;
    struct usage inner = usage_in(&room);

    count(item, &inner);
    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (inner.valid & did->valid & SUMS & USAGE_BIT(f))
            take_out(&did->values[f], inner.values[f]);
    take_out_devices(&inner, did);
}

/*
 * The halves of the CPU time are divided anew in each cgroup, in ticks: one of them is often too
 * large to be taken out of the other cgroup's. What is left of the whole is right.
 */
static void divide_rest(struct usage *did)
{
    static const struct usage none = {0};

    cpu_stat_divide(did, &none);
}

static int make_room(const struct usage *now, struct arena *arena, struct usage *did)
{
    *did = (struct usage){
        .io_room = now->io_count,
        .rdma_room = now->rdma_count,
        .hugetlb_room = now->hugetlb_count,
        .io = arena_array(arena, now->io_count, sizeof(*did->io)),
        .rdma = arena_array(arena, now->rdma_count, sizeof(*did->rdma)),
        .hugetlb = arena_array(arena, now->hugetlb_count, sizeof(*did->hugetlb)),
    };
    return did->io && did->rdma && did->hugetlb ? 0 : -ENOMEM;
}

int usage_delta_take(const struct usage_owner *items, size_t item_count, struct arena *arena,
                     struct usage *did)
{
    for (size_t i = 0; i < item_count; i++) {
        if (make_room(&items[i].usage, arena, &did[i]) < 0)
            return -ENOMEM;
        count(&items[i], &did[i]);
    }
    /* One level at a time, from what was read: what is two levels inside is in the one between. */
    for (size_t i = 0; i < item_count; i++)
        if (items[i].around < item_count)
            take_out_inner(&items[i], &did[items[i].around]);
    for (size_t i = 0; i < item_count; i++)
        if (items[i].around < item_count)
            divide_rest(&did[items[i].around]);
    return 0;
}

/* What a job says of itself does not count: it may name the container of another. */
static bool find(const struct resctrl *resctrl, const struct workload_owner *owner,
                 uint64_t *ret_bytes)
{
    return !owner->container_is_claim && resctrl_find(resctrl, owner->container_id, ret_bytes);
}

/* Two cgroups may be of one container: its traffic is the first one's. */
static bool is_taken(const struct sample_workload *workloads, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (workloads[k].has_traffic &&
            strcmp(workloads[k].container_id, workloads[i].container_id) == 0)
            return true;
    return false;
}

/* A task is in the group of its parent: the group of a container counts what is inside of it. */
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

void usage_traffic_take(const struct resctrl *resctrl, const struct usage_owner *items,
                        struct sample_workload *workloads, struct sample_usage *usage)
{
    uint64_t total_bytes = resctrl_total_bytes(resctrl), matched_bytes = 0;

    for (size_t i = 0; i < usage->count; i++) {
        uint64_t bytes;

        if (!find(resctrl, &items[i].owner, &bytes))
            continue;
        workloads[i].traffic_bytes = is_taken(workloads, i) ? 0 : bytes;
        workloads[i].has_traffic = usage->has_traffic = true;
        matched_bytes += workloads[i].traffic_bytes;
    }
    if (!usage->has_traffic)
        return;
    for (size_t i = 0; i < usage->count; i++)
        workloads[i].has_traffic |= is_inside(items, workloads, usage->count, i);
    usage->other_traffic_bytes = total_bytes - MIN(total_bytes, matched_bytes);
}
