/* A GPU, its processes and containers in a snapshot. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/gpu/gpu.h"
#include "core/macros.h"

/* Memory of instances is read once per window. */
static const uint64_t INSTANCE_STALE_US = 10 * USEC_PER_SEC;

static bool is_fresh(struct gpu_reading reading, uint64_t now_us, uint64_t stale_us)
{
    return reading.t_us > 0 && reading.t_us + stale_us >= now_us;
}

static const char *copy_text(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text));
}

/* Memory of no listed process, as the least of the last readings: the list and the memory are two
 * calls, and what a process allocates between them is not unknown. */
static bool unknown_memory(const struct gpu *gpu, uint64_t *ret_bytes)
{
    uint64_t least = UINT64_MAX;

    if (gpu->unknown_readings < GPU_UNKNOWN_READINGS)
        return false;
    for (size_t i = 0; i < GPU_UNKNOWN_READINGS; i++)
        least = MIN(least, gpu->unknown_bytes[i]);
    *ret_bytes = least;
    return true;
}

static void add_program_memory(const struct gpu *gpu, struct snapshot_gpu *to)
{
    struct intensity_memory memory;

    if (!gpu->learning)
        return;
    memory = gpu_program_memory(gpu);
    to->has_program_memory = true;
    to->programs_known = memory.programs;
    to->processes_recalled = memory.recalled;
    to->processes_suspended = memory.suspended;
}

/* As the lists in force show it. */
static enum gpu_sharing observe_sharing(const struct gpu *gpu)
{
    size_t listed = 0;

    if (gpu->mig)
        return gpu->mig->kind == LAYOUT_MIG ? GPU_SHARING_MIG : GPU_SHARING_PARTITIONED;
    if (gpu->list_named[GPU_LIST_VGPU])
        return GPU_SHARING_VGPU;
    if (gpu->list_named[SAMPLE_LIST_MPS])
        return GPU_SHARING_MPS;
    for (uint32_t i = 0; i < ledger_counts(gpu->ledger)->process_slots && listed < 2; i++) {
        const struct ledger_process *process = ledger_process(gpu->ledger, i);

        listed += process && process->meter == gpu->meter && gpu_lists_of(gpu, i) != 0 &&
                  !gpu_sighting(gpu, i)->is_mps_server;
    }
    return listed > 1 ? GPU_SHARING_TIME_SLICED : GPU_SHARING_EXCLUSIVE;
}

static uint64_t copy_gauges(const struct gpu_reading *from, uint64_t now_us, uint64_t stale_us,
                            uint64_t *to)
{
    uint64_t valid = 0;

    for (int gauge = 0; gauge < GPU_GAUGE_COUNT; gauge++) {
        to[gauge] = from[gauge].value;
        if (is_fresh(from[gauge], now_us, stale_us))
            valid |= 1ULL << gauge;
    }
    return valid;
}

/* Is a process listed in this GPU instance? */
static bool is_in_use(const struct gpu *gpu, uint32_t instance)
{
    for (uint32_t i = 0; i < ledger_counts(gpu->ledger)->process_slots; i++) {
        const struct ledger_process *process = ledger_process(gpu->ledger, i);

        if (process && process->meter == gpu->meter && gpu_lists_of(gpu, i) != 0 &&
            gpu_sighting(gpu, i)->gpu_instance == instance)
            return true;
    }
    return false;
}

/* 0 or -ENOMEM. */
static int add_instances(const struct gpu *gpu, uint64_t now_us, uint64_t stale_us,
                         struct arena *arena, struct snapshot_gpu *to)
{
    const struct gpu_mig *mig = gpu->mig;
    struct snapshot_mig_device *devices;
    struct snapshot_instance *instances;
    size_t count = 0;

