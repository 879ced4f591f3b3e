/* A GPU, its processes and containers in a snapshot. */
#include <errno.h>
#include <stdlib.h>
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
        .labels_garbage = gpu->samples.garbage,
        .labels_repeated = gpu->samples.repeated,
        .labels_late = gpu->samples.late,
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
    /* Where it is not read repeatedly, it is that of the device sample. */
    if (gpu->power_limit_mw > 0) {
        to->gauges[GPU_GAUGE_POWER_LIMIT_MW] = gpu->power_limit_mw;
        to->valid |= 1ULL << GPU_GAUGE_POWER_LIMIT_MW;
    }
    return 0;
}

/* Adds the utilisation of a process over the last 10 s, in sums over its samples. */
static void add_utilisation(const struct gpu *gpu, uint32_t process, struct snapshot_process *to)
{
    uint32_t pid = ledger_process(gpu->ledger, process)->pid;

    for (size_t i = 0; i < gpu->samples.count; i++) {
        const struct util_sample *sample =
            &gpu->samples.ring[(gpu->samples.first + i) % UTIL_SAMPLES_MAX];

        if (sample->at_us + UTIL_SAMPLES_RATIO_US < gpu->latest_us)
            continue;
        to->samples++;
        if (sample->process != process || sample->pid != pid)
            continue;
        to->sm_won_percent += sample->sm_percent;
        to->memory_won_percent += sample->memory_percent;
    }
}

void gpu_snapshot_process(const struct gpu *gpu, uint32_t process, uint64_t now_us,
                          uint64_t stale_us, struct snapshot_process *to)
{
    const struct sighting *seen = gpu_sighting(gpu, process);

    to->active = gpu_lists_of(gpu, process) != 0;
    /* Without samples a device that is read is idle: the driver then makes none. */
    if (is_fresh(gpu->gauges[GPU_GAUGE_UTILISATION_PERCENT], now_us, stale_us) &&
        !gpu_is_on_list(gpu, process, SAMPLE_LIST_MPS))
        to->valid |= SNAPSHOT_PROCESS_UTILISATION;
    add_utilisation(gpu, process, to);
    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++) {
        if (!gpu_is_on_list(gpu, process, kind) ||
            seen->memory_bytes[kind] == SAMPLE_MEMORY_UNKNOWN)
            continue;
        /* The lists overlap: a process on two of them has its memory once. */
        to->memory_bytes = MAX(to->memory_bytes, seen->memory_bytes[kind]);
        to->valid |= SNAPSHOT_PROCESS_MEMORY;
    }
}

bool gpu_is_memory_requested(const struct attached *attached, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (attached[i].memory_bytes == 0)
            return false;
    return count > 0;
}

uint64_t gpu_attached_weight(const struct attached *attached, bool is_requested)
{
    return is_requested ? attached->memory_bytes : MAX(attached->units, 1U);
}

/* The containers of one GPU, being listed. */
struct container_rows {
    struct snapshot_container *items;
    size_t count;
};

static int by_container(const void *a, const void *b)
{
    const struct snapshot_container *x = a, *y = b;

    return strcmp(x->container_id, y->container_id);
}

/* Adds the containers with visible processes, sorted. */
static void list_visible(const struct snapshot *snapshot, uint32_t gpu, struct container_rows *rows)
{
    size_t kept = 0;

    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct snapshot_process *process = &snapshot->processes[i];

        if (process->gpu != gpu || !process->active || process->hidden || process->superseded ||
            !process->container_id[0])
            continue;
        rows->items[rows->count++] = (struct snapshot_container){
            .gpu = gpu,
            .container_id = process->container_id,
            .name = process->names.container,
            .has_bytes = process->valid & SNAPSHOT_PROCESS_MEMORY,
            .bytes = process->valid & SNAPSHOT_PROCESS_MEMORY ? process->memory_bytes : 0,
        };
    }
    qsort(rows->items, rows->count, sizeof(*rows->items), by_container);
    for (size_t i = 0; i < rows->count; i++) {
        struct snapshot_container *last = kept > 0 ? &rows->items[kept - 1] : NULL;

        if (last && by_container(last, &rows->items[i]) == 0) {
            last->bytes += rows->items[i].bytes;
            last->has_bytes |= rows->items[i].has_bytes;
        } else {
            rows->items[kept++] = rows->items[i];
        }
    }
    rows->count = kept;
}

/* Adds the containers with access to the GPU and no visible process, and their weights. */
static int list_invisible(const struct gpu *gpu, struct arena *arena, struct container_rows *rows,
                          struct share *shares)
{
    bool is_requested = gpu_is_memory_requested(gpu->attached, gpu->attached_count);
    size_t visible = rows->count;

    for (size_t i = 0; i < gpu->attached_count; i++) {
        const struct attached *attached = &gpu->attached[i];
        struct snapshot_container row = {
            .gpu = gpu->index, .container_id = attached->owner.container_id, .inferred = true};

        if (!row.container_id[0] || bsearch(&row, rows->items, visible, sizeof(row), by_container))
            continue;
        row.container_id = arena_copy(arena, row.container_id, strlen(row.container_id));
        row.name = arena_copy(arena, attached->name, strlen(attached->name));
        if (!row.container_id || !row.name)
            return -ENOMEM;
        shares[rows->count - visible].weight = gpu_attached_weight(attached, is_requested);
        rows->items[rows->count++] = row;
    }
    return 0;
}

int gpu_snapshot_containers(const struct gpu *gpu, struct snapshot *snapshot,
                            struct snapshot_gpu *to)
{
    size_t before = snapshot->container_count, visible;
    struct snapshot_container *all = arena_array(
        &snapshot->arena, before + snapshot->process_count + gpu->attached_count, sizeof(*all));
    struct share *shares = arena_array(&snapshot->arena, gpu->attached_count + 1, sizeof(*shares));
    struct container_rows rows = {0};

    if (!all || !shares)
        return -ENOMEM;
    if (before > 0)
        memcpy(all, snapshot->containers, before * sizeof(*all));
    rows.items = all + before;
    list_visible(snapshot, gpu->index, &rows);
    visible = rows.count;
    if (list_invisible(gpu, &snapshot->arena, &rows, shares) < 0)
        return -ENOMEM;
    /* Unknown memory can only be that of containers without a visible process. */
    to->inference_active =
        to->has_unknown && to->unknown_bytes > 0 &&
        share_split(to->unknown_bytes, shares, rows.count - visible) == to->unknown_bytes;
    for (size_t i = visible; i < rows.count && to->inference_active; i++) {
        rows.items[i].has_bytes = true;
        rows.items[i].bytes = shares[i - visible].amount;
    }
    snapshot->containers = all;
    snapshot->container_count += rows.count;
    return 0;
}
