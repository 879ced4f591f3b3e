/* One NVIDIA GPU: opened, read in the right order, closed. */
#include "sources/nvml/nvml_poll.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/fs.h"
#include "core/macros.h"

/* How often a GPU that cannot be opened is tried again. */
static const uint64_t REOPEN_US = 10 * USEC_PER_SEC;

enum { EVENTS_PER_READ = 64 };

/* GPM answers zeros and NaN for less (measured, H200). */
static const uint64_t GPM_MIN_US = 110000;

/*
 * The energy counter ticks every 100 ms, and its clock drifts against ours: every five minutes the
 * reads are put right behind a tick again.
 */
static const uint64_t ALIGN_US = 300 * USEC_PER_SEC;
static const uint64_t TICK_WAIT_US = 150000;
static const struct timespec TICK_POLL = {.tv_nsec = 5000000};

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
bool nvml_poll_succeeded(struct nvml_poll *poll, const char *what, int code)
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

bool nvml_poll_is_over(const struct nvml_poll *poll)
{
    return poll->result == -ENODEV || poll->result == -ENOMEM;
}

void nvml_poll_add(struct nvml_poll *poll, struct sample sample)
{
    sample.gpu = poll->gpu->index;
    sample.t_us = sample.t_us ? sample.t_us : poll->now_us;
    if (batch_add(poll->batch, &sample) < 0)
        poll->result = error_set(poll->err, -ENOMEM, "out of memory");
}

void nvml_poll_add_gauge(struct nvml_poll *poll, enum gpu_gauge gauge, uint64_t value)
{
    nvml_poll_add(poll, (struct sample){.kind = SAMPLE_GAUGE, .gauge = {gauge, value}});
}

static void describe(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct sample_device device = {0};
    uint32_t limit_mw;

    if (nvml->power_limit_mw &&
        nvml_poll_succeeded(poll, "power limit", nvml->power_limit_mw(gpu->device, &limit_mw)))
        device.power_limit_mw = limit_mw;
    device.has_minor =
        nvml->minor && nvml->minor(gpu->device, &device.minor) == NVML_SUCCESS; /* not in WSL */
    /* The strings live as long as the GPU is open; a batch may outlive it. */
    device.uuid = arena_copy(&poll->batch->arena, gpu->uuid, strlen(gpu->uuid));
    device.name = arena_copy(&poll->batch->arena, gpu->name, strlen(gpu->name));
    device.driver =
        arena_copy(&poll->batch->arena, gpu->shared->driver, strlen(gpu->shared->driver));
    if (!device.uuid || !device.name || !device.driver)
        poll->result = error_set(poll->err, -ENOMEM, "out of memory");
    else
        nvml_poll_add(poll, (struct sample){.kind = SAMPLE_DEVICE, .device = device});
    gpu->described = !nvml_poll_is_over(poll);
}

static uint32_t read_clock_mhz(struct nvml_poll *poll)
{
    const struct nvml_library *nvml = &poll->gpu->shared->library;
    uint32_t clock_mhz;

    if (!nvml->clock_mhz ||
        !nvml_poll_succeeded(poll, "clock",
                             nvml->clock_mhz(poll->gpu->device, NVML_CLOCK_SM, &clock_mhz)))
        return 0;
    return clock_mhz;
}

static uint32_t read_temperature_c(struct nvml_poll *poll)
{
    const struct nvml_library *nvml = &poll->gpu->shared->library;
    struct nvml_temperature temperature = {.version = NVML_VERSION(struct nvml_temperature, 1),
                                           .sensor = NVML_TEMPERATURE_GPU};
    uint32_t value;

    if (nvml->temperature_v &&
        nvml_poll_succeeded(poll, "temperature",
                            nvml->temperature_v(poll->gpu->device, &temperature)) &&
        temperature.temperature_c >= 0)
        return (uint32_t)temperature.temperature_c;
    if (nvml->temperature &&
        nvml_poll_succeeded(poll, "temperature",
                            nvml->temperature(poll->gpu->device, NVML_TEMPERATURE_GPU, &value)))
        return value;
    return 0;
}

/* With MIG there is a clock and a temperature, but no utilisation. */
static void read_utilisation(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    uint32_t clock_mhz = read_clock_mhz(poll), temperature_c = read_temperature_c(poll);
    struct nvml_utilization utilization;

    if (nvml->utilization &&
        nvml_poll_succeeded(poll, "utilisation", nvml->utilization(gpu->device, &utilization)) &&
        utilization.gpu <= 100 && utilization.memory <= 100) {
        nvml_poll_add(poll,
                      (struct sample){.kind = SAMPLE_UTILISATION,
                                      .utilisation = {.gpu_percent = (uint8_t)utilization.gpu,
                                                      .memory_percent = (uint8_t)utilization.memory,
                                                      .sm_clock_mhz = clock_mhz,
                                                      .temperature_c = temperature_c}});
        return;
    }
    if (clock_mhz > 0)
        nvml_poll_add_gauge(poll, GPU_GAUGE_SM_CLOCK_MHZ, clock_mhz);
    if (temperature_c > 0)
        nvml_poll_add_gauge(poll, GPU_GAUGE_TEMPERATURE_C, temperature_c);
}

