/* GPUs: gauges, counters that they keep themselves, and the containers that use them. */
#include "core/macros.h"
#include "metrics/exposition_private.h"

/* Families that show one gauge each. */
static const struct {
    enum gpu_gauge gauge;
    int64_t scale;
    unsigned digits;
} shown[] = {
    [METRIC_GPU_POWER] = {GPU_GAUGE_POWER_MW, 1, MILLI},
    [METRIC_GPU_POWER_LIMIT] = {GPU_GAUGE_POWER_LIMIT_MW, 1, MILLI},
    [METRIC_GPU_UTILIZATION] = {GPU_GAUGE_UTILISATION_PERCENT, 1, PERCENT},
    [METRIC_GPU_MEMORY_UTILIZATION] = {GPU_GAUGE_MEMORY_UTILISATION_PERCENT, 1, PERCENT},
    [METRIC_GPU_CLOCK] = {GPU_GAUGE_SM_CLOCK_MHZ, 1000000, WHOLE},
    [METRIC_GPU_MEMORY_CLOCK] = {GPU_GAUGE_MEMORY_CLOCK_MHZ, 1000000, WHOLE},
    [METRIC_GPU_TEMPERATURE] = {GPU_GAUGE_TEMPERATURE_C, 1, WHOLE},
    [METRIC_GPU_MEMORY_TEMPERATURE] = {GPU_GAUGE_MEMORY_TEMPERATURE_C, 1, WHOLE},
    [METRIC_GPU_PERFORMANCE_STATE] = {GPU_GAUGE_PERFORMANCE_STATE, 1, WHOLE},
    [METRIC_GPU_MEMORY_TOTAL] = {GPU_GAUGE_MEMORY_TOTAL_BYTES, 1, WHOLE},
    [METRIC_GPU_MEMORY_RESERVED] = {GPU_GAUGE_MEMORY_RESERVED_BYTES, 1, WHOLE},
    [METRIC_GPU_MEMORY_USED] = {GPU_GAUGE_MEMORY_USED_BYTES, 1, WHOLE},
    [METRIC_GPU_MEMORY_FREE] = {GPU_GAUGE_MEMORY_FREE_BYTES, 1, WHOLE},
    [METRIC_GPU_PCIE_SENT] = {GPU_GAUGE_PCIE_TX_BYTES, 1, WHOLE},
    [METRIC_GPU_PCIE_RECEIVED] = {GPU_GAUGE_PCIE_RX_BYTES, 1, WHOLE},
    [METRIC_GPU_PCIE_REPLAYS] = {GPU_GAUGE_PCIE_REPLAYS, 1, WHOLE},
    [METRIC_GPU_PCIE_GENERATION] = {GPU_GAUGE_PCIE_GENERATION, 1, WHOLE},
    [METRIC_GPU_PCIE_WIDTH] = {GPU_GAUGE_PCIE_WIDTH, 1, WHOLE},
    [METRIC_GPU_NVLINK_SENT] = {GPU_GAUGE_NVLINK_TX_KIB, 1024, WHOLE},
    [METRIC_GPU_NVLINK_RECEIVED] = {GPU_GAUGE_NVLINK_RX_KIB, 1024, WHOLE},
};

static bool has_gauge(const struct snapshot_gpu *gpu, enum gpu_gauge gauge)
{
    return gpu->valid >> gauge & 1;
}

/* A sample with a label beside the GPU's, or NULL. */
static void gpu_row(struct text *text, const struct snapshot_gpu *gpu, const char *label,
                    const char *label_value, uint64_t value)
{
    text_sample(text);
    text_label_u64(text, "gpu", gpu->gpu);
    if (label)
        text_label(text, label, label_value);
    text_value(text, (int64_t)value, WHOLE);
}

static void gpu_info(struct text *text, const struct snapshot_gpu *gpu)
{
    text_sample(text);
    text_label_u64(text, "gpu", gpu->gpu);
    text_label(text, "uuid", gpu->uuid);
    text_label(text, "name", gpu->name);
    text_label(text, "driver", gpu->driver);
    text_value(text, 1, WHOLE);
}

/* Known memory is used less unknown: the sum over the processes was read at another moment and
 * could differ. */
