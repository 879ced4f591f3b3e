/* The processes of a GPU: lists, utilisation samples, and accounting where it is on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/map.h"
#include "sources/nvml/nvml.h"

enum {
    ENTRIES_START = 128,
    LISTED_MAX = 65536,
    SAMPLES_MAX = 4096,
    FETCH_TRIES = 4,      /* a list can grow between two calls */
    ACCOUNTED_MAX = 4096, /* the driver's buffer holds 4000 */
    SHORT_SAMPLES_MAX = 5,
};

/* Adds a sample of the process if there is something new to say of it. */
static void see(struct nvml_poll *poll, uint32_t pid, uint32_t gpu_instance)
{
    if (gpu_pids_see(&poll->gpu->pids, pid, gpu_instance, poll->now_us, poll->batch) < 0)
        nvml_poll_out_of_memory(poll);
}

/* Forgets processes that no list named, and counts the others. */
static void end_lists(struct nvml_gpu *gpu)
{
    gpu_pids_end_round(&gpu->pids);
    for (size_t i = 0; i < gpu->mig.instance_count; i++)
        gpu->mig.instances[i].listed_count = 0;
    for (size_t i = 0; i < gpu->pids.count; i++) {
        struct nvml_gpu_instance *instance =
            nvml_mig_find(&gpu->mig, gpu->pids.items[i].gpu_instance);

        if (instance)
            instance->listed_count++;
    }
}

/* The entries of a list of the board or of a MIG device, or (`kind` is SAMPLE_LIST_KINDS) new
 * utilisation samples, in gpu->entries. Returns how many if the code is that of success. */
static uint32_t fetch_entries(struct nvml_poll *poll, struct nvml_device *device,
                              enum sample_list_kind kind, int *ret_code)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    bool is_samples = kind == SAMPLE_LIST_KINDS;
    uint32_t count = 0, max = is_samples ? SAMPLES_MAX : LISTED_MAX;
    int code = NVML_INSUFFICIENT_SIZE;

    *ret_code = NVML_NOT_SUPPORTED;
    if (is_samples ? !nvml->process_samples : !nvml->lists[kind])
        return 0;
    for (int i = 0; i < FETCH_TRIES && code == NVML_INSUFFICIENT_SIZE; i++) {
        uint32_t wanted = MIN(MAX(count + 16, (uint32_t)ENTRIES_START), max);

        if (wanted > gpu->entry_capacity) {
            /* Room for the largest entries there are, whatever this call writes. */
            void *grown = reallocarray(gpu->entries, wanted, NVML_PROCESS_BYTES_MAX);

            if (!grown) {
                nvml_poll_out_of_memory(poll);
                return 0;
            }
            gpu->entries = grown;
            gpu->entry_capacity = wanted;
        }
        count = gpu->entry_capacity;
        code = is_samples ? nvml->process_samples(device, gpu->entries, &count, gpu->last_sample_us)
                          : nvml->lists[kind](device, &count, gpu->entries);
    }
    *ret_code = code;
    return code == NVML_SUCCESS ? MIN(count, gpu->entry_capacity) : 0;
}

/* Between samples the driver returns "not found". */
void nvml_poll_read_samples(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    uint64_t newest_us = gpu->last_sample_us;
    int code;
    uint32_t count = fetch_entries(poll, gpu->device, SAMPLE_LIST_KINDS, &code);
    const struct nvml_process_sample *samples = gpu->entries;

    if (!nvml_poll_succeeded(poll, "process utilisation", code))
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct nvml_process_sample *from = &samples[i];

        if (from->timestamp_us <= gpu->last_sample_us || from->pid == 0)
            continue;
        newest_us = MAX(newest_us, from->timestamp_us);
        /* Before its sample: it may have exited by the next list. */
        see(poll, from->pid, SAMPLE_NO_INSTANCE);
        nvml_poll_add(
            poll,
            (struct sample){
                .kind = SAMPLE_LABEL,
                .label = {.pid = from->pid,
                          .at_us = from->timestamp_us,
                          .sm_percent = (uint16_t)MIN(from->sm, (uint32_t)UINT16_MAX),
                          .memory_percent = (uint16_t)MIN(from->memory, (uint32_t)UINT16_MAX),
                          .encoder_percent = (uint16_t)MIN(from->encoder, (uint32_t)UINT16_MAX),
                          .decoder_percent = (uint16_t)MIN(from->decoder, (uint32_t)UINT16_MAX),
                          .in_proc = proc_exists(&gpu->shared->proc, from->pid)}});
    }
    gpu->last_sample_us = newest_us;
}

