#include "attribution/node/workload_usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/grow.h"
#include "core/macros.h"

void workload_usages_done(struct workload_usages *usages)
{
    for (size_t i = 0; i < usages->slots; i++)
        usage_done(&usages->items[i].usage);
    free(usages->items);
    *usages = (struct workload_usages){0};
}

static int open_usage(struct workload_usages *usages, const struct workload_owner *owner,
                      uint64_t now_us, struct workload_usage **ret_usage)
{
    struct workload_usage *usage;
    uint32_t workload;

    if (ledger_open_workload(usages->ledger, owner, &workload) < 0 ||
        grow_zeroed(&usages->items, &usages->slots, ledger_counts(usages->ledger)->workload_slots,
                    sizeof(*usages->items)) < 0)
        return -ENOMEM;
    usage = &usages->items[workload];
    if (usage->round == 0)
        ledger_join_workload(usages->ledger, workload);
    if (usage->round != usages->round) {
        memset(usage->weights, 0, sizeof(usage->weights));
        usage_clear_gauges(&usage->usage);
    }
    usage->round = usages->round;
    usage->seen_us = now_us;
    *ret_usage = usage;
    return 0;
}

/* False: no owner has such long texts. */
static bool copy_text(char *text, size_t size_bytes, const char *from)
{
    size_t len = strlen(from);

    if (len >= size_bytes)
        return false;
    memcpy(text, from, len + 1);
    return true;
}

static int add_workload(struct workload_usages *usages, uint64_t now_us,
                        const struct sample_workload *workload)
{
    struct workload_owner owner = {.kind = workload->kind};
    struct workload_usage *usage;

    if (!copy_text(owner.id, sizeof(owner.id), workload->id) ||
        !copy_text(owner.container_id, sizeof(owner.container_id), workload->container_id) ||
        !copy_text(owner.pod_uid, sizeof(owner.pod_uid), workload->pod_uid))
        return 0;
    if (open_usage(usages, &owner, now_us, &usage) < 0)
        return -ENOMEM;
    usage->weights[USAGE_WEIGHT_CPU_TIME] += workload->cpu_us;
    usage->weights[USAGE_WEIGHT_MEMORY] += workload->memory_bytes;
    if (workload->has_traffic)
        usage->weights[USAGE_WEIGHT_TRAFFIC] += workload->traffic_bytes;
    else
        usage->weights[USAGE_WEIGHT_UNCOUNTED_MEMORY] += workload->memory_bytes;
    return workload->did ? usage_add(&usage->usage, workload->did) : 0;
}

/* What the machine did beyond its workloads. */
static int add_system(struct workload_usages *usages, uint64_t now_us,
                      const struct sample_usage *report)
{
    static const struct workload_owner owner = {.kind = WORKLOAD_SYSTEM, .id = "system"};
    uint64_t cpu_us = 0, memory_bytes = 0, left_bytes;
    struct workload_usage *usage;

    for (uint32_t w = 0; w < usages->slots; w++)
        if (workload_usages_has(usages, w)) {
            cpu_us += usages->items[w].weights[USAGE_WEIGHT_CPU_TIME];
            memory_bytes += usages->items[w].weights[USAGE_WEIGHT_MEMORY];
        }
    if (open_usage(usages, &owner, now_us, &usage) < 0)
        return -ENOMEM;
    left_bytes = report->memory_used_bytes - MIN(report->memory_used_bytes, memory_bytes);
    usage->weights[USAGE_WEIGHT_CPU_TIME] += report->busy_us - MIN(report->busy_us, cpu_us);
    usage->weights[USAGE_WEIGHT_MEMORY] += left_bytes;
    usage->weights[USAGE_WEIGHT_UNCOUNTED_MEMORY] += left_bytes;
    return 0;
}

int workload_usages_update(struct workload_usages *usages, uint64_t now_us,
                           const struct sample_usage *report)
{
    uint64_t retention_us = ledger_retention_us(usages->ledger);
    bool failed = false;

    usages->round++;
    for (size_t i = 0; i < report->count; i++)
        failed |= add_workload(usages, now_us, &report->workloads[i]) < 0;
    if (!report->is_blind)
        failed |= add_system(usages, now_us, report) < 0;
    for (uint32_t w = 0; w < usages->slots; w++) {
        struct workload_usage *usage = &usages->items[w];

        if (usage->round == 0 || usage->round == usages->round)
            continue;
        usage_clear_gauges(&usage->usage);
        if (now_us <= usage->seen_us || now_us - usage->seen_us <= retention_us)
            continue;
        usage_done(&usage->usage);
        *usage = (struct workload_usage){0};
        ledger_leave_workload(usages->ledger, w);
    }
    return failed ? -ENOMEM : 0;
}
