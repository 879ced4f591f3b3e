#include "sources/cgroup/usage_traffic.h"

#include <string.h>

#include "core/macros.h"

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