static void read_gpm(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_gpm_sample *older = gpu->gpm[0];
    struct sample sample = {.kind = SAMPLE_GPM};

    if (!gpu->gpm_metrics || poll->now_us - gpu->gpm_us < GPM_MIN_US ||
        !nvml_poll_succeeded(poll, "GPM sample", nvml->gpm_sample(gpu->device, gpu->gpm[1])))
        return;
    if (gpu->gpm_us > 0) {
        struct nvml_gpm_metrics *metrics = gpu->gpm_metrics;

        metrics->version = NVML_GPM_VERSION;
        metrics->count = SAMPLE_GPM_COUNT;
        metrics->from = gpu->gpm[0];
        metrics->until = gpu->gpm[1];
        for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++)
            metrics->metrics[i] = (struct nvml_gpm_metric){.id = sample_gpm_ids[i]};
        if (nvml_poll_succeeded(poll, "GPM metrics", nvml->gpm_metrics(metrics))) {
            for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++) {
                const struct nvml_gpm_metric *metric = &metrics->metrics[i];

                if (metric->result != NVML_SUCCESS || !(metric->value >= 0 && metric->value <= 100))
                    continue;
                sample.gpm.valid |= (uint16_t)(1 << i);
                sample.gpm.millipercent[i] = (uint32_t)lround(metric->value * 1000);
            }
            nvml_poll_add(poll, sample);
        }
    }
    gpu->gpm_us = poll->now_us;
    gpu->gpm[0] = gpu->gpm[1];
    gpu->gpm[1] = older;
}

/* A board without a counter: its power, held since the last reading. */
static void integrate(struct nvml_poll *poll, uint32_t power_mw)
{
    struct nvml_gpu *gpu = poll->gpu;

    if (gpu->integral_us > 0 && poll->now_us > gpu->integral_us)
        gpu->integral_uj +=
            (uint64_t)((unsigned __int128)power_mw * (poll->now_us - gpu->integral_us) / 1000);
    gpu->integral_us = poll->now_us;
    nvml_poll_add(poll, (struct sample){.kind = SAMPLE_INTEGRAL, .counter_uj = gpu->integral_uj});
}

/* Asks until the counter moves. False if it does not, or if the clock stands still. */
static bool wait_for_tick(const struct nvml_gpu *gpu, unsigned long long *energy_mj)
{
    const struct nvml_library *nvml = &gpu->shared->library;
    const struct clock *clock = gpu->shared->context->clock;
    uint64_t began_us = clock->monotonic_us(clock), now_us = began_us;
    unsigned long long value_mj = *energy_mj;

    do {
        uint64_t before_us = now_us;

        nanosleep(&TICK_POLL, NULL);
        now_us = clock->monotonic_us(clock);
        if (now_us == before_us || nvml->energy_mj(gpu->device, &value_mj) != NVML_SUCCESS)
            return false;
    } while (value_mj == *energy_mj && now_us - began_us < TICK_WAIT_US);
    if (value_mj == *energy_mj)
        return false;
    *energy_mj = value_mj;
    return true;
}