/* A list that grows: the board's, or those of all MIG devices. */
struct list_in_progress {
    struct sample_listed *entries;
    size_t count;
};

/* Adds the entries of gpu->entries. `from`: the MIG device that they are of; NULL: the board's. */
static void take_entries(struct nvml_poll *poll, enum sample_list_kind kind, uint32_t count,
                         const struct nvml_mig_device *from, struct list_in_progress *list)
{
    struct nvml_gpu *gpu = poll->gpu;
    size_t entry_bytes = gpu->shared->library.list_entry_bytes[kind];
    struct sample_listed *entries =
        arena_array(&poll->batch->arena, list->count + count, sizeof(*entries));

    if (!entries) {
        nvml_poll_out_of_memory(poll);
        return;
    }
    if (list->count > 0)
        memcpy(entries, list->entries, list->count * sizeof(*entries));
    list->entries = entries;
    for (uint32_t i = 0; i < count; i++) {
        struct sample_listed *to = &entries[list->count++];
        /* Later versions only append; the first has no instances. */
        struct nvml_process entry = {.gpu_instance = SAMPLE_NO_INSTANCE,
                                     .compute_instance = SAMPLE_NO_INSTANCE};

        memcpy(&entry, (char *)gpu->entries + (size_t)i * entry_bytes,
               MIN(entry_bytes, sizeof(entry)));
        *to = (struct sample_listed){
            .pid = entry.pid,
            .memory_bytes = entry.used_memory,
            .gpu_instance = from ? from->gpu_instance : entry.gpu_instance,
            .compute_instance = from ? from->compute_instance : entry.compute_instance,
        };
        if (entry.pid > 0)
            see(poll, entry.pid, to->gpu_instance);
    }
}

/*
 * With MIG, the board's list needs a privilege (nvml.h: "only if the caller has appropriate
 * privileges"), and has instances since its second version; the lists of the MIG devices need
 * neither. What a device that was destroyed answers is no error: it has no processes.
 */
static bool fetch_list(struct nvml_poll *poll, enum sample_list_kind kind,
                       struct list_in_progress *list)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_mig *mig = &gpu->mig;
    bool by_device = mig->is_on && (mig->has_no_lists ||
                                    nvml->list_entry_bytes[kind] < sizeof(struct nvml_process));
    uint32_t count;
    int code;

    if (!by_device) {
        count = fetch_entries(poll, gpu->device, kind, &code);
        if (nvml_poll_succeeded(poll, "process list", code)) {
            take_entries(poll, kind, count, NULL, list);
            return true;
        }
        mig->has_no_lists = by_device = mig->is_on && code == NVML_NO_PERMISSION;
    }
    for (size_t i = 0; by_device && i < mig->device_count; i++) {
        count = fetch_entries(poll, mig->devices[i].device, kind, &code);
        if (code == NVML_SUCCESS)
            take_entries(poll, kind, count, &mig->devices[i], list);
    }
    return by_device && nvml->lists[kind];
}

/* Passes a list on if it has changed, or at the end of a window. True if it has. */
static bool read_list(struct nvml_poll *poll, enum sample_list_kind kind)
{
    struct nvml_gpu *gpu = poll->gpu;
    struct list_in_progress list = {0};
    uint64_t hash = map_hash_u64((uint64_t)kind);
    bool changed;

    if (!fetch_list(poll, kind, &list) || nvml_poll_is_over(poll))
        return false;
    for (size_t i = 0; i < list.count; i++)
        hash =
            map_hash_u64(hash ^ list.entries[i].pid ^ (uint64_t)list.entries[i].gpu_instance << 32 ^
                         (uint64_t)list.entries[i].compute_instance << 48);
    changed = hash != gpu->list_hash[kind];
    gpu->list_hash[kind] = hash;
    if (!changed && !poll->window_ends)
        return false;
    nvml_poll_add(poll, (struct sample){
                            .kind = SAMPLE_LIST,
                            .list = {.kind = kind, .count = list.count, .entries = list.entries}});
    return changed;
}

