/* One NVIDIA GPU: opened, polled in the right order, closed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/fs.h"
#include "core/macros.h"
#include "sources/gpu_counters.h"
#include "sources/nvml/nvml.h"

/* Between two attempts to open a GPU. */
static const uint64_t REOPEN_US = 10 * USEC_PER_SEC;

enum { EVENTS_PER_READ = 64 };

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

bool nvml_poll_succeeded(struct nvml_poll *poll, const char *what, int code)
{
    struct nvml_shared *shared = poll->gpu->shared;
    bool is_gone;

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
    is_gone = nvml_is_gone(shared, code);
    if (is_gone || poll->result == 0)
        poll->result =
            error_set(poll->err, is_gone ? -ENODEV : -EIO, "GPU %u: %s: %s", poll->gpu->index, what,
                      nvml_library_error(&shared->library, code));
    return false;
}

bool nvml_poll_is_over(const struct nvml_poll *poll)
{
    return poll->result == -ENODEV || poll->result == -ENOMEM;
}

void nvml_poll_out_of_memory(struct nvml_poll *poll)
{
    poll->result = error_set(poll->err, -ENOMEM, "out of memory");
}

void nvml_poll_add(struct nvml_poll *poll, struct sample sample)
{
    sample.gpu = poll->gpu->index;
    sample.t_us = sample.t_us ? sample.t_us : poll->now_us;
    poll->gpu->passed_us = MAX(poll->gpu->passed_us, sample.t_us);
    if (batch_add(poll->batch, &sample) < 0)
        nvml_poll_out_of_memory(poll);
}

/* Again and again: who had no memory for it the first time would never know the GPU. */
static const uint64_t DESCRIBE_US = 60 * USEC_PER_SEC;

static uint64_t monotonic_us(const struct nvml_gpu *gpu)
{
    const struct clock *clock = gpu->shared->context->clock;

    return clock->monotonic_us(clock);
}

