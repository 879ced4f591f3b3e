#include "attribution/node/workload_usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/grow.h"
#include "core/macros.h"

void workload_usages_done(struct workload_usages *usages)
{
    for (size_t i = 0; i < usages->slots; i++) {
        usage_done(&usages->items[i].usage);
        usage_done(&usages->items[i].before);
    }
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
    if (usage->is_resumed && usage->round != usages->round) {
        usage->before = usage->usage;
        usage->usage = (struct usage){0};
    }
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
    if (workload->kind == WORKLOAD_OTHER)
        ledger_note_dropped(usages->ledger);
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

/* After the first report of a workload since the previous run. */
static int end_resumption(struct workload_usage *usage)
{
    int r = usage_raise(&usage->usage, &usage->before);

    usage_done(&usage->before);
    usage->is_resumed = false;
    return r;
}

/* Of a workload without a cgroup: drops what it used, after the retention. */
static void expire_usage(struct workload_usages *usages, uint32_t workload, uint64_t now_us)
{
    struct workload_usage *usage = &usages->items[workload];

    usage_clear_gauges(&usage->usage);
    usage->seen_us = MIN(usage->seen_us, now_us); /* the clock may have been set back */
    if (now_us - usage->seen_us <= ledger_retention_us(usages->ledger))
        return;
    usage_done(&usage->usage);
    usage_done(&usage->before);
    *usage = (struct workload_usage){0};
    ledger_leave_workload(usages->ledger, workload);
}

void workload_usages_expire(struct workload_usages *usages, uint64_t now_us)
{
    for (uint32_t w = 0; w < usages->slots; w++)
        if (usages->items[w].round > 0)
            expire_usage(usages, w, now_us);
}

int workload_usages_update(struct workload_usages *usages, uint64_t now_us,
                           const struct sample_usage *report)
{
    bool failed = false;

    usages->round++;
    for (size_t i = 0; i < report->count; i++)
        failed |= add_workload(usages, now_us, &report->workloads[i]) < 0;
    if (!report->is_blind)
        failed |= add_system(usages, now_us, report) < 0;
    for (uint32_t w = 0; w < usages->slots; w++) {
        struct workload_usage *usage = &usages->items[w];

        if (usage->is_resumed && usage->round == usages->round)
            failed |= end_resumption(usage) < 0;
        if (usage->round > 0 && usage->round != usages->round)
            expire_usage(usages, w, now_us);
    }
    return failed ? -ENOMEM : 0;
}

static void code_io(struct usage *usage, struct coder *coder)
{
    size_t count = code_u64(coder, usage->io_count, USAGE_IO_MAX);

    for (size_t i = 0; i < count && !coder->in.is_broken; i++) {
        struct usage_io *from = coder_is_unpacking(coder) ? NULL : &usage->io[i];
        struct usage_io io = from ? *from : (struct usage_io){0};
        struct usage one = {.io = &io, .io_count = 1};

        io.major = (uint32_t)code_u64(coder, io.major, UINT32_MAX);
        io.minor = (uint32_t)code_u64(coder, io.minor, UINT32_MAX);
        io.valid = (uint32_t)code_u64(coder, io.valid, (1U << USAGE_IO_FIELDS) - 1);
        code_array_text(coder, io.device, sizeof(io.device));
        for (size_t f = 0; f < USAGE_IO_FIELDS; f++)
            io.values[f] = code_u64(coder, io.values[f], UINT64_MAX);
        if (!from && usage_add(usage, &one) < 0)
            coder_reject(coder);
    }
}

static void code_counters(struct usage *usage, struct coder *coder)
{
    usage->valid = (uint32_t)code_u64(coder, usage->valid & USAGE_COUNTERS, USAGE_COUNTERS) |
                   (coder_is_unpacking(coder) ? 0 : usage->valid);
    for (size_t f = 0; f < USAGE_FIELDS; f++)
        if (USAGE_BIT(f) & USAGE_COUNTERS & usage->valid)
            usage->values[f] = code_u64(coder, usage->values[f], UINT64_MAX);
    code_io(usage, coder);
}

void workload_usages_code(struct workload_usages *usages, struct coder *coder)
{
    size_t rows = ledger_counts(usages->ledger)->workload_slots;
    size_t slots = code_count(coder, MIN(usages->slots, rows), rows);

    if (grow_zeroed(&usages->items, &usages->slots, slots, sizeof(*usages->items)) < 0)
        coder_reject(coder);
    for (uint32_t w = 0; w < slots && !coder->in.is_broken; w++) {
        struct workload_usage *usage = &usages->items[w];

        if (!code_u64(coder, usage->round > 0, 1))
            continue;
        usage->seen_us = code_u64(coder, usage->seen_us, UINT64_MAX);
        code_counters(&usage->usage, coder);
        if (!coder_is_unpacking(coder))
            continue;
        if (!ledger_workload(usages->ledger, w)) {
            coder_reject(coder);
            return;
        }
        usages->round = usage->round = 1;
        usage->is_resumed = true;
        ledger_join_workload(usages->ledger, w);
    }
}
