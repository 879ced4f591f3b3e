/* One NVIDIA GPU: samples at 5 Hz, everything else once per window. */
#include "sources/nvml.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fs.h"
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

/* GPM answers zeros and NaN for less (measured, H200). */
static const uint64_t GPM_MIN_US = 110000;

struct nvml_gpu {
    struct nvml_shared *shared;
    uint32_t index;
    struct nvml_device *device;
    char uuid[NVML_UUID_BYTES], name[NVML_NAME_BYTES];
    char runtime_status[96]; /* below sysfs; "" if unknown */
    uint64_t polls;
    bool described;

    uint64_t last_sample_us; /* the newest utilisation sample that was read */
    struct nvml_process_sample *samples;
    uint32_t sample_capacity;
    char *listed; /* entries as the library writes them */
    uint32_t listed_capacity;

    /* Pids that were identified while some list named them. */
    struct known {
        uint32_t pid;
        uint64_t round;
    } * known;
    size_t known_count, known_capacity;
    uint64_t round;
    size_t listed_count;                   /* processes that the last lists named */
    uint64_t list_hash[SAMPLE_LIST_KINDS]; /* of the pids in each, as last passed on */

    /* Pids that the accounting buffer held in the last window, where that mode is on. */
    bool accounting_begun;
    uint32_t *accounted;
    uint32_t accounted_count;

    struct nvml_gpm_sample *gpm[2];
    uint64_t gpm_us; /* when gpm[0] was taken; 0: not yet */
    struct nvml_gpm_metrics *gpm_metrics;

    /* Decided by the first clear answer, and never changed: the two must not be mixed. */
    enum { ENERGY_UNKNOWN, ENERGY_COUNTER, ENERGY_INTEGRAL } energy;
    uint64_t integral_uj, integral_us;
};

/* A read in progress. */
struct poll {
    struct nvml_gpu *gpu;
    struct batch *batch;
    struct error *err;
    uint64_t now_us;
    int result; /* -ENODEV ends it; another error is kept while the rest is read */
};

bool nvml_is_gone(struct nvml_shared *shared, int code)
{
    switch (code) {
    case NVML_UNINITIALIZED:
    case NVML_DRIVER_NOT_LOADED:
    case NVML_LIB_RM_VERSION_MISMATCH:
        atomic_store(&shared->driver_gone, true);
        return true;
    case NVML_GPU_IS_LOST:
    case NVML_RESET_REQUIRED:
    case NVML_GPU_NOT_FOUND:
        return true;
    default:
        return false;
    }
}

/* Did the call succeed? If not, and it matters, the poll remembers why. */
static bool succeeded(struct poll *poll, const char *what, int code)
{
    struct nvml_shared *shared = poll->gpu->shared;

    switch (code) {
    case NVML_SUCCESS:
        return true;
    case NVML_NOT_SUPPORTED:
    case NVML_NOT_FOUND:
    case NVML_NO_PERMISSION:
    case NVML_INVALID_ARGUMENT:
        return false; /* this board or this user does not have it: no series */
    default:
        break;
    }
    if (nvml_is_gone(shared, code))
        poll->result = error_set(poll->err, -ENODEV, "GPU %u: %s: %s", poll->gpu->index, what,
                                 nvml_library_error(&shared->library, code));
    else if (poll->result == 0)
        poll->result = error_set(poll->err, -EIO, "GPU %u: %s: %s", poll->gpu->index, what,
                                 nvml_library_error(&shared->library, code));
    return false;
}

static bool is_over(const struct poll *poll)
{
    return poll->result == -ENODEV || poll->result == -ENOMEM;
}

static void add(struct poll *poll, struct sample sample)
{
    sample.gpu = poll->gpu->index;
    sample.t_us = sample.t_us ? sample.t_us : poll->now_us;
    if (batch_add(poll->batch, &sample) < 0)
        poll->result = error_set(poll->err, -ENOMEM, "out of memory");
}

static void add_gauge(struct poll *poll, enum gpu_gauge gauge, uint64_t value)
{
    add(poll, (struct sample){.kind = SAMPLE_GAUGE, .gauge = {gauge, value}});
}