    for (size_t i = 0; i < mig->count; i++)
        count += mig->instances[i].compute_count;
    instances = arena_array(arena, mig->count + 1, sizeof(*instances));
    devices = arena_array(arena, count + 1, sizeof(*devices));
    if (!instances || !devices)
        return -ENOMEM;
    to->instances = instances;
    to->mig_devices = devices;
    for (size_t i = 0; i < mig->count; i++) {
        const struct gpu_instance *from = &mig->instances[i];

        instances[i] = (struct snapshot_instance){.gpu_instance = from->id,
                                                  .profile = copy_text(arena, from->profile)};
        instances[i].valid = copy_gauges(from->gauges, now_us, stale_us, instances[i].gauges);
        if (!is_in_use(gpu, from->id)) /* then GPM is not read: the last reading is of the past */
            instances[i].valid &= ~(1ULL << GPU_GAUGE_UTILISATION_PERCENT);
        if (!instances[i].profile)
            return -ENOMEM;
        for (size_t c = 0; c < from->compute_count; c++) {
            struct snapshot_mig_device *device = &devices[to->mig_device_count++];

            *device = (struct snapshot_mig_device){
                .gpu_instance = from->id,
                .compute_instance = from->computes[c].id,
                .uuid = copy_text(arena, from->computes[c].uuid),
                .profile = copy_text(arena, from->computes[c].profile),
                .index = from->computes[c].index,
                .placement = from->placement,
            };
            if (!device->uuid || !device->profile)
                return -ENOMEM;
        }
        to->instance_count++;
    }
    return 0;
}

int gpu_snapshot(const struct gpu *gpu, uint64_t now_us, uint64_t stale_us, struct arena *arena,
                 struct snapshot_gpu *to)
{
    *to = (struct snapshot_gpu){
        .gpu = gpu->index,
        .uuid = copy_text(arena, gpu->uuid),
        .name = copy_text(arena, gpu->name),
        .driver = copy_text(arena, gpu->driver),
        .has_minor = gpu->has_minor,
        .minor = gpu->minor,
        .render_minor = gpu->render_minor,
        .is_renumbered = gpu->is_renumbered,
        .pci = copy_text(arena, gpu->pci),
        .samples_garbage = gpu->samples.garbage,
        .samples_repeated = gpu->samples.repeated,
        .samples_late = gpu->samples.late,
    };
    if (!to->uuid || !to->name || !to->driver || !to->pci)
        return -ENOMEM;
    to->has_unknown = unknown_memory(gpu, &to->unknown_bytes);
    add_program_memory(gpu, to);
    to->sharing = observe_sharing(gpu);
    if (gpu->mig && add_instances(gpu, now_us, stale_us, arena, to) < 0)
        return -ENOMEM;
    to->valid = copy_gauges(gpu->gauges, now_us, stale_us, to->gauges);
    memcpy(to->xids, gpu->xids, sizeof(to->xids));
    /* Where it is not read repeatedly, it is that of the device sample. */
    if (gpu->power_limit_mw > 0) {
        to->gauges[GPU_GAUGE_POWER_LIMIT_MW] = gpu->power_limit_mw;
        to->valid |= 1ULL << GPU_GAUGE_POWER_LIMIT_MW;
    }
    return 0;
}

/* Time that the driver counts is added at least so often for a process that works. */
static const uint64_t BUSY_FRESH_US = 3 * USEC_PER_SEC;

/* Adds the utilisation of a process: as it was last counted, or else over the last 10 s, in sums
 * over its samples. */
