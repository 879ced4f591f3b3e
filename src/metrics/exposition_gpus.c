/* GPUs: gauges, counters that they keep themselves, and the containers that use them. */
#include "core/macros.h"
#include "metrics/exposition_private.h"

static bool has_gauge(const struct snapshot_gpu *gpu, enum gpu_gauge gauge)
{
    return gpu->valid >> gauge & 1;
}

static void begin_gpu(struct text *text, const struct snapshot_gpu *gpu)
{
    text_sample(text);
    text_label_u64(text, "gpu", gpu->gpu);
}

static void gpu_info(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_GPU_INFO);
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        begin_gpu(text, &snapshot->gpus[i]);
        text_label(text, "uuid", snapshot->gpus[i].uuid);
        text_label(text, "name", snapshot->gpus[i].name);
        text_label(text, "driver", snapshot->gpus[i].driver);
        text_value(text, 1, WHOLE);
    }
}

static void gpu_gauges(struct text *text, const struct snapshot *snapshot)
{
    static const struct {
        enum metric metric;
        enum gpu_gauge gauge;
        int64_t scale;
        unsigned digits;
    } shown[] = {
        {METRIC_GPU_POWER, GPU_GAUGE_POWER_MW, 1, MILLI},
        {METRIC_GPU_POWER_LIMIT, GPU_GAUGE_POWER_LIMIT_MW, 1, MILLI},
        {METRIC_GPU_UTILIZATION, GPU_GAUGE_UTILISATION_PERCENT, 1, PERCENT},
        {METRIC_GPU_MEMORY_UTILIZATION, GPU_GAUGE_MEMORY_UTILISATION_PERCENT, 1, PERCENT},
        {METRIC_GPU_CLOCK, GPU_GAUGE_SM_CLOCK_MHZ, 1000000, WHOLE},
        {METRIC_GPU_MEMORY_CLOCK, GPU_GAUGE_MEMORY_CLOCK_MHZ, 1000000, WHOLE},
        {METRIC_GPU_TEMPERATURE, GPU_GAUGE_TEMPERATURE_C, 1, WHOLE},
        {METRIC_GPU_MEMORY_TEMPERATURE, GPU_GAUGE_MEMORY_TEMPERATURE_C, 1, WHOLE},
        {METRIC_GPU_PERFORMANCE_STATE, GPU_GAUGE_PERFORMANCE_STATE, 1, WHOLE},
        {METRIC_GPU_MEMORY_TOTAL, GPU_GAUGE_MEMORY_TOTAL_BYTES, 1, WHOLE},
        {METRIC_GPU_MEMORY_RESERVED, GPU_GAUGE_MEMORY_RESERVED_BYTES, 1, WHOLE},
        {METRIC_GPU_MEMORY_USED, GPU_GAUGE_MEMORY_USED_BYTES, 1, WHOLE},
        {METRIC_GPU_MEMORY_FREE, GPU_GAUGE_MEMORY_FREE_BYTES, 1, WHOLE},
        {METRIC_GPU_PCIE_SENT, GPU_GAUGE_PCIE_TX_BYTES, 1, WHOLE},
        {METRIC_GPU_PCIE_RECEIVED, GPU_GAUGE_PCIE_RX_BYTES, 1, WHOLE},
        {METRIC_GPU_PCIE_REPLAYS, GPU_GAUGE_PCIE_REPLAYS, 1, WHOLE},
        {METRIC_GPU_PCIE_GENERATION, GPU_GAUGE_PCIE_GENERATION, 1, WHOLE},
        {METRIC_GPU_PCIE_WIDTH, GPU_GAUGE_PCIE_WIDTH, 1, WHOLE},
        {METRIC_GPU_NVLINK_SENT, GPU_GAUGE_NVLINK_TX_KIB, 1024, WHOLE},
        {METRIC_GPU_NVLINK_RECEIVED, GPU_GAUGE_NVLINK_RX_KIB, 1024, WHOLE},
    };

    for (size_t g = 0; g < ARRAY_SIZE(shown); g++) {
        text_family(text, shown[g].metric);
        for (size_t i = 0; i < snapshot->gpu_count; i++) {
            const struct snapshot_gpu *gpu = &snapshot->gpus[i];

            if (!has_gauge(gpu, shown[g].gauge))
                continue;
            begin_gpu(text, gpu);
            text_value(text, (int64_t)gpu->gauges[shown[g].gauge] * shown[g].scale,
                       shown[g].digits);
        }
    }
}