static void describe(struct poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct sample_device device = {
        .uuid = gpu->uuid, .name = gpu->name, .driver = gpu->shared->driver};
    uint32_t limit_mw;

    if (nvml->power_limit_mw &&
        succeeded(poll, "power limit", nvml->power_limit_mw(gpu->device, &limit_mw)))
        device.power_limit_mw = limit_mw;
    /* The strings live as long as the GPU is open; a batch may outlive it. */
    device.uuid = arena_copy(&poll->batch->arena, gpu->uuid, strlen(gpu->uuid));
    device.name = arena_copy(&poll->batch->arena, gpu->name, strlen(gpu->name));
    device.driver =
        arena_copy(&poll->batch->arena, gpu->shared->driver, strlen(gpu->shared->driver));
    if (!device.uuid || !device.name || !device.driver)
        poll->result = error_set(poll->err, -ENOMEM, "out of memory");
    else
        add(poll, (struct sample){.kind = SAMPLE_DEVICE, .device = device});
    gpu->described = !is_over(poll);
}

/* True if the pid was known; marks it as seen in this round. */
static bool is_known(struct nvml_gpu *gpu, uint32_t pid)
{
    for (size_t i = 0; i < gpu->known_count; i++)
        if (gpu->known[i].pid == pid) {
            gpu->known[i].round = gpu->round;
            return true;
        }
    return false;
}

/* Says who a pid is, once for as long as it is listed. */
static void identify(struct poll *poll, uint32_t pid)
{
    struct nvml_gpu *gpu = poll->gpu;
    struct sample_process process;

    if (is_known(gpu, pid))
        return;
    if (gpu->known_count == gpu->known_capacity) {
        size_t capacity = MAX(gpu->known_capacity * 2, (size_t)16);
        struct known *known = realloc(gpu->known, capacity * sizeof(*known));

        if (!known)
            return; /* asked again in the next round */
        gpu->known = known;
        gpu->known_capacity = capacity;
    }
    gpu->known[gpu->known_count++] = (struct known){pid, gpu->round};
    if (proc_identify(&gpu->shared->proc, pid, &poll->batch->arena, &process) == 0)
        add(poll, (struct sample){.kind = SAMPLE_PROCESS, .process = process});
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
static void read_samples(struct poll *poll)
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
    if (!succeeded(poll, "process utilisation", code))
        return;
    for (uint32_t i = 0; i < MIN(count, gpu->sample_capacity); i++) {
        const struct nvml_process_sample *from = &gpu->samples[i];

        if (from->timestamp_us <= gpu->last_sample_us || from->pid == 0)
            continue;
        newest_us = MAX(newest_us, from->timestamp_us);
        /* Who it is must be known before its sample counts: it may have exited by the next list. */
        identify(poll, from->pid);
        add(poll,
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

static void read_utilisation(struct poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_utilization utilization;
    struct nvml_temperature temperature = {.version = NVML_VERSION(struct nvml_temperature, 1),
                                           .sensor = NVML_TEMPERATURE_GPU};
    uint32_t value;

    if (nvml->utilization &&
        succeeded(poll, "utilisation", nvml->utilization(gpu->device, &utilization)) &&
        utilization.gpu <= 100 && utilization.memory <= 100)
        add(poll, (struct sample){.kind = SAMPLE_UTILISATION,
                                  .utilisation = {.gpu_percent = (uint8_t)utilization.gpu,
                                                  .memory_percent = (uint8_t)utilization.memory}});
    if (nvml->clock_mhz &&
        succeeded(poll, "clock", nvml->clock_mhz(gpu->device, NVML_CLOCK_SM, &value)))
        add_gauge(poll, GPU_GAUGE_SM_CLOCK_MHZ, value);
    if (nvml->temperature_v &&
        succeeded(poll, "temperature", nvml->temperature_v(gpu->device, &temperature)) &&
        temperature.temperature_c >= 0)
        add_gauge(poll, GPU_GAUGE_TEMPERATURE_C, (uint64_t)temperature.temperature_c);
    else if (nvml->temperature &&
             succeeded(poll, "temperature",
                       nvml->temperature(gpu->device, NVML_TEMPERATURE_GPU, &value)))
        add_gauge(poll, GPU_GAUGE_TEMPERATURE_C, value);
}

static void read_gpm(struct poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct sample sample = {.kind = SAMPLE_GPM};

    if (!gpu->gpm_metrics || poll->now_us - gpu->gpm_us < GPM_MIN_US ||
        !succeeded(poll, "GPM sample", nvml->gpm_sample(gpu->device, gpu->gpm[1])))
        return;
    if (gpu->gpm_us > 0) {
        struct nvml_gpm_metrics *metrics = gpu->gpm_metrics;

        metrics->version = NVML_GPM_VERSION;
        metrics->count = SAMPLE_GPM_COUNT;
        metrics->from = gpu->gpm[0];
        metrics->until = gpu->gpm[1];
        for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++)
            metrics->metrics[i] = (struct nvml_gpm_metric){.id = sample_gpm_ids[i]};
        if (succeeded(poll, "GPM metrics", nvml->gpm_metrics(metrics))) {
            for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++) {
                const struct nvml_gpm_metric *metric = &metrics->metrics[i];

                if (metric->result != NVML_SUCCESS || !(metric->value >= 0 && metric->value <= 100))
                    continue;
                sample.gpm.valid |= (uint16_t)(1 << i);
                sample.gpm.millipercent[i] = (uint32_t)lround(metric->value * 1000);
            }
            add(poll, sample);
        }
    }
    gpu->gpm_us = poll->now_us;
    struct nvml_gpm_sample *older = gpu->gpm[0];
    gpu->gpm[0] = gpu->gpm[1];
    gpu->gpm[1] = older;
}

/* The size of one entry as this library writes it. */
static size_t entry_bytes(const struct nvml_library *nvml, enum sample_list_kind kind)
{
    return nvml->list_versions[kind] == NVML_LIST_V1 ? sizeof(struct nvml_process_v1)
                                                     : nvml->list_entry_bytes;
}

/* The entries of a list, in gpu->listed. -1 if it could not be read. */
static int64_t fetch_list(struct poll *poll, enum sample_list_kind kind)
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
    return succeeded(poll, "process list", code) ? (int64_t)MIN(count, gpu->listed_capacity) : -1;
}

