/* GPM: two samples are two moments of the trace; their metrics are the last G before the second. */
#include <math.h>

#include "call.h"

/* Below this the H200 answers 0 or NaN (measured). */
enum { INTERVAL_MIN_US = 100000 };

static struct gpm_sample *find_sample(struct fake *fake, void *handle)
{
    uint32_t serial;
    int at = handle_open(HANDLE_SAMPLE, handle, &serial);

    if (at < 0 || at >= FAKE_SAMPLES || serial == 0 || fake->samples[at].serial != serial)
        return NULL;
    return &fake->samples[at];
}

/* "For Hopper or newer fully supported devices" (nvml.h, nvmlGpmQueryDeviceSupport): A100 has none.
 */
static bool is_supported(const struct call *call)
{
    return call_gpu(call)->series[KIND_GPM].count > 0 ||
           call_gpu(call)->series[KIND_INSTANCE_GPM].count > 0;
}

/* "This API supports the device handle and MIG device handle" (nvml.h); so does the next. */
int nvmlGpmQueryDeviceSupport(void *dev, struct nvml_gpm_support *support)
{
    _call_ struct call call = call_begin_any(SYMBOL_nvmlGpmQueryDeviceSupport, dev);

    if (call.code)
        return call.code;
    if (!support)
        return NVML_INVALID_ARGUMENT;
    if (support->version != NVML_GPM_VERSION)
        return NVML_ARGUMENT_VERSION_MISMATCH;
    support->is_supported_device = is_supported(&call);
    return NVML_SUCCESS;
}

int nvmlGpmSampleAlloc(void **ret_sample)
{
    _call_ struct call call = call_begin(SYMBOL_nvmlGpmSampleAlloc);

    if (call.code)
        return call.code;
    if (!ret_sample)
        return NVML_INVALID_ARGUMENT;
    for (unsigned i = 0; i < FAKE_SAMPLES; i++) {
        struct gpm_sample *sample = &call.fake->samples[i];

        if (sample->serial != 0)
            continue;
        *sample = (struct gpm_sample){.serial = ++call.fake->serial, .gpu = -1};
        *ret_sample = handle_make(HANDLE_SAMPLE, sample->serial, i);
        return NVML_SUCCESS;
    }
    return NVML_INSUFFICIENT_RESOURCES;
}

int nvmlGpmSampleFree(void *handle)
{
    /* It works without driver: whoever lost it must be able to clean up. */
    _call_ struct call call = call_open(SYMBOL_nvmlGpmSampleFree);
    struct gpm_sample *sample = find_sample(call.fake, handle);

    if (call.code)
        return call.code;
    if (!sample)
        return NVML_INVALID_ARGUMENT;
    sample->serial = 0;
    return NVML_SUCCESS;
}

/* Of a MIG device it is that of its GPU instance: "Read a sample of GPM metrics [...] for a MIG GPU
 * Instance" (nvml.h, nvmlGpmMigSampleGet). */
int nvmlGpmSampleGet(void *dev, void *handle)
{
    _call_ struct call call = call_begin_any(SYMBOL_nvmlGpmSampleGet, dev);
    struct gpm_sample *sample = find_sample(call.fake, handle);

    if (call.code)
        return call.code;
    if (!sample)
        return NVML_INVALID_ARGUMENT;
    if (!is_supported(&call))
        return NVML_NOT_SUPPORTED;
    sample->gpu = call.gpu;
    sample->instance = call.instance ? (uint32_t)call.instance->gpu_instance : NVML_NO_INSTANCE;
    sample->play = call.play;
    return NVML_SUCCESS;
}

/* "Read a sample of GPM metrics [...] for a MIG GPU Instance. For Hopper or newer" (nvml.h). One
 * that has no compute instance has no data (DCGM, DcgmGpmManager.cpp). */
int nvmlGpmMigSampleGet(void *dev, unsigned gpu_instance, void *handle)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlGpmMigSampleGet, dev);
    struct gpm_sample *sample = find_sample(call.fake, handle);
    const struct record *layout;

    if (call.code)
        return call.code;
    layout = call_layout(&call);
    if (!sample)
        return NVML_INVALID_ARGUMENT;
    if (!is_supported(&call) || !call_is_mig(&call))
        return NVML_NOT_SUPPORTED;
    for (size_t i = 0; layout && i < layout->count; i++) {
        if (layout->instances[i].gpu_instance != gpu_instance)
            continue;
        sample->gpu = call.gpu;
        sample->instance = gpu_instance;
        sample->play = call.play;
        return NVML_SUCCESS;
    }
    return NVML_INVALID_ARGUMENT;
}

/* The last record of an instance, or of the board, at a time; NULL if it has none. */
static const struct record *find_record(const struct call *call, uint32_t instance, uint64_t t_us)
{
    const struct series *series = &call_gpu(call)->series[KIND_INSTANCE_GPM];
    const struct record *record;

    if (instance == NVML_NO_INSTANCE)
        return series_near(&call_gpu(call)->series[KIND_GPM], t_us);
    for (record = series_at(series, t_us); record && record >= series->records; record--)
        if (record->values[0] == instance)
            return record;
    return NULL;
}

static void fill_metric(struct nvml_gpm_metric *metric, const struct record *record, bool too_short)
{
    metric->nvml_return = NVML_NOT_SUPPORTED;
    metric->value = 0;
    metric->short_name = metric->long_name = metric->unit = NULL;
    for (size_t i = 0; record && i < record->count; i++)
        if (record->entries[i].key == metric->metric_id) {
            metric->nvml_return = NVML_SUCCESS;
            metric->value = too_short ? NAN : record->entries[i].value;
            metric->short_name = metric->long_name = "metric";
            metric->unit = "%";
        }
}

int nvmlGpmMetricsGet(struct nvml_gpm_metrics_get *get)
{
    _call_ struct call call = call_open(SYMBOL_nvmlGpmMetricsGet);
    const struct gpm_sample *first, *second;
    struct play from, to;
    uint32_t instance;

    if (call.code)
        return call.code;
    if (!get)
        return NVML_INVALID_ARGUMENT;
    if (get->version != NVML_GPM_VERSION)
        return NVML_ARGUMENT_VERSION_MISMATCH;
    first = find_sample(call.fake, get->sample1);
    second = find_sample(call.fake, get->sample2);
    if (!first || !second || first->gpu < 0 || first->gpu != second->gpu ||
        first->instance != second->instance || get->num_metrics == 0 ||
        get->num_metrics > NVML_GPM_METRIC_MAX)
        return NVML_INVALID_ARGUMENT;
    /* A hang gives up the lock. */
    from = first->play;
    to = second->play;
    instance = second->instance;
    if (call_apply(&call, first->gpu) != NVML_SUCCESS)
        return call.code;
    for (uint32_t i = 0; i < get->num_metrics; i++)
        fill_metric(&get->metrics[i], find_record(&call, instance, to.t_us),
                    to.elapsed_us < from.elapsed_us + INTERVAL_MIN_US);
    return NVML_SUCCESS;
}
