#include "sources/nvml/nvml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* Utilisation samples come every 200 ms; asked for less often, the driver answers means. */
static const uint64_t POLL_US = 200000;

/* How often GPUs that have no unit are looked for, and a missing driver is tried again. */
static const uint64_t SEARCH_US = 10 * USEC_PER_SEC;

struct nvml {
    struct nvml_shared *shared;
    uint64_t next_search_us;
};

void nvml_shared_unref(struct nvml_shared *shared)
{
    if (atomic_fetch_sub(&shared->references, 1) != 1)
        return;
    if (atomic_load(&shared->initialised))
        (void)shared->library.shutdown();
    nvml_library_close(&shared->library);
    free(shared);
}

static int nvml_open(const struct source_context *context, void **ret_state, struct error *err)
{
    struct nvml *nvml;
    int r;

    if (context->replay_path)
        return -ENODEV;
    nvml = calloc(1, sizeof(*nvml));
    if (nvml)
        nvml->shared = calloc(1, sizeof(*nvml->shared));
    if (!nvml || !nvml->shared) {
        free(nvml);
        return error_set(err, -ENOMEM, "out of memory");
    }
    nvml->shared->context = context;
    nvml->shared->references = 1;
    nvml->shared->polls_per_window = MAX(context->interval_us / POLL_US, (uint64_t)1);
    r = nvml_library_open(context->nvml_library, &nvml->shared->library, err);
    if (r < 0) {
        free(nvml->shared);
        free(nvml);
        return r;
    }
    proc_reader_init(&nvml->shared->proc, context->host);
    *ret_state = nvml;
    return 0;
}

static bool any_running(struct nvml_shared *shared)
{
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (atomic_load(&shared->running[i]))
            return true;
    return false;
}

static int initialise(struct nvml *nvml, struct error *err)
{
    struct nvml_shared *shared = nvml->shared;
    int code = shared->library.init();

    if (code != NVML_SUCCESS)
        return error_set(err, -EAGAIN, "NVML: %s", nvml_library_error(&shared->library, code));
    if (shared->library.driver_version)
        (void)shared->library.driver_version(shared->driver, sizeof(shared->driver));
    shared->driver[sizeof(shared->driver) - 1] = '\0';
    atomic_store(&shared->initialised, true);
    return 0;
}

/* Handles do not survive: everything is closed and opened again. Waits until no unit uses them. */
static void shut_down_if_gone(struct nvml *nvml)
{
    if (!atomic_load(&nvml->shared->initialised) || !atomic_load(&nvml->shared->driver_gone) ||
        any_running(nvml->shared))
        return;
    (void)nvml->shared->library.shutdown();
    atomic_store(&nvml->shared->initialised, false);
    atomic_store(&nvml->shared->driver_gone, false);
}

static int add_gpu(struct nvml *nvml, uint32_t index, struct error *err)
{
    const struct source_context *context = nvml->shared->context;
    struct source_unit unit = {
        .ops = &nvml_gpu_unit,
        .interval_us = context->interval_us / nvml->shared->polls_per_window,
    };
    int r = nvml_gpu_new(nvml->shared, index, &unit.state);

    if (r < 0)
        return error_set(err, r, "out of memory");
    snprintf(unit.name, sizeof(unit.name), "nvml/%u", index);
    r = context->add_unit(context, &unit);
    if (r < 0) {
        unit.ops->close(unit.state);
        return error_set(err, r, "GPU %u: %s", index, strerror(-r));
    }
    return 0;
}

/* Makes a unit for every GPU that has none. It is opened there, on its own thread: that may hang.
 */
static int find_gpus(struct nvml *nvml, struct error *err)
{
    struct nvml_shared *shared = nvml->shared;
    uint32_t count;
    int code = shared->library.device_count(&count), result = 0;

    if (code != NVML_SUCCESS) {
        (void)nvml_is_gone(shared, code);
        return error_set(err, -EIO, "NVML: %s", nvml_library_error(&shared->library, code));
    }
    for (uint32_t i = 0; i < MIN(count, (uint32_t)SAMPLE_GPU_MAX); i++)
        if (!atomic_load(&shared->running[i])) {
            int r = add_gpu(nvml, i, err);

            if (r < 0)
                result = r;
        }
    return result;
}

static int nvml_read(void *state, struct batch *batch, struct error *err)
{
    struct nvml *nvml = state;
    const struct clock *clock = nvml->shared->context->clock;
    uint64_t mono_us = clock->monotonic_us(clock);
    int r = 0;

    (void)batch; /* its units have the samples */
    shut_down_if_gone(nvml);
    if (mono_us >= nvml->next_search_us && !atomic_load(&nvml->shared->driver_gone)) {
        nvml->next_search_us = mono_us + SEARCH_US;
        if (!atomic_load(&nvml->shared->initialised))
            r = initialise(nvml, err);
        if (r == 0)
            r = find_gpus(nvml, err);
    } else if (!atomic_load(&nvml->shared->initialised)) {
        r = error_set(err, -EAGAIN, "NVML: waiting for the driver");
    }
    return r;
}

static void nvml_close(void *state)
{
    struct nvml *nvml = state;

    if (!nvml)
        return;
    nvml_shared_unref(nvml->shared);
    free(nvml);
}

const struct source_ops nvml_source = {
    .name = "nvml",
    .flag = "collector.nvml",
    .help = "read NVIDIA GPUs",
    .holds_device = true,
    .open = nvml_open,
    .read = nvml_read,
    .close = nvml_close,
    .check = nvml_check,
};