/* Passes a list on if it has changed, or `always`. True if it has. */
static bool read_list(struct poll *poll, enum sample_list_kind kind, bool always)
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
    add(poll, (struct sample){.kind = SAMPLE_LIST,
                              .list = {.kind = kind, .count = (size_t)count, .entries = entries}});
    return changed;
}

/*
 * At every poll, which costs little (0.05 ms for all three, H200): so a process of a fraction of a
 * second is seen and named while it lives. True if somebody came or went.
 */
static bool read_lists(struct poll *poll, bool always)
{
    bool changed = false;

    for (int kind = 0; kind < SAMPLE_LIST_KINDS && !is_over(poll); kind++)
        changed |= read_list(poll, (enum sample_list_kind)kind, always);
    forget_gone(poll->gpu);
    return changed;
}

/* A process that came and went between two lists and two samples. */
static void add_short_process(struct poll *poll, uint32_t pid,
                              const struct nvml_accounting_stats *stats)
{
    uint64_t end_us = MIN(stats->start_us + stats->time_ms * 1000, poll->now_us);
    /* As many samples as the driver would have made of it, but at least one. */
    uint64_t samples = MIN(MAX(stats->time_ms / 200, (uint64_t)1), (uint64_t)SHORT_SAMPLES_MAX);

    add(poll, (struct sample){
                  .kind = SAMPLE_PROCESS,
                  .process = {.pid = pid, .start_us = stats->start_us, .name = "", .cgroup = ""}});
    for (uint64_t i = 0; i < samples; i++)
        add(poll,
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
static void read_accounting(struct poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    uint32_t count = ACCOUNTED_MAX;
    uint32_t *pids;
    int mode = 0;

    if (!nvml->accounting_mode || !nvml->accounting_pids || !nvml->accounting_stats ||
        !succeeded(poll, "accounting mode", nvml->accounting_mode(gpu->device, &mode)) || !mode)
        return;
    pids = malloc(ACCOUNTED_MAX * sizeof(*pids));
    if (!pids ||
        !succeeded(poll, "accounting pids", nvml->accounting_pids(gpu->device, &count, pids))) {
        free(pids);
        return;
    }
    count = MIN(count, (uint32_t)ACCOUNTED_MAX);
    for (uint32_t i = 0; i < count && gpu->accounting_begun && !is_over(poll); i++) {
        struct nvml_accounting_stats stats = {0};
        bool was_there = false;

        for (uint32_t k = 0; k < gpu->accounted_count && !was_there; k++)
            was_there = gpu->accounted[k] == pids[i];
        if (was_there || is_known(gpu, pids[i]) ||
            !succeeded(poll, "accounting", nvml->accounting_stats(gpu->device, pids[i], &stats)) ||
            stats.is_running || stats.gpu_utilization == 0 || stats.gpu_utilization > 100)
            continue;
        add_short_process(poll, pids[i], &stats);
    }
    free(gpu->accounted);
    gpu->accounted = pids;
    gpu->accounted_count = count;
    gpu->accounting_begun = true;
}

static void read_memory(struct poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_memory_v2 memory = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_memory_v1 old;

    if (nvml->memory_v2 && succeeded(poll, "memory", nvml->memory_v2(gpu->device, &memory))) {
        add_gauge(poll, GPU_GAUGE_MEMORY_TOTAL_BYTES, memory.total);
        add_gauge(poll, GPU_GAUGE_MEMORY_RESERVED_BYTES, memory.reserved);
        add_gauge(poll, GPU_GAUGE_MEMORY_USED_BYTES, memory.used);
        add_gauge(poll, GPU_GAUGE_MEMORY_FREE_BYTES, memory.free);
    } else if (nvml->memory_v1 && succeeded(poll, "memory", nvml->memory_v1(gpu->device, &old))) {
        /* Its `used` includes what the driver reserves, which nobody used: it is not shown. */
        add_gauge(poll, GPU_GAUGE_MEMORY_TOTAL_BYTES, old.total);
        add_gauge(poll, GPU_GAUGE_MEMORY_FREE_BYTES, old.free);
    }
}

static uint64_t field_number(const struct nvml_field_value *field)
{
    switch (field->value_type) {
    case NVML_VALUE_U32:
        return field->value.u32;
    case NVML_VALUE_U64:
    case NVML_VALUE_ULONG:
        return field->value.u64;
    case NVML_VALUE_I64:
        return field->value.i64 < 0 ? 0 : (uint64_t)field->value.i64;
    case NVML_VALUE_INT:
        return field->value.i < 0 ? 0 : (uint64_t)field->value.i;
    case NVML_VALUE_U16:
        return field->value.u16;
    default:
        return field->value.d > 0 && field->value.d < 1e18 ? (uint64_t)field->value.d : 0;
    }
}

static void read_fields(struct poll *poll)
{
    static const struct {
        uint32_t id, scope;
        enum gpu_gauge gauge;
    } wanted[] = {
        {NVML_FIELD_MEMORY_TEMPERATURE, 0, GPU_GAUGE_MEMORY_TEMPERATURE_C},
        {NVML_FIELD_PCIE_REPLAY, 0, GPU_GAUGE_PCIE_REPLAYS},
        {NVML_FIELD_PCIE_TX_BYTES, 0, GPU_GAUGE_PCIE_TX_BYTES},
        {NVML_FIELD_PCIE_RX_BYTES, 0, GPU_GAUGE_PCIE_RX_BYTES},
        {NVML_FIELD_NVLINK_TX_KIB, NVML_FIELD_ALL_LINKS, GPU_GAUGE_NVLINK_TX_KIB},
        {NVML_FIELD_NVLINK_RX_KIB, NVML_FIELD_ALL_LINKS, GPU_GAUGE_NVLINK_RX_KIB},
    };
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_field_value fields[ARRAY_SIZE(wanted)] = {0};

    if (!nvml->fields)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        fields[i] =
            (struct nvml_field_value){.field_id = wanted[i].id, .scope_id = wanted[i].scope};
    if (!succeeded(poll, "fields", nvml->fields(gpu->device, ARRAY_SIZE(wanted), fields)))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        if (fields[i].result == NVML_SUCCESS)
            add_gauge(poll, wanted[i].gauge, field_number(&fields[i]));
}

static void read_gauges(struct poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    unsigned long long big;
    uint32_t value;
    int state;

    if (nvml->power_limit_mw &&
        succeeded(poll, "power limit", nvml->power_limit_mw(gpu->device, &value)))
        add_gauge(poll, GPU_GAUGE_POWER_LIMIT_MW, value);
    if (nvml->clock_mhz &&
        succeeded(poll, "clock", nvml->clock_mhz(gpu->device, NVML_CLOCK_MEMORY, &value)))
        add_gauge(poll, GPU_GAUGE_MEMORY_CLOCK_MHZ, value);
    if (nvml->throttle_reasons &&
        succeeded(poll, "throttle reasons", nvml->throttle_reasons(gpu->device, &big)))
        add_gauge(poll, GPU_GAUGE_THROTTLE_MASK, big);
    if (nvml->performance_state &&
        succeeded(poll, "performance state", nvml->performance_state(gpu->device, &state)) &&
        state >= 0 && state <= 15)
        add_gauge(poll, GPU_GAUGE_PERFORMANCE_STATE, (uint64_t)state);
    for (int type = NVML_ECC_CORRECTED; type <= NVML_ECC_UNCORRECTED; type++)
        if (nvml->ecc_errors &&
            succeeded(poll, "ECC errors",
                      nvml->ecc_errors(gpu->device, type, NVML_ECC_AGGREGATE, &big)))
            add_gauge(poll,
                      type == NVML_ECC_CORRECTED ? GPU_GAUGE_ECC_CORRECTED
                                                 : GPU_GAUGE_ECC_UNCORRECTED,
                      big);
    if (nvml->pcie_generation &&
        succeeded(poll, "PCIe generation", nvml->pcie_generation(gpu->device, &value)))
        add_gauge(poll, GPU_GAUGE_PCIE_GENERATION, value);
    if (nvml->pcie_width && succeeded(poll, "PCIe width", nvml->pcie_width(gpu->device, &value)))
        add_gauge(poll, GPU_GAUGE_PCIE_WIDTH, value);
    read_memory(poll);
    read_fields(poll);
}

/* A board without a counter: its power, held since the last reading. */
static void integrate(struct poll *poll, uint32_t power_mw)
{
    struct nvml_gpu *gpu = poll->gpu;

    if (gpu->integral_us > 0 && poll->now_us > gpu->integral_us)
        gpu->integral_uj +=
            (uint64_t)((unsigned __int128)power_mw * (poll->now_us - gpu->integral_us) / 1000);
    gpu->integral_us = poll->now_us;
    add(poll, (struct sample){.kind = SAMPLE_INTEGRAL, .counter_uj = gpu->integral_uj});
}

/* Last in a window, as it closes the one before it. */
static void read_energy(struct poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    const struct clock *clock = gpu->shared->context->clock;
    unsigned long long energy_mj = 0;
    uint32_t power_mw;
    bool has_power =
        nvml->power_mw && succeeded(poll, "power", nvml->power_mw(gpu->device, &power_mw));
    uint64_t t_us = clock->realtime_us(clock);
    int code = NVML_NOT_SUPPORTED;

    if (has_power)
        add(poll, (struct sample){.kind = SAMPLE_POWER, .power_mw = power_mw});
    if (gpu->energy != ENERGY_INTEGRAL && nvml->energy_mj)
        code = nvml->energy_mj(gpu->device, &energy_mj);
    if (succeeded(poll, "energy", code)) {
        gpu->energy = ENERGY_COUNTER;
        add(poll,
            (struct sample){.kind = SAMPLE_ENERGY, .t_us = t_us, .counter_uj = energy_mj * 1000});
    } else if (gpu->energy == ENERGY_UNKNOWN && code == NVML_NOT_SUPPORTED) {
        gpu->energy = ENERGY_INTEGRAL;
    }
    if (gpu->energy == ENERGY_INTEGRAL && has_power)
        integrate(poll, power_mw);
}

/* A device that the kernel has suspended would be woken by a question. */
static bool is_suspended(const struct nvml_gpu *gpu)
{
    char text[32];
    size_t len;

    return gpu->runtime_status[0] != '\0' &&
           fs_read_at(gpu->shared->context->host->sysfs_fd, gpu->runtime_status, text, sizeof(text),
                      &len) == 0 &&
           strncmp(text, "suspended", strlen("suspended")) == 0;
}

static int gpu_read(void *state, struct batch *batch, struct error *err)
{
    struct nvml_gpu *gpu = state;
    const struct clock *clock = gpu->shared->context->clock;
    struct poll poll = {
        .gpu = gpu, .batch = batch, .err = err, .now_us = clock->realtime_us(clock)};
    bool window_ends = gpu->polls++ % gpu->shared->polls_per_window == 0;
    bool changed = false, shared;

    if (atomic_load(&gpu->shared->driver_gone))
        poll.result = error_set(err, -ENODEV, "GPU %u: the driver is gone", gpu->index);
    else if (!is_suspended(gpu)) {
        if (!gpu->described)
            describe(&poll);
        if (!is_over(&poll))
            changed = read_lists(&poll, window_ends);
        /*
         * Every single sample matters only among processes that share. The call costs 2.8 ms of CPU
         * time, GPM 2 ms and the energy counter 4.3 ms (H200, driver 580), so who is alone is asked
         * for once per window, as a mean, and when somebody comes or goes.
         */
        shared = gpu->listed_count > 1;
        if ((window_ends || shared || changed) && !is_over(&poll))
            read_samples(&poll);
        if (!is_over(&poll))
            read_utilisation(&poll);
        if ((shared || (window_ends && gpu->listed_count > 0)) && !is_over(&poll))
            read_gpm(&poll);
        if (window_ends && !is_over(&poll))
            read_accounting(&poll);
        if (window_ends && !is_over(&poll))
            read_gauges(&poll);
        if (window_ends && !is_over(&poll))
            read_energy(&poll);
    }
    if (poll.result == -ENODEV)
        (void)batch_add(
            batch, &(struct sample){.kind = SAMPLE_LOST, .gpu = gpu->index, .t_us = poll.now_us});
    return poll.result;
}

static void gpu_close(void *state)
{
    struct nvml_gpu *gpu = state;
    const struct nvml_library *nvml;

    if (!gpu)
        return;
    nvml = &gpu->shared->library;
    for (size_t i = 0; i < ARRAY_SIZE(gpu->gpm); i++)
        if (gpu->gpm[i] && !atomic_load(&gpu->shared->driver_gone))
            nvml->gpm_free(gpu->gpm[i]);
    free(gpu->samples);
    free(gpu->listed);
    free(gpu->known);
    free(gpu->accounted);
    free(gpu->gpm_metrics);
    atomic_store(&gpu->shared->running[gpu->index], false);
    nvml_shared_unref(gpu->shared);
    free(gpu);
}

/* GPM needs Hopper or newer and two samples; without it there is nothing to clean up. */
static void open_gpm(struct nvml_gpu *gpu)
{
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};

    if (!nvml->gpm_support || !nvml->gpm_alloc || !nvml->gpm_free || !nvml->gpm_sample ||
        !nvml->gpm_metrics || nvml->gpm_support(gpu->device, &support) != NVML_SUCCESS ||
        !support.is_supported || nvml->gpm_alloc(&gpu->gpm[0]) != NVML_SUCCESS)
        return;
    if (nvml->gpm_alloc(&gpu->gpm[1]) == NVML_SUCCESS)
        gpu->gpm_metrics = calloc(1, sizeof(*gpu->gpm_metrics));
}

/* /sys/bus/pci/devices/0000:17:00.0/power/runtime_status; NVML writes the domain with eight digits
 * and in capitals. */
static void find_runtime_status(struct nvml_gpu *gpu)
{
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_pci_info info = {0};

    if (!nvml->pci_info || nvml->pci_info(gpu->device, &info) != NVML_SUCCESS)
        return;
    snprintf(gpu->runtime_status, sizeof(gpu->runtime_status),
             "bus/pci/devices/%04x:%02x:%02x.0/power/runtime_status", info.domain, info.bus,
             info.device);
}

int nvml_gpu_open(struct nvml_shared *shared, uint32_t index, void **ret_state, struct error *err)
{
    const struct nvml_library *nvml = &shared->library;
    struct nvml_gpu *gpu = calloc(1, sizeof(*gpu));
    int code;

    if (!gpu)
        return error_set(err, -ENOMEM, "out of memory");
    gpu->shared = shared;
    gpu->index = index;
    code = nvml->device_by_index(index, &gpu->device);
    if (code == NVML_SUCCESS)
        code = nvml->uuid(gpu->device, gpu->uuid, sizeof(gpu->uuid));
    if (code == NVML_SUCCESS && gpu->uuid[0] == '\0')
        code = NVML_NOT_FOUND;
    if (code != NVML_SUCCESS) {
        (void)nvml_is_gone(shared, code);
        free(gpu);
        return error_set(err, -ENODEV, "GPU %u: %s", index, nvml_library_error(nvml, code));
    }
    if (nvml->name)
        (void)nvml->name(gpu->device, gpu->name, sizeof(gpu->name));
    gpu->uuid[sizeof(gpu->uuid) - 1] = gpu->name[sizeof(gpu->name) - 1] = '\0';
    find_runtime_status(gpu);
    open_gpm(gpu);
    atomic_fetch_add(&shared->references, 1);
    atomic_store(&shared->running[index], true);
    *ret_state = gpu;
    return 0;
}

const struct source_ops nvml_gpu_unit = {
    .name = "nvml",
    .holds_device = true,
    .read = gpu_read,
    .close = gpu_close,
};
