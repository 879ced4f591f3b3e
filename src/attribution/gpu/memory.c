#include "attribution/gpu/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/share.h"
#include "core/macros.h"

bool memory_is_asked(const struct attached *attached, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (attached[i].memory_bytes == 0)
            return false;
    return count > 0;
}

uint64_t memory_weight(const struct attached *attached, bool is_asked)
{
    return is_asked ? attached->memory_bytes : MAX(attached->units, 1U);
}

/* The rows of one GPU in the making. */
struct rows {
    struct snapshot_container *items;
    size_t count;
};

static int by_container(const void *a, const void *b)
{
    const struct snapshot_container *x = a, *y = b;

    return strcmp(x->container_id, y->container_id);
}

/* A row for each container that has processes on the GPU, sorted. */
static void gather_seen(const struct snapshot *snapshot, uint32_t gpu, struct rows *rows)
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

/* Adds those who can use the GPU and are not seen on it. Their weights are in the shares. */
static int gather_unseen(const struct attached *attached, size_t attached_count, uint32_t gpu,
                         struct arena *arena, struct rows *rows, struct share *shares)
{
    bool is_asked = memory_is_asked(attached, attached_count);
    size_t seen = rows->count;

    for (size_t i = 0; i < attached_count; i++) {
        struct snapshot_container row = {.gpu = gpu, .inferred = true};

        row.container_id = attached[i].owner.container_id;
        if (!row.container_id[0] || bsearch(&row, rows->items, seen, sizeof(row), by_container))
            continue;
        row.container_id = arena_copy(arena, row.container_id, strlen(row.container_id));
        row.name = arena_copy(arena, attached[i].name, strlen(attached[i].name));
        if (!row.container_id || !row.name)
            return -ENOMEM;
        shares[rows->count - seen].weight = memory_weight(&attached[i], is_asked);
        rows->items[rows->count++] = row;
    }
    return 0;
}

int memory_divide(struct snapshot *snapshot, struct snapshot_gpu *gpu,
                  const struct attached *attached, size_t attached_count)
{
    size_t most = snapshot->container_count + snapshot->process_count + attached_count, seen;
    struct snapshot_container *all = arena_array(&snapshot->arena, most, sizeof(*all));
    struct share *shares = arena_array(&snapshot->arena, attached_count + 1, sizeof(*shares));
    struct rows rows = {0};
    int r;

    if (!all || !shares)
        return -ENOMEM;
    if (snapshot->container_count > 0)
        memcpy(all, snapshot->containers, snapshot->container_count * sizeof(*all));
    rows.items = all + snapshot->container_count;
    gather_seen(snapshot, gpu->gpu, &rows);
    seen = rows.count;
    r = gather_unseen(attached, attached_count, gpu->gpu, &snapshot->arena, &rows, shares);
    if (r < 0)
        return r;
    gpu->inference_active =
        gpu->has_unknown && gpu->unknown_bytes > 0 &&
        share_split(gpu->unknown_bytes, shares, rows.count - seen) == gpu->unknown_bytes;
    for (size_t i = seen; i < rows.count && gpu->inference_active; i++) {
        rows.items[i].has_bytes = true;
        rows.items[i].bytes = shares[i - seen].amount;
    }
    snapshot->containers = all;
    snapshot->container_count += rows.count;
    return 0;
}

int memory_list_containers(struct snapshot *snapshot)
{
    struct snapshot_container *rows =
        arena_array(&snapshot->arena, snapshot->container_count, sizeof(*rows));
    size_t kept = 0;

    if (!rows)
        return -ENOMEM;
    if (snapshot->container_count > 0)
        memcpy(rows, snapshot->containers, snapshot->container_count * sizeof(*rows));
    qsort(rows, snapshot->container_count, sizeof(*rows), by_container);
    for (size_t i = 0; i < snapshot->container_count; i++)
        if (kept == 0 || by_container(&rows[kept - 1], &rows[i]) != 0)
            rows[kept++] = rows[i];
    snapshot->detected = rows;
    snapshot->detected_count = kept;
    return 0;
}