/* Last in a window, as it closes the one before it. */
static void read_energy(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    const struct clock *clock = gpu->shared->context->clock;
    unsigned long long energy_mj = 0;
    uint32_t power_mw;
    bool has_power = nvml->power_mw &&
                     nvml_poll_succeeded(poll, "power", nvml->power_mw(gpu->device, &power_mw));
    uint64_t t_us = clock->realtime_us(clock);
    int code = NVML_NOT_SUPPORTED;

    if (has_power)
        nvml_poll_add(poll, (struct sample){.kind = SAMPLE_POWER, .power_mw = power_mw});
    if (gpu->energy != ENERGY_INTEGRAL && nvml->energy_mj)
        code = nvml->energy_mj(gpu->device, &energy_mj);
    if (nvml->energy_mj && nvml_poll_succeeded(poll, "energy", code)) {
        if (poll->now_us >= gpu->align_us) {
            gpu->align_us = poll->now_us + ALIGN_US;
            poll->aligned = wait_for_tick(gpu, &energy_mj);
            t_us = clock->realtime_us(clock);
        }
        gpu->energy = ENERGY_COUNTER;
        nvml_poll_add(
            poll,
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

/* Registers for XID errors; a GPU that cannot tell of them is no worse for it. */
static void open_events(struct nvml_gpu *gpu)
{
    const struct nvml_library *nvml = &gpu->shared->library;

    if (!nvml->event_set_create || !nvml->event_set_free || !nvml->register_events ||
        !nvml->event_wait || nvml->event_set_create(&gpu->events) != NVML_SUCCESS)
        gpu->events = NULL;
    else
        (void)nvml->register_events(gpu->device, NVML_EVENT_XID, gpu->events);
}

static void read_events(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    struct nvml_event_data event;

    for (int i = 0; gpu->events && i < EVENTS_PER_READ; i++) {
        if (gpu->shared->library.event_wait(gpu->events, &event, 0) != NVML_SUCCESS)
            return;
        if (event.type == NVML_EVENT_XID)
            nvml_poll_add(poll, (struct sample){.kind = SAMPLE_XID, .xid = (uint32_t)event.data});
    }
}

/* Opens the GPU, now and then. Until then it is down: not permitted, lost, or in a reset. */
static int open_device(struct nvml_gpu *gpu, struct error *err)
{
    const struct nvml_library *nvml = &gpu->shared->library;
    const struct clock *clock = gpu->shared->context->clock;
    struct nvml_device *device = NULL;
    int code;

    if (clock->monotonic_us(clock) < gpu->open_us)
        return error_set(err, -EAGAIN, "GPU %u: cannot be opened", gpu->index);
    gpu->open_us = clock->monotonic_us(clock) + REOPEN_US;
    code = nvml->device_by_index(gpu->index, &device);
    if (code == NVML_SUCCESS)
        code = nvml->uuid(device, gpu->uuid, sizeof(gpu->uuid));
    gpu->uuid[sizeof(gpu->uuid) - 1] = '\0';
    if (code == NVML_SUCCESS && gpu->uuid[0] == '\0')
        code = NVML_NOT_FOUND;
    if (code != NVML_SUCCESS) {
        (void)nvml_is_gone(gpu->shared, code);
        return error_set(err, -EAGAIN, "GPU %u: %s", gpu->index, nvml_library_error(nvml, code));
    }
    gpu->device = device;
    if (nvml->name)
        (void)nvml->name(device, gpu->name, sizeof(gpu->name));
    gpu->name[sizeof(gpu->name) - 1] = '\0';
    find_runtime_status(gpu);
    open_gpm(gpu);
    open_events(gpu);
    return 0;
}

static int gpu_read(void *state, struct batch *batch, struct error *err)
{
    struct nvml_gpu *gpu = state;
    const struct clock *clock = gpu->shared->context->clock;
    struct nvml_poll poll = {
        .gpu = gpu, .batch = batch, .err = err, .now_us = clock->realtime_us(clock)};
    bool window_ends = gpu->polls++ % gpu->shared->polls_per_window == 0;
    bool changed = false, shared;
    int opened;

    if (atomic_load(&gpu->shared->driver_gone))
        poll.result = error_set(err, -ENODEV, "GPU %u: the driver is gone", gpu->index);
    else if (!gpu->device && (opened = open_device(gpu, err)) < 0)
        return opened;
    else if (!is_suspended(gpu)) {
        if (!gpu->described)
            describe(&poll);
        if (!nvml_poll_is_over(&poll))
            changed = nvml_poll_read_lists(&poll, window_ends);
        /*
         * Every single sample matters only among processes that share. The call costs 2.8 ms of CPU
         * time, GPM 2 ms and the energy counter 4.3 ms (H200, driver 580), so who is alone is asked
         * for once per window, as a mean, and when somebody comes or goes.
         */
        shared = gpu->listed_count > 1;
        if ((window_ends || shared || changed) && !nvml_poll_is_over(&poll))
            nvml_poll_read_samples(&poll);
        if (!nvml_poll_is_over(&poll))
            read_utilisation(&poll);
        if ((shared || (window_ends && gpu->listed_count > 0)) && !nvml_poll_is_over(&poll))
            read_gpm(&poll);
        if (window_ends && !nvml_poll_is_over(&poll))
            nvml_poll_read_accounting(&poll);
        if (window_ends && !nvml_poll_is_over(&poll))
            nvml_poll_read_gauges(&poll);
        if (window_ends && !nvml_poll_is_over(&poll))
            read_energy(&poll);
    }
    if (window_ends || poll.result == -ENODEV)
        read_events(&poll); /* a GPU that is lost says why */
    if (poll.result == -ENODEV)
        (void)batch_add(
            batch, &(struct sample){.kind = SAMPLE_LOST, .gpu = gpu->index, .t_us = poll.now_us});
    return poll.result == 0 && poll.aligned ? 1 : poll.result;
}

static void gpu_close(void *state)
{
    struct nvml_gpu *gpu = state;
    const struct nvml_library *nvml;

    if (!gpu)
        return;
    nvml = &gpu->shared->library;
    for (size_t i = 0; i < ARRAY_SIZE(gpu->gpm); i++)
        if (gpu->gpm[i])
            nvml->gpm_free(gpu->gpm[i]);
    if (gpu->events)
        nvml->event_set_free(gpu->events);
    free(gpu->samples);
    free(gpu->listed);
    free(gpu->known);
    free(gpu->accounted);
    free(gpu->gpm_metrics);
    atomic_store(&gpu->shared->running[gpu->index], false);
    nvml_shared_unref(gpu->shared);
    free(gpu);
}

int nvml_gpu_new(struct nvml_shared *shared, uint32_t index, void **ret_state)
{
    struct nvml_gpu *gpu = calloc(1, sizeof(*gpu));

    if (!gpu)
        return -ENOMEM;
    gpu->shared = shared;
    gpu->index = index;
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