/*
 * At every poll, which costs little (0.05 ms for all three, H200): so a process of a fraction of a
 * second is seen and identified while it lives.
 */
bool nvml_poll_read_lists(struct nvml_poll *poll)
{
    bool changed = false;

    for (int kind = 0; kind < SAMPLE_LIST_KINDS && !nvml_poll_is_over(poll); kind++)
        changed |= read_list(poll, (enum sample_list_kind)kind);
    end_lists(poll->gpu);
    return changed;
}

/* A process that came and went between two lists and two samples. */
static void add_short_process(struct nvml_poll *poll, uint32_t pid,
                              const struct nvml_accounting_stats *stats)
{
    uint64_t end_us = MIN(stats->start_us + stats->time_ms * 1000, poll->now_us);
    /* As many samples as the driver would have made of it, but at least one. */
    uint64_t samples = MIN(MAX(stats->time_ms / 200, (uint64_t)1), (uint64_t)SHORT_SAMPLES_MAX);
    struct sample_process process;

    /* Not from /proc: there the pid is another process by now. */
    if (gpu_pids_recall(&poll->gpu->pids, pid, &poll->batch->arena, &process) < 0 ||
        process.start_us > stats->start_us + USEC_PER_SEC)
        process = (struct sample_process){.pid = pid,
                                          .uid = SAMPLE_UID_UNKNOWN,
                                          .start_us = stats->start_us,
                                          .name = "",
                                          .cgroup = ""};
    nvml_poll_add(poll, (struct sample){.kind = SAMPLE_PROCESS, .process = process});
    for (uint64_t i = 0; i < samples; i++)
        nvml_poll_add(
            poll,
            (struct sample){.kind = SAMPLE_LABEL,
                            .label = {.pid = pid,
                                      .at_us = end_us - i,
                                      .sm_percent = (uint16_t)MIN(stats->gpu_utilization, 100U)}});
}

/*
 * Accounting mode is not needed; where an administrator has switched it on, it reports processes
 * that are shorter than a window: those that are new in its buffer, have ended and were in no list.
 */
void nvml_poll_read_accounting(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    _cleanup_free_ uint32_t *pids = NULL;
    uint32_t count = ACCOUNTED_MAX;
    int mode = 0;

    if (!gpu->shared->library.accounting_stats ||
        !NVML_POLL_CALL(poll, "accounting mode", accounting_mode, &mode) || !mode)
        return;
    pids = malloc(ACCOUNTED_MAX * sizeof(*pids));
    if (!pids || !NVML_POLL_CALL(poll, "accounting pids", accounting_pids, &count, pids))
        return;
    count = MIN(count, (uint32_t)ACCOUNTED_MAX);
    for (uint32_t i = 0; i < count && gpu->accounting_begun && !nvml_poll_is_over(poll); i++) {
        struct nvml_accounting_stats stats = {0};
        bool was_there = false;

        for (uint32_t k = 0; k < gpu->accounted_count && !was_there; k++)
            was_there = gpu->accounted[k] == pids[i];
        if (was_there || gpu_pids_have(&gpu->pids, pids[i]) ||
            !NVML_POLL_CALL(poll, "accounting", accounting_stats, pids[i], &stats) ||
            stats.is_running || stats.gpu_utilization == 0 || stats.gpu_utilization > 100)
            continue;
        add_short_process(poll, pids[i], &stats);
    }
    free(gpu->accounted);
    gpu->accounted = TAKE_PTR(pids);
    gpu->accounted_count = count;
    gpu->accounting_begun = true;
}