static void add_utilisation(const struct gpu *gpu, uint32_t process, struct snapshot_process *to)
{
    const struct sighting *seen = gpu_sighting(gpu, process);
    uint32_t pid = ledger_process(gpu->ledger, process)->pid;

    if (seen->busy_at_us > 0 && seen->busy_at_us + BUSY_FRESH_US >= gpu->latest_us) {
        to->samples = 10; /* tenths of a percent */
        to->sm_won_percent = seen->busy_permille;
        return;
    }
    for (size_t i = 0; i < gpu->samples.count; i++) {
        const struct gpu_sample *sample =
            &gpu->samples.ring[(gpu->samples.first + i) % GPU_SAMPLES_MAX];

        if (sample->at_us + GPU_SAMPLES_RATIO_US < gpu->latest_us)
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
    /* Without samples a device that is read is idle: the driver then makes none. Unless it makes
     * none at all, or none of this process, which is or was a client of MPS. */
    if (is_fresh(gpu->gauges[GPU_GAUGE_UTILISATION_PERCENT], now_us, stale_us) &&
        !gpu->samples.are_missing && seen->list_round[SAMPLE_LIST_MPS] == 0)
        to->valid |= SNAPSHOT_PROCESS_UTILISATION;
    add_utilisation(gpu, process, to);
    for (int kind = 0; kind < GPU_LIST_KINDS; kind++) {
        if (!gpu_is_on_list(gpu, process, kind) ||
            seen->memory_bytes[kind] == SAMPLE_MEMORY_UNKNOWN)
            continue;
        /* The lists overlap: a process on two of them has its memory once. */
        to->memory_bytes = MAX(to->memory_bytes, seen->memory_bytes[kind]);
        to->valid |= SNAPSHOT_PROCESS_MEMORY;
    }
}

static int by_container(const void *a, const void *b)
{
    const struct snapshot_container *x = a, *y = b;

    return strcmp(x->container_id, y->container_id);
}

/* Writes a row for each container with visible processes, sorted, and returns their number. */
static size_t list_visible(const struct snapshot *snapshot, uint32_t gpu,
                           struct snapshot_container *rows)
{
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct snapshot_process *process = &snapshot->processes[i];

        if (process->gpu != gpu || !process->active || process->hidden || process->superseded ||
            !process->container_id[0])
            continue;
        rows[count++] = (struct snapshot_container){
            .gpu = gpu,
            .container_id = process->container_id,
            .name = process->names.container,
            .pod = process->names.pod,
            .namespace = process->names.namespace,
            .has_bytes = process->valid & SNAPSHOT_PROCESS_MEMORY,
            .bytes = process->valid & SNAPSHOT_PROCESS_MEMORY ? process->memory_bytes : 0,
        };
    }
    qsort(rows, count, sizeof(*rows), by_container);
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && by_container(&rows[kept - 1], &rows[i]) == 0) {
            rows[kept - 1].bytes += rows[i].bytes;
            rows[kept - 1].has_bytes |= rows[i].has_bytes;
        } else {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

/* Has a job or unit a process on the board? */
static bool is_on_board(const struct gpu *gpu, const struct workload_owner *owner)
{
    uint32_t workload;

    if (!ledger_find_workload(gpu->ledger, owner, &workload))
        return false;
    for (uint32_t i = 0; i < ledger_counts(gpu->ledger)->process_slots; i++) {
        const struct ledger_process *process = ledger_process(gpu->ledger, i);

        if (process && process->meter == gpu->meter && process->workload == workload &&
            gpu_lists_of(gpu, i) != 0)
            return true;
    }
    return false;
}

/* Can it use the GPU, and has no visible process there? `rows` are the containers that have. */
static bool is_unseen(const struct gpu *gpu, const struct attached *attached,
                      const struct snapshot_container *rows, size_t visible)
{
    struct snapshot_container key = {.container_id = attached->owner.container_id};

    return attached->is_candidate &&
           (key.container_id[0] ? !bsearch(&key, rows, visible, sizeof(key), by_container)
                                : !is_on_board(gpu, &attached->owner));
}

/* Writes the row of a container that has the GPU. 0 or -ENOMEM. */
static int add_unseen_row(const struct attached *attached, struct arena *arena,
                          struct snapshot_container *row)
{
    row->container_id = copy_text(arena, attached->owner.container_id);
    row->name = copy_text(arena, attached->container);
    row->pod = copy_text(arena, attached->pod);
    row->namespace = copy_text(arena, attached->namespace);
    return row->container_id && row->name && row->pod && row->namespace ? 0 : -ENOMEM;
}

/* The memory of an instance that no listed process has; 0 if it is so little that nobody is there,
 * UINT64_MAX if it is not known. */
static uint64_t unknown_in_instance(const struct gpu *gpu, const struct gpu_instance *instance)
{
    struct gpu_reading used = instance->gauges[GPU_GAUGE_MEMORY_USED_BYTES];

    if (used.t_us == 0 || used.t_us + INSTANCE_STALE_US < gpu->tick_us)
        return UINT64_MAX;
    for (uint32_t i = 0; i < ledger_counts(gpu->ledger)->process_slots; i++) {
        const struct ledger_process *process = ledger_process(gpu->ledger, i);
        uint64_t most = 0;

        if (!process || process->meter != gpu->meter || process->superseded ||
            gpu_sighting(gpu, i)->gpu_instance != instance->id)
            continue;
        for (int kind = 0; kind < GPU_LIST_KINDS; kind++)
            if (gpu_is_on_list(gpu, i, kind))
                most = MAX(most, gpu_sighting(gpu, i)->memory_bytes[kind]);
        used.value -= MIN(used.value, most);
    }
    return used.value >= SAMPLE_OCCUPIED_BYTES ? used.value : 0;
}

/* The part of the unknown memory that is a candidate's, relative to the others': what is unknown in
 * its instance, divided among those that have it, or what it was given. */
static uint64_t unknown_weight(const struct gpu *gpu, const struct attached *attached)
{
    const struct gpu_instance *instance = gpu->mig && attached->is_of_instance
                                              ? gpu_mig_find(gpu->mig, attached->gpu_instance)
                                              : NULL;
    uint64_t bytes = instance ? unknown_in_instance(gpu, instance) : UINT64_MAX, holders = 0;

    if (bytes == UINT64_MAX)
        return gpu_attached_weight(gpu, attached);
    for (size_t i = 0; i < gpu->attached_count; i++)
        holders += gpu->attached[i].is_candidate && gpu->attached[i].is_of_instance &&
                   gpu->attached[i].gpu_instance == attached->gpu_instance;
    return bytes / MAX(holders, 1U);
}

/*
 * Unknown memory can only be that of candidates without a visible process. Jobs and units among
 * them have their part of it, but these rows are of containers. Nor has one a row whose names may
 * still come.
 */
int gpu_snapshot_containers(const struct gpu *gpu, struct snapshot *snapshot,
                            struct snapshot_gpu *to, struct snapshot_container *rows)
{
    struct share *shares = arena_array(&snapshot->arena, gpu->attached_count + 1, sizeof(*shares));
    size_t visible = list_visible(snapshot, gpu->index, rows), count = visible;

    if (!shares)
        return -ENOMEM;
    for (size_t i = 0; i < gpu->attached_count; i++) {
        const struct attached *attached = &gpu->attached[i];

        shares[i] = (struct share){
            .weight = is_unseen(gpu, attached, rows, visible) ? unknown_weight(gpu, attached) : 0};
    }
    to->inference_active =
        to->has_unknown && to->unknown_bytes > 0 &&
        share_split(to->unknown_bytes, shares, gpu->attached_count) == to->unknown_bytes;
    for (size_t i = 0; i < gpu->attached_count; i++) {
        const struct attached *attached = &gpu->attached[i];

        if (!is_unseen(gpu, attached, rows, visible) || !attached->owner.container_id[0] ||
            !attached->is_named)
            continue;
        /* They are in the order of their owners: another instance of the same container. */
        if (count > visible &&
            strcmp(rows[count - 1].container_id, attached->owner.container_id) == 0) {
            rows[count - 1].bytes += shares[i].amount;
            rows[count - 1].has_bytes |= to->inference_active && shares[i].weight > 0;
            continue;
        }
        rows[count] =
            (struct snapshot_container){.gpu = gpu->index,
                                        .inferred = true,
                                        .has_bytes = to->inference_active && shares[i].weight > 0,
                                        .bytes = shares[i].amount};
        if (add_unseen_row(attached, &snapshot->arena, &rows[count++]) < 0)
            return -ENOMEM;
    }
    snapshot->container_count += count;
    return 0;
}
