/* What a snapshot shows of a GPU and its processes. */
#include <errno.h>
#include <string.h>

#include "attribution/gpu/gpu.h"
#include "core/macros.h"

static bool is_fresh(struct gpu_reading reading, uint64_t now_us, uint64_t stale_us)
{
    return reading.t_us > 0 && reading.t_us + stale_us >= now_us;
}

int gpu_snapshot(const struct gpu *gpu, uint64_t now_us, uint64_t stale_us, struct arena *arena,
                 struct snapshot_gpu *to)
{
    *to = (struct snapshot_gpu){
        .gpu = gpu->index,
        .uuid = arena_copy(arena, gpu->uuid, strlen(gpu->uuid)),
        .name = arena_copy(arena, gpu->name, strlen(gpu->name)),
        .driver = arena_copy(arena, gpu->driver, strlen(gpu->driver)),
        .has_minor = gpu->has_minor,
        .minor = gpu->minor,
        .labels_garbage = gpu->labels.garbage,
        .labels_repeated = gpu->labels.repeated,
        .labels_late = gpu->labels.late,
    };
    if (!to->uuid || !to->name || !to->driver)
        return -ENOMEM;
    to->has_unknown = gpu_unknown_memory(gpu, &to->unknown_bytes);
    for (int gauge = 0; gauge < GPU_GAUGE_COUNT; gauge++) {
        to->gauges[gauge] = gpu->gauges[gauge].value;
        if (is_fresh(gpu->gauges[gauge], now_us, stale_us))
            to->valid |= 1ULL << gauge;
    }
    for (size_t x = 0; x < SNAPSHOT_XIDS_MAX; x++) {
        to->xids[x].xid = gpu->xids[x].xid;
        to->xids[x].count = gpu->xids[x].count;
    }
    /* Where it is not read again and again, it is what the board was described with. */
    if (gpu->power_limit_mw > 0) {
        to->gauges[GPU_GAUGE_POWER_LIMIT_MW] = gpu->power_limit_mw;
        to->valid |= 1ULL << GPU_GAUGE_POWER_LIMIT_MW;
    }
    return 0;
}

uint64_t gpu_count_won(const struct gpu *gpu, struct gpu_won *won)
{
    uint64_t samples = 0;

    for (size_t i = 0; i < gpu->labels.count; i++) {
        const struct util_sample *label = util_samples_peek(&gpu->labels, i);
        const struct ledger_process *process;

        if (label->at_us + UTIL_SAMPLES_RATIO_US < gpu->latest_us)
            continue;
        samples++;
        if (label->process == LEDGER_NONE)
            continue;
        process = ledger_process(gpu->ledger, label->process);
        if (!process || process->pid != label->pid)
            continue;
        won[label->process].sm_percent += label->sm_percent;
        won[label->process].memory_percent += label->memory_percent;
    }
    return samples;
}

void gpu_snapshot_process(const struct gpu *gpu, uint32_t process, const struct gpu_won *won,
                          uint64_t samples, uint64_t now_us, uint64_t stale_us,
                          struct snapshot_process *to)
{
    const struct sighting *seen = gpu_sighting(gpu, process);

    to->active = gpu_is_listed(gpu, process);
    /* No samples while the device is read means that it is idle: the driver then makes none. */
    if (is_fresh(gpu->gauges[GPU_GAUGE_UTILISATION_PERCENT], now_us, stale_us) &&
        !gpu_is_mps_client(gpu, process))
        to->valid |= SNAPSHOT_PROCESS_UTILISATION;
    to->sm_won_percent = won->sm_percent;
    to->memory_won_percent = won->memory_percent;
    to->samples = samples;
    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++) {
        if (seen->list_round[kind] != gpu->list_round[kind] || gpu->list_round[kind] == 0 ||
            seen->memory_bytes[kind] == SAMPLE_MEMORY_UNKNOWN)
            continue;
        /* The lists overlap: a process on two of them has its memory once. */
        to->memory_bytes = MAX(to->memory_bytes, seen->memory_bytes[kind]);
        to->valid |= SNAPSHOT_PROCESS_MEMORY;
    }
}
