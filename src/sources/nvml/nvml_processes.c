/* Who is on the GPU: lists, utilisation samples, and accounting where it is on. */
#include "sources/nvml/nvml_poll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/map.h"

enum {
    LISTED_START = 64,
    LISTED_MAX = 65536,
    SAMPLES_START = 128,
    SAMPLES_MAX = 4096,
    LIST_TRIES = 4,       /* a list can grow between two calls */
    ACCOUNTED_MAX = 4096, /* the driver's buffer holds 4000 */
    SHORT_SAMPLES_MAX = 5,
};

/*
 * A process that is known is looked at again: processes move (a container's first one begins in
 * the runtime's cgroup, Slurm moves its tasks), and a pid can be another's between two lists.
 */
static const uint64_t RECHECK_US[] = {USEC_PER_SEC, 3 * USEC_PER_SEC, 10 * USEC_PER_SEC};

static struct known *find_known(const struct nvml_gpu *gpu, uint32_t pid)
{
    for (size_t i = 0; i < gpu->known_count; i++)
        if (gpu->known[i].pid == pid)
            return &gpu->known[i];
    return NULL;
}

static struct known *add_known(struct nvml_gpu *gpu, uint32_t pid)
{
    if (gpu->known_count == gpu->known_capacity) {
        size_t capacity = MAX(gpu->known_capacity * 2, (size_t)16);
        struct known *known = realloc(gpu->known, capacity * sizeof(*known));

        if (!known)
            return NULL; /* asked again in the next round */
        gpu->known = known;
        gpu->known_capacity = capacity;
    }
    gpu->known[gpu->known_count] = (struct known){.pid = pid};
    return &gpu->known[gpu->known_count++];
}

static bool is_due(const struct known *known, uint64_t now_us)
{
    uint64_t longest_us = RECHECK_US[ARRAY_SIZE(RECHECK_US) - 1];

    /* The second: the wall clock was set back. */
    return now_us >= known->check_us || known->check_us - now_us > longest_us;
}

static int recall(struct nvml_poll *poll, uint32_t pid, struct sample_process *ret_process)
{
    const struct source_context *context = poll->gpu->shared->context;

    if (!context->recall)
        return -ESRCH;
    return context->recall(context->recall_context, pid, &poll->batch->arena, ret_process);
}

/* From /proc, or from memory if it has ended already. */
static int find_process(struct nvml_poll *poll, uint32_t pid, struct sample_process *ret_process)
{
    const struct nvml_shared *shared = poll->gpu->shared;
    int r = proc_identify(&shared->proc, pid, &poll->batch->arena, ret_process);

    return r == -ESRCH ? recall(poll, pid, ret_process) : r;
}

/* Says who a pid is, once for as long as it is listed and stays the same. */
static void identify(struct nvml_poll *poll, uint32_t pid)
{
    struct nvml_gpu *gpu = poll->gpu;
    struct known *known = find_known(gpu, pid);
    struct sample_process process;
    uint64_t identity;

    if (!known)
        known = add_known(gpu, pid);
    if (!known)
        return;
    known->round = gpu->round;
    if (!is_due(known, poll->now_us))
        return;
    known->check_us =
        poll->now_us + RECHECK_US[MIN(known->checks, (uint32_t)ARRAY_SIZE(RECHECK_US) - 1)];
    known->checks++;
    if (find_process(poll, pid, &process) < 0)
        return;
    identity = map_hash_u64(map_hash_bytes(span_of(process.cgroup)) + process.start_us) | 1;
    if (identity == known->identity)
        return;
    known->identity = identity;
    nvml_poll_add(poll, (struct sample){.kind = SAMPLE_PROCESS, .process = process});
}

/* Forgets those whom no list has named in this round: their pids may be others' soon. */
static void forget_gone(struct nvml_gpu *gpu)
{
    size_t kept = 0;

    for (size_t i = 0; i < gpu->known_count; i++)
        if (gpu->known[i].round == gpu->round)
            gpu->known[kept++] = gpu->known[i];
    gpu->known_count = gpu->listed_count = kept;
    gpu->round++;
}