static void gpu_memory(struct text *text, const struct snapshot_gpu *gpu, enum metric metric)
{
    uint64_t used = gpu->gauges[GPU_GAUGE_MEMORY_USED_BYTES];
    uint64_t unknown = MIN(gpu->unknown_bytes, used);
    const uint64_t values[] = {used - unknown, unknown, gpu->inference_active};

    if (gpu->has_unknown && has_gauge(gpu, GPU_GAUGE_MEMORY_USED_BYTES))
        gpu_row(text, gpu, NULL, NULL, values[metric - METRIC_GPU_MEMORY_KNOWN]);
}

static void gpu_throttle(struct text *text, const struct snapshot_gpu *gpu)
{
    /* By bit: nvml.h, nvmlClocksEventReason*. */
    static const char *const reasons[] = {
        "idle",          "application_clocks", "software_power_cap", "hardware_slowdown",
        "sync_boost",    "software_thermal",   "hardware_thermal",   "hardware_power_brake",
        "display_clock",
    };

    for (size_t r = 0; has_gauge(gpu, GPU_GAUGE_THROTTLE_MASK) && r < ARRAY_SIZE(reasons); r++)
        gpu_row(text, gpu, "reason", reasons[r], gpu->gauges[GPU_GAUGE_THROTTLE_MASK] >> r & 1);
}

static void gpu_rows(struct text *text, const struct snapshot_gpu *gpu, enum metric metric)
{
    if (metric == METRIC_GPU_INFO) {
        gpu_info(text, gpu);
    } else if (metric == METRIC_GPU_THROTTLE) {
        gpu_throttle(text, gpu);
    } else if (metric == METRIC_GPU_ECC_ERRORS) {
        if (has_gauge(gpu, GPU_GAUGE_ECC_CORRECTED))
            gpu_row(text, gpu, "type", "corrected", gpu->gauges[GPU_GAUGE_ECC_CORRECTED]);
        if (has_gauge(gpu, GPU_GAUGE_ECC_UNCORRECTED))
            gpu_row(text, gpu, "type", "uncorrected", gpu->gauges[GPU_GAUGE_ECC_UNCORRECTED]);
    } else if (metric == METRIC_GPU_XID_ERRORS) {
        for (size_t x = 0; x < SNAPSHOT_XIDS_MAX && gpu->xids[x].xid > 0; x++) {
            text_sample(text);
            text_label_u64(text, "gpu", gpu->gpu);
            text_label_u64(text, "xid", gpu->xids[x].xid);
            text_value(text, (int64_t)gpu->xids[x].count, WHOLE);
        }
    } else if (metric >= METRIC_GPU_MEMORY_KNOWN) {
        gpu_memory(text, gpu, metric);
    } else if (has_gauge(gpu, shown[metric].gauge)) {
        text_sample(text);
        text_label_u64(text, "gpu", gpu->gpu);
        text_value(text, (int64_t)gpu->gauges[shown[metric].gauge] * shown[metric].scale,
                   shown[metric].digits);
    }
}

static void gpu_families(struct text *text, const struct snapshot *snapshot, enum metric first,
                         enum metric last)
{
    for (enum metric metric = first; metric <= last; metric++) {
        text_family(text, metric);
        for (size_t i = 0; i < snapshot->gpu_count; i++)
            gpu_rows(text, &snapshot->gpus[i], metric);
    }
}

static void container_families(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_CONTAINER_GPU_MEMORY);
    for (size_t i = 0; i < snapshot->container_count; i++) {
        const struct snapshot_container *container = &snapshot->containers[i];

        if (!container->has_bytes)
            continue;
        text_sample(text, "container_name", container->name, "container_id",
                    container->container_id);
        text_label_u64(text, "gpu", container->gpu);
        text_label(text, "method", container->inferred ? "inference" : "nvidia-smi");
        text_value(text, (int64_t)container->bytes, WHOLE);
    }
    text_family(text, METRIC_CONTAINER_GPU_DETECTED);
    for (size_t i = 0; i < snapshot->detected_count; i++)
        text_row(text, 1, WHOLE, "container_name", snapshot->detected[i].name, "container_id",
                 snapshot->detected[i].container_id);
}

void exposition_gpus(struct text *text, const struct snapshot *snapshot)
{
    gpu_families(text, snapshot, METRIC_GPU_INFO, METRIC_GPU_INFERENCE_ACTIVE);
    container_families(text, snapshot);
    gpu_families(text, snapshot, METRIC_GPU_THROTTLE, METRIC_GPU_XID_ERRORS);
}
