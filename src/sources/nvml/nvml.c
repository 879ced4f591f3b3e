#include "sources/nvml/nvml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* Utilisation samples come every 200 ms; polled less often, the driver returns means. */
static const uint64_t POLL_US = 200000;

/* Between two searches for GPUs that have no unit, and for a missing driver. */
static const uint64_t SEARCH_US = 10 * USEC_PER_SEC;

void nvml_shared_unref(void *state)
{
    struct nvml_shared *shared = state;

    if (!shared || atomic_fetch_sub(&shared->references, 1) != 1)
        return;
    if (atomic_load(&shared->initialised))
        (void)shared->library.shutdown();
    nvml_library_close(&shared->library);
    free(shared);
}

static int nvml_open(const struct source_context *context, void **ret_state, struct error *err)
{
    _cleanup_free_ struct nvml_shared *shared = NULL;
    int r;

    if (context->replay_path)
        return -ENODEV;
    shared = calloc(1, sizeof(*shared));
    if (!shared)
        return error_set(err, -ENOMEM, "out of memory");
    shared->context = context;
    shared->references = 1;
    shared->polls_per_window = MAX(context->interval_us / POLL_US, (uint64_t)1);
    r = nvml_library_open(context->nvml_library, &shared->library, err);
    if (r < 0)
        return r;
    proc_reader_init(&shared->proc, context->host);
    *ret_state = TAKE_PTR(shared);
    return 0;
}

static int initialise(struct nvml_shared *shared, struct error *err)
{
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
static void shut_down_if_gone(struct nvml_shared *shared)
{
    if (!atomic_load(&shared->initialised) || !atomic_load(&shared->driver_gone))
        return;
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (atomic_load(&shared->running[i]))
            return;
    (void)shared->library.shutdown();
    atomic_store(&shared->initialised, false);
    atomic_store(&shared->driver_gone, false);
}

static int add_gpu(struct nvml_shared *shared, uint32_t index, struct error *err)
{
    const struct source_context *context = shared->context;
    struct source_unit unit = {
        .ops = &nvml_gpu_unit,
        .interval_us = context->interval_us / shared->polls_per_window,
    };
    int r = nvml_gpu_new(shared, index, &unit.state);

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

/* Makes a unit for every GPU that has none. Its own thread opens the GPU, as that may hang. */
static int find_gpus(struct nvml_shared *shared, struct error *err)
{
    uint32_t count;
    int code = shared->library.device_count(&count), result = 0;

    if (code != NVML_SUCCESS) {
        (void)nvml_is_gone(shared, code);
        return error_set(err, -EIO, "NVML: %s", nvml_library_error(&shared->library, code));
    }
    for (uint32_t i = 0; i < MIN(count, (uint32_t)SAMPLE_GPU_MAX); i++)
        if (!atomic_load(&shared->running[i])) {
            int r = add_gpu(shared, i, err);

            if (r < 0)
                result = r;
        }
    return result;
}

/* Its units add the samples. */
static int nvml_read(void *state, struct batch *batch, struct error *err)
{
    struct nvml_shared *shared = state;
    const struct clock *clock = shared->context->clock;
    uint64_t mono_us = clock->monotonic_us(clock);
    int r = 0;

    (void)batch;
    shut_down_if_gone(shared);
    if (mono_us >= shared->next_search_us && !atomic_load(&shared->driver_gone)) {
        shared->next_search_us = mono_us + SEARCH_US;
        if (!atomic_load(&shared->initialised))
            r = initialise(shared, err);
        if (r == 0)
            r = find_gpus(shared, err);
    } else if (!atomic_load(&shared->initialised)) {
        r = error_set(err, -EAGAIN, "NVML: waiting for the driver");
    }
    return r;
}

const struct source_ops nvml_source = {
    .name = "nvml",
    .flag = "collector.nvml",
    .help = "read NVIDIA GPUs",
    .holds_device = true,
    .open = nvml_open,
    .read = nvml_read,
    .close = nvml_shared_unref,
    .check = nvml_check,
};