/* Each sample once, by its own time. Between samples the driver answers "not found". */
void nvml_poll_read_samples(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    uint64_t newest_us = gpu->last_sample_us;
    uint32_t count = 0;
    int code = NVML_INSUFFICIENT_SIZE;

    if (!nvml->process_samples)
        return;
    for (int i = 0; i < LIST_TRIES && code == NVML_INSUFFICIENT_SIZE; i++) {
        uint32_t wanted = MIN(MAX(count + 16, (uint32_t)SAMPLES_START), (uint32_t)SAMPLES_MAX);

        if (wanted > gpu->sample_capacity) {
            void *samples = realloc(gpu->samples, wanted * sizeof(*gpu->samples));

            if (!samples) {
                poll->result = error_set(poll->err, -ENOMEM, "out of memory");
                return;
            }
            gpu->samples = samples;
            gpu->sample_capacity = wanted;
        }
        count = gpu->sample_capacity;
        code = nvml->process_samples(gpu->device, gpu->samples, &count, gpu->last_sample_us);
    }
    if (!nvml_poll_succeeded(poll, "process utilisation", code))
        return;
    for (uint32_t i = 0; i < MIN(count, gpu->sample_capacity); i++) {
        const struct nvml_process_sample *from = &gpu->samples[i];

        if (from->timestamp_us <= gpu->last_sample_us || from->pid == 0)
            continue;
        newest_us = MAX(newest_us, from->timestamp_us);
        /* Who it is must be known before its sample counts: it may have exited by the next list. */
        identify(poll, from->pid);
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

/* The size of one entry as this library writes it. */
static size_t entry_bytes(const struct nvml_library *nvml, enum sample_list_kind kind)
{
    return nvml->list_versions[kind] == NVML_LIST_V1 ? sizeof(struct nvml_process_v1)
                                                     : nvml->list_entry_bytes;
}

/* The entries of a list, in gpu->listed. -1 if it could not be read. */
static int64_t fetch_list(struct nvml_poll *poll, enum sample_list_kind kind)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    uint32_t count = 0;
    int code = NVML_INSUFFICIENT_SIZE;

    if (!nvml->lists[kind])
        return -1;
    for (int i = 0; i < LIST_TRIES && code == NVML_INSUFFICIENT_SIZE; i++) {
        uint32_t wanted = MIN(MAX(count + 16, (uint32_t)LISTED_START), (uint32_t)LISTED_MAX);

        if (wanted > gpu->listed_capacity) {
            /* Room for the largest entries there are, whatever this list writes. */
            char *listed = realloc(gpu->listed, wanted * (sizeof(struct nvml_process) + 8));

            if (!listed) {
                poll->result = error_set(poll->err, -ENOMEM, "out of memory");
                return -1;
            }
            gpu->listed = listed;
            gpu->listed_capacity = wanted;
        }
        count = gpu->listed_capacity;
        code = nvml->lists[kind](gpu->device, &count, gpu->listed);
    }
    return nvml_poll_succeeded(poll, "process list", code)
               ? (int64_t)MIN(count, gpu->listed_capacity)
               : -1;
}

/* Passes a list on if it has changed, or `always`. True if it has. */
static bool read_list(struct nvml_poll *poll, enum sample_list_kind kind, bool always)
{
    struct nvml_gpu *gpu = poll->gpu;
    size_t bytes = entry_bytes(&gpu->shared->library, kind);
    int64_t count = fetch_list(poll, kind);
    struct sample_listed *entries;
    uint64_t hash = map_hash_u64((uint64_t)kind);
    bool changed;

    if (count < 0)
        return false;
    entries = arena_array(&poll->batch->arena, (size_t)count, sizeof(*entries));
    if (!entries) {
        poll->result = error_set(poll->err, -ENOMEM, "out of memory");
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        /* pid and memory are where they always were; later versions only append. */
        struct nvml_process_v1 entry;

        memcpy(&entry, gpu->listed + (size_t)i * bytes, sizeof(entry));
        entries[i] = (struct sample_listed){entry.pid, entry.used_memory};
        hash = map_hash_u64(hash ^ entry.pid);
        if (entry.pid > 0)
            identify(poll, entry.pid);
    }
    changed = hash != gpu->list_hash[kind];
    gpu->list_hash[kind] = hash;
    if (!changed && !always)
        return false;
    nvml_poll_add(
        poll, (struct sample){.kind = SAMPLE_LIST,
                              .list = {.kind = kind, .count = (size_t)count, .entries = entries}});
    return changed;
}

/*
 * At every poll, which costs little (0.05 ms for all three, H200): so a process of a fraction of a
 * second is seen and named while it lives. True if somebody came or went.
 */
bool nvml_poll_read_lists(struct nvml_poll *poll, bool always)
{
    bool changed = false;

    for (int kind = 0; kind < SAMPLE_LIST_KINDS && !nvml_poll_is_over(poll); kind++)
        changed |= read_list(poll, (enum sample_list_kind)kind, always);
    forget_gone(poll->gpu);
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

    /* Not from /proc: if the pid is there, it is another's by now. */
    if (recall(poll, pid, &process) < 0 || process.start_us > stats->start_us + USEC_PER_SEC)
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
 * Accounting mode is not needed; where an administrator has switched it on, it tells of processes
 * that are shorter than a window. Those that are new in its buffer and have ended already were in
 * no list.
 */
void nvml_poll_read_accounting(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    uint32_t count = ACCOUNTED_MAX;
    uint32_t *pids;
    int mode = 0;

    if (!nvml->accounting_mode || !nvml->accounting_pids || !nvml->accounting_stats ||
        !nvml_poll_succeeded(poll, "accounting mode", nvml->accounting_mode(gpu->device, &mode)) ||
        !mode)
        return;
    pids = malloc(ACCOUNTED_MAX * sizeof(*pids));
    if (!pids || !nvml_poll_succeeded(poll, "accounting pids",
                                      nvml->accounting_pids(gpu->device, &count, pids))) {
        free(pids);
        return;
    }
    count = MIN(count, (uint32_t)ACCOUNTED_MAX);
    for (uint32_t i = 0; i < count && gpu->accounting_begun && !nvml_poll_is_over(poll); i++) {
        struct nvml_accounting_stats stats = {0};
        bool was_there = false;

        for (uint32_t k = 0; k < gpu->accounted_count && !was_there; k++)
            was_there = gpu->accounted[k] == pids[i];
        if (was_there || find_known(gpu, pids[i]) ||
            !nvml_poll_succeeded(poll, "accounting",
                                 nvml->accounting_stats(gpu->device, pids[i], &stats)) ||
            stats.is_running || stats.gpu_utilization == 0 || stats.gpu_utilization > 100)
            continue;
        add_short_process(poll, pids[i], &stats);
    }
    free(gpu->accounted);
    gpu->accounted = pids;
    gpu->accounted_count = count;
    gpu->accounting_begun = true;
}