/* Copies the strings: a batch may outlive the GPU. */
static void describe_device(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct arena *arena = &poll->batch->arena;
    struct sample_device device = {
        .uuid = arena_copy(arena, gpu->uuid, strlen(gpu->uuid)),
        .name = arena_copy(arena, gpu->name, strlen(gpu->name)),
        .driver = arena_copy(arena, gpu->shared->driver, strlen(gpu->shared->driver)),
        .pci = arena_copy(arena, gpu->pci, strlen(gpu->pci)),
    };
    uint32_t limit_mw;

    if (NVML_POLL_CALL(poll, "power limit", power_limit_mw, &limit_mw))
        device.power_limit_mw = limit_mw;
    device.memory_bytes = nvml_poll_memory_bytes(poll);
    device.has_minor =
        nvml->minor && nvml->minor(gpu->device, &device.minor) == NVML_SUCCESS; /* not in WSL */
    if (!device.uuid || !device.name || !device.driver || !device.pci)
        nvml_poll_out_of_memory(poll);
    else
        nvml_poll_add(poll, (struct sample){.kind = SAMPLE_DEVICE, .device = device});
    if (!nvml_poll_is_over(poll))
        gpu->describe_us = monotonic_us(gpu) + DESCRIBE_US;
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

/* Polls until the counter moves. False if it does not, or if the clock stands still. */
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

static void read_energy(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    const struct clock *clock = gpu->shared->context->clock;
    unsigned long long energy_mj = 0;
    uint32_t power_mw;
    bool has_power = NVML_POLL_CALL(poll, "power", power_mw, &power_mw);
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

/* A call would wake a device that the kernel has suspended. */
static bool is_suspended(const struct nvml_gpu *gpu)
{
    char path[96], text[32];
    size_t len;

    snprintf(path, sizeof(path), "bus/pci/devices/%s/power/runtime_status", gpu->pci);
    return gpu->pci[0] != '\0' &&
           fs_read_at(gpu->shared->context->host->sysfs_fd, path, text, sizeof(text), &len) == 0 &&
           strncmp(text, "suspended", strlen("suspended")) == 0;
}

/* As sysfs names it; NVML writes the domain with eight digits and in capitals. */
static void find_pci_address(struct nvml_gpu *gpu)
{
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_pci_info info = {0};

    if (!nvml->pci_info || nvml->pci_info(gpu->device, &info) != NVML_SUCCESS)
        return;
    snprintf(gpu->pci, sizeof(gpu->pci), "%04x:%02x:%02x.0", info.domain, info.bus & 0xff,
             info.device & 0x1f);
}

/* Registers for XID errors; a GPU that cannot report them works all the same. */
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

static bool is_vgpu_host(const struct nvml_library *nvml, struct nvml_device *device)
{
    int mode;

    return nvml->virtualization_mode && nvml->active_vgpus &&
           nvml->virtualization_mode(device, &mode) == NVML_SUCCESS &&
           mode == NVML_VIRTUALIZATION_HOST_VGPU;
}

/* Until it is opened, the GPU is down: not permitted, lost, or in a reset. */
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
    find_pci_address(gpu);
    nvml_gpm_open(gpu);
    gpu->is_vgpu_host = is_vgpu_host(nvml, device);
    open_events(gpu);
    return 0;
}

/*
 * Every single sample matters only among processes that share. The call costs 2.8 ms of CPU time,
 * GPM 2 ms and the energy counter 4.3 ms (H200, driver 580), so a process that is alone is sampled
 * once per window, as a mean, and when one comes or goes. The energy closes the window: it is last.
 * In MIG mode the driver has neither samples nor accounting (nvml.h,
 * nvmlDeviceGetProcessUtilization; MIG User Guide), and is not asked for them.
 */
static void gpu_poll(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    bool is_due = monotonic_us(gpu) >= gpu->describe_us, window_ends = poll->window_ends;
    bool changed = false, shared = gpu->pids.count > 1, is_mig;

    if (shared || (window_ends && gpu->pids.count > 0))
        nvml_poll_pass_counters(poll);
    if (is_due)
        describe_device(poll);
    if (!nvml_poll_is_over(poll) && (is_due || window_ends))
        nvml_poll_read_layout(poll, is_due);
    if (!nvml_poll_is_over(poll))
        changed = nvml_poll_read_lists(poll);
    shared = gpu->pids.count > 1;
    is_mig = gpu->mig.is_on;
    const struct {
        bool is_due;
        void (*read)(struct nvml_poll *poll);
    } steps[] = {
        {!is_mig && (window_ends || shared || changed), nvml_poll_read_samples},
        {true, nvml_poll_read_utilisation},
        {is_mig && window_ends, nvml_poll_read_instance_memory},
        {is_mig, nvml_poll_read_instance_gpm},
        {!is_mig && (shared || (window_ends && gpu->pids.count > 0)), nvml_poll_read_gpm},
        {!is_mig && window_ends, nvml_poll_read_accounting},
        {gpu->is_vgpu_host && window_ends, nvml_poll_read_vgpus},
        {gpu->is_vgpu_host && (window_ends || gpu->vgpu_count > 1), nvml_poll_read_vgpu_samples},
        {window_ends, nvml_poll_want_counters},
        {window_ends, nvml_poll_read_gauges},
        {window_ends, read_energy},
    };

    for (size_t i = 0; i < ARRAY_SIZE(steps) && !nvml_poll_is_over(poll); i++)
        if (steps[i].is_due)
            steps[i].read(poll);
}

static int gpu_read(void *state, struct batch *batch, struct error *err)
{
    struct nvml_gpu *gpu = state;
    const struct clock *clock = gpu->shared->context->clock;
    struct nvml_poll poll = {
        .gpu = gpu,
        .batch = batch,
        .err = err,
        .now_us = clock->realtime_us(clock),
        .window_ends = gpu->polls++ % gpu->shared->polls_per_window == 0 || batch->is_requested,
    };
    int r = 0;

    if (atomic_load(&gpu->shared->driver_gone))
        poll.result = error_set(err, -ENODEV, "GPU %u: the driver is gone", gpu->index);
    else if (!gpu->device)
        r = open_device(gpu, err);
    if (r < 0)
        return r;
    if (poll.result == 0 && !is_suspended(gpu))
        gpu_poll(&poll);
    if (poll.window_ends || poll.result == -ENODEV)
        read_events(&poll); /* those of a lost GPU say why */
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
    gpu_counters_want(gpu->shared->context->counters, gpu->index, NULL);
    nvml_gpm_close(gpu);
    nvml_mig_done(nvml, &gpu->mig);
    if (gpu->events)
        nvml->event_set_free(gpu->events);
    free(gpu->entries);
    gpu_pids_done(&gpu->pids);
    free(gpu->accounted);
    free(gpu->vgpu_samples);
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
    gpu->pids = (struct gpu_pids){.context = shared->context, .proc = &shared->proc, .gpu = index};
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