/* Known memory is used less unknown: the sum over the processes was read at another moment and
 * could differ. */
static void gpu_memory(struct text *text, const struct snapshot *snapshot)
{
    for (enum metric metric = METRIC_GPU_MEMORY_KNOWN; metric <= METRIC_GPU_INFERENCE_ACTIVE;
         metric++) {
        text_family(text, metric);
        for (size_t i = 0; i < snapshot->gpu_count; i++) {
            const struct snapshot_gpu *gpu = &snapshot->gpus[i];
            uint64_t used = gpu->gauges[GPU_GAUGE_MEMORY_USED_BYTES];
            uint64_t unknown = MIN(gpu->unknown_bytes, used);
            const uint64_t values[] = {used - unknown, unknown, gpu->inference_active};

            if (!gpu->has_unknown || !has_gauge(gpu, GPU_GAUGE_MEMORY_USED_BYTES))
                continue;
            begin_gpu(text, gpu);
            text_value(text, (int64_t)values[metric - METRIC_GPU_MEMORY_KNOWN], WHOLE);
        }
    }
}

static void containers(struct text *text, const struct snapshot *snapshot)
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
    for (size_t i = 0; i < snapshot->detected_count; i++) {
        text_sample(text, "container_name", snapshot->detected[i].name, "container_id",
                    snapshot->detected[i].container_id);
        text_value(text, 1, WHOLE);
    }
}

static void gpu_throttle(struct text *text, const struct snapshot *snapshot)
{
    /* By bit: nvml.h, nvmlClocksEventReason*. */
    static const char *const reasons[] = {
        "idle",          "application_clocks", "software_power_cap", "hardware_slowdown",
        "sync_boost",    "software_thermal",   "hardware_thermal",   "hardware_power_brake",
        "display_clock",
    };

    text_family(text, METRIC_GPU_THROTTLE);
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        const struct snapshot_gpu *gpu = &snapshot->gpus[i];

        for (size_t r = 0; has_gauge(gpu, GPU_GAUGE_THROTTLE_MASK) && r < ARRAY_SIZE(reasons);
             r++) {
            begin_gpu(text, gpu);
            text_label(text, "reason", reasons[r]);
            text_value(text, (int64_t)(gpu->gauges[GPU_GAUGE_THROTTLE_MASK] >> r & 1), WHOLE);
        }
    }
}

static void gpu_errors(struct text *text, const struct snapshot *snapshot)
{
    static const char *const types[] = {"corrected", "uncorrected"};

    text_family(text, METRIC_GPU_ECC_ERRORS);
    for (size_t i = 0; i < snapshot->gpu_count; i++)
        for (unsigned t = 0; t < ARRAY_SIZE(types); t++) {
            const struct snapshot_gpu *gpu = &snapshot->gpus[i];
            enum gpu_gauge gauge = GPU_GAUGE_ECC_CORRECTED + t;

            if (!has_gauge(gpu, gauge))
                continue;
            begin_gpu(text, gpu);
            text_label(text, "type", types[t]);
            text_value(text, (int64_t)gpu->gauges[gauge], WHOLE);
        }
    text_family(text, METRIC_GPU_XID_ERRORS);
    for (size_t i = 0; i < snapshot->gpu_count; i++)
        for (size_t x = 0; x < SNAPSHOT_XIDS_MAX && snapshot->gpus[i].xids[x].xid > 0; x++) {
            begin_gpu(text, &snapshot->gpus[i]);
            text_label_u64(text, "xid", snapshot->gpus[i].xids[x].xid);
            text_value(text, (int64_t)snapshot->gpus[i].xids[x].count, WHOLE);
        }
}

void exposition_gpus(struct text *text, const struct snapshot *snapshot)
{
    gpu_info(text, snapshot);
    gpu_gauges(text, snapshot);
    gpu_memory(text, snapshot);
    containers(text, snapshot);
    gpu_throttle(text, snapshot);
    gpu_errors(text, snapshot);
}
