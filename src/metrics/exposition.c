#include "metrics/exposition.h"

#include <string.h>

#include "core/macros.h"
#include "metrics/compat.h"
#include "metrics/exposition_private.h"

void exposition_meter_labels(struct text *text, const struct snapshot_meter *meter)
{
    text_label(text, "meter", meter_words[meter->kind]);
    text_label(text, "meter_id", meter->meter_id);
}

static void single_value(struct text *text, enum metric metric, uint64_t value, unsigned digits)
{
    text_family(text, metric);
    text_sample(text);
    text_value(text, (int64_t)value, digits);
}

/* A 64-bit field of every meter. */
static void meter_family(struct text *text, const struct snapshot *snapshot, enum metric metric,
                         size_t offset, unsigned digits)
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        int64_t value;

        if (snapshot->meters[i].is_unread)
            continue;
        memcpy(&value, (const char *)&snapshot->meters[i] + offset, sizeof(value));
        text_sample(text);
        exposition_meter_labels(text, &snapshot->meters[i]);
        text_value(text, value, digits);
    }
}

static void hardware_counters(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_METER_HARDWARE_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        if (snapshot->meters[i].has_counter) {
            text_sample(text);
            exposition_meter_labels(text, &snapshot->meters[i]);
            text_value(text, (int64_t)snapshot->meters[i].counter_uj, MICRO);
        }
    for (size_t i = 0; i < snapshot->observed_count; i++)
        text_row(text, (int64_t)snapshot->observed[i].counter_uj, MICRO, "meter",
                 meter_words[snapshot->observed[i].kind], "meter_id", snapshot->observed[i].id);
}

static void power_limits(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_METER_POWER_LIMIT);
    for (size_t i = 0; i < snapshot->power_limit_count; i++)
        for (int limit = 0; limit < METER_LIMITS; limit++) {
            const struct snapshot_power_limits *row = &snapshot->power_limits[i];

            if (row->limits.uw[limit] > 0)
                text_row(text, (int64_t)row->limits.uw[limit], MICRO, "meter",
                         meter_words[row->kind], "meter_id", row->id, "limit",
                         meter_limit_words[limit]);
        }
}

static void node_meter(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_NODE_POWER);
    for (size_t i = 0; i < snapshot->node_power_count; i++)
        text_row(text, (int64_t)snapshot->node_powers[i].power_mw, MILLI, "source",
                 snapshot->node_powers[i].source);
    if (!snapshot->overhead_source)
        return;
    if (snapshot->gpu_count > 0) {
        text_family(text, METRIC_NODE_METER_INCLUDES_GPUS);
        text_row(text, snapshot->overhead_includes_gpus, WHOLE, "source",
                 snapshot->overhead_source);
    }
    text_family(text, METRIC_NODE_METER_MISMATCH);
    text_row(text, snapshot->overhead_mismatch, WHOLE, "source", snapshot->overhead_source);
}

static void meter_families(struct text *text, const struct snapshot *snapshot)
{
    meter_family(text, snapshot, METRIC_METER_ENERGY, offsetof(struct snapshot_meter, energy_uj),
                 MICRO);
    hardware_counters(text, snapshot);
    power_limits(text, snapshot);
    node_meter(text, snapshot);
    meter_family(text, snapshot, METRIC_ENERGY_PENDING, offsetof(struct snapshot_meter, pending_uj),
                 MICRO);
    text_family(text, METRIC_UNOWNED_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        for (int owner = 0; !snapshot->meters[i].is_unread && owner < UNOWNED_COUNT; owner++) {
            text_sample(text);
            exposition_meter_labels(text, &snapshot->meters[i]);
            text_label(text, "owner", unowned_words[owner]);
            text_value(text, (int64_t)snapshot->meters[i].unowned_uj[owner], MICRO);
        }
}

static void factor_family(struct text *text, const struct snapshot *snapshot, enum metric metric)
{
    bool is_of_provider = metric >= METRIC_EMISSION_PROVIDER_UP;

    text_family(text, metric);
    for (size_t i = 0; i < snapshot->factor_count; i++) {
        const struct snapshot_factor *row = &snapshot->factors[i];
        const struct price_factor *factor = &row->factor;
        const uint64_t values[] = {factor->ug_per_kwh, row->in_force, row->is_stale,
                                   row->is_estimated,  row->age_us,   row->is_up,
                                   row->errors};
        bool is_micro = metric == METRIC_EMISSION_FACTOR || metric == METRIC_EMISSION_FACTOR_AGE;

        if ((!factor->known && !is_of_provider) ||
            (!row->is_live && metric > METRIC_EMISSION_FACTOR_IN_FORCE))
            continue;
        text_sample(text, "provider", factor->provider, "zone", factor->zone);
        if (!is_of_provider) {
            text_label(text, "signal", price_signal_words[factor->signal]);
            text_label(text, "basis", price_basis_words[factor->basis]);
        }
        text_value(text, (int64_t)values[metric - METRIC_EMISSION_FACTOR],
                   is_micro ? MICRO : WHOLE);
    }
}

bool exposition_bill_is_known(const struct snapshot *snapshot, enum bill_kind kind,
                              const struct snapshot_meter *meter)
{
    const bool known[BILL_KINDS] = {snapshot->price.factor.known,
                                    snapshot->embodied.of[meter->kind].known,
                                    snapshot->price.cost.known};

    return known[kind] && !meter->is_unread;
}

void exposition_bill_value(struct text *text, const struct snapshot *snapshot, enum bill_kind kind,
                           const struct bill *bill)
{
    enum { BILLION = 1000000000 };
    const unsigned __int128 values[BILL_KINDS] = {bill->emission, bill->embodied, bill->cost};
    unsigned __int128 billionths = exposition_billionths(values[kind]);

    if (kind == BILL_COST)
        text_label(text, "currency", snapshot->price.cost.currency);
    text_decimal(text, (uint64_t)(billionths / BILLION), (uint64_t)(billionths % BILLION), NANO);
}

static void bill_family(struct text *text, const struct snapshot *snapshot, enum bill_kind kind,
                        enum metric metric, bool is_unowned)
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        const struct snapshot_meter *meter = &snapshot->meters[i];
        const struct bill *bills = is_unowned ? meter->unowned_bill : &meter->bill;
        int count =
            exposition_bill_is_known(snapshot, kind, meter) ? is_unowned ? UNOWNED_COUNT : 1 : 0;

        for (int owner = 0; owner < count; owner++) {
            text_sample(text);
            exposition_meter_labels(text, meter);
            if (is_unowned)
                text_label(text, "owner", unowned_words[owner]);
            exposition_bill_value(text, snapshot, kind, &bills[owner]);
        }
    }
}

static void bill_families(struct text *text, const struct snapshot *snapshot)
{
    const struct price_cost *cost = &snapshot->price.cost;

    bill_family(text, snapshot, BILL_EMISSIONS, METRIC_METER_EMISSIONS, false);
    bill_family(text, snapshot, BILL_EMISSIONS, METRIC_UNOWNED_EMISSIONS, true);
    bill_family(text, snapshot, BILL_EMBODIED, METRIC_METER_EMBODIED, false);
    bill_family(text, snapshot, BILL_EMBODIED, METRIC_UNOWNED_EMBODIED, true);
    if (cost->known && snapshot->meter_count > 0) {
        text_family(text, METRIC_PRICE);
        text_row(text, (int64_t)cost->micro_per_kwh, MICRO, "currency", cost->currency);
    }
    bill_family(text, snapshot, BILL_COST, METRIC_METER_COST, false);
    bill_family(text, snapshot, BILL_COST, METRIC_UNOWNED_COST, true);
}

/* Families that show one gauge each. */
static const struct {
    enum gpu_gauge gauge;
    int64_t scale;
    unsigned digits;
} gpu_gauges[] = {
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

static void program_memory(struct text *text, const struct snapshot_gpu *gpu, enum metric metric)
{
    const uint64_t values[] = {gpu->programs_known, gpu->processes_recalled,
                               gpu->processes_suspended};

    if (gpu->has_program_memory)
        gpu_row(text, gpu, NULL, NULL, values[metric - METRIC_PROGRAM_MEMORY_KNOWN]);
}

static void gpu_instance_info(struct text *text, const struct snapshot_gpu *gpu)
{
    for (size_t i = 0; i < gpu->mig_device_count; i++) {
        const struct snapshot_mig_device *device = &gpu->mig_devices[i];

        text_sample(text);
        text_label_u64(text, "gpu", gpu->gpu);
        text_label_u64(text, "gpu_instance", device->gpu_instance);
        text_label_u64(text, "compute_instance", device->compute_instance);
        text_label(text, "profile", device->profile);
        text_label(text, "uuid", device->uuid);
        text_value(text, 1, WHOLE);
    }
}

static void gpu_sharing(struct text *text, const struct snapshot_gpu *gpu)
{
    for (size_t m = 0; m < GPU_SHARING_MODES; m++)
        gpu_row(text, gpu, "mode", gpu_sharing_words[m], gpu->sharing == m);
}

/* The gauge of a GPU, and those of its instances. */
static void gpu_gauge_rows(struct text *text, const struct snapshot_gpu *gpu, enum metric metric)
{
    enum gpu_gauge gauge = gpu_gauges[metric].gauge;
    int64_t scale = gpu_gauges[metric].scale;

    if (has_gauge(gpu, gauge)) {
        text_sample(text);
        text_label_u64(text, "gpu", gpu->gpu);
        text_value(text, (int64_t)gpu->gauges[gauge] * scale, gpu_gauges[metric].digits);
    }
    for (size_t i = 0; i < gpu->instance_count; i++) {
        const struct snapshot_instance *instance = &gpu->instances[i];

        if (!(instance->valid >> gauge & 1))
            continue;
        text_sample(text);
        text_label_u64(text, "gpu", gpu->gpu);
        text_label_u64(text, "gpu_instance", instance->gpu_instance);
        text_label(text, "profile", instance->profile);
        text_value(text, (int64_t)instance->gauges[gauge] * scale, gpu_gauges[metric].digits);
    }
}

static void gpu_rows(struct text *text, const struct snapshot_gpu *gpu, enum metric metric)
{
    if (metric == METRIC_GPU_INFO) {
        gpu_info(text, gpu);
    } else if (metric == METRIC_GPU_INSTANCE_INFO) {
        gpu_instance_info(text, gpu);
    } else if (metric == METRIC_GPU_SHARING) {
        gpu_sharing(text, gpu);
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
    } else if (metric >= METRIC_PROGRAM_MEMORY_KNOWN) {
        program_memory(text, gpu, metric);
    } else if (metric >= METRIC_GPU_MEMORY_KNOWN) {
        gpu_memory(text, gpu, metric);
    } else {
        gpu_gauge_rows(text, gpu, metric);
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
                    container->container_id, "pod", container->pod, "namespace",
                    container->namespace);
        text_label_u64(text, "gpu", container->gpu);
        text_label(text, "method", container->inferred ? "inference" : "nvidia-smi");
        text_value(text, (int64_t)container->bytes, WHOLE);
    }
    text_family(text, METRIC_CONTAINER_GPU_DETECTED);
    for (size_t i = 0; i < snapshot->detected_count; i++)
        text_row(text, 1, WHOLE, "container_name", snapshot->detected[i].name, "container_id",
                 snapshot->detected[i].container_id, "pod", snapshot->detected[i].pod, "namespace",
                 snapshot->detected[i].namespace);
}

static void gpu_and_container_families(struct text *text, const struct snapshot *snapshot)
{
    gpu_families(text, snapshot, METRIC_GPU_INFO, METRIC_GPU_INFERENCE_ACTIVE);
    container_families(text, snapshot);
    gpu_families(text, snapshot, METRIC_GPU_THROTTLE, METRIC_PROGRAM_MEMORY_SUSPENDED);
}

static void source_families(struct text *text, const struct snapshot *snapshot)
{
    for (enum metric metric = METRIC_SOURCE_UP; metric <= METRIC_SOURCE_ERRORS; metric++) {
        text_family(text, metric);
        for (size_t i = 0; i < snapshot->source_count; i++) {
            const struct snapshot_source *source = &snapshot->sources[i];
            const uint64_t values[] = {source->up, source->age_us, source->duration_us,
                                       source->errors};
            bool is_time = metric == METRIC_SOURCE_AGE || metric == METRIC_SOURCE_DURATION;

            text_sample(text, "source", source->name);
            text_value(text, (int64_t)values[metric - METRIC_SOURCE_UP], is_time ? MICRO : WHOLE);
        }
    }
    meter_family(text, snapshot, METRIC_SOURCE_RESETS, offsetof(struct snapshot_meter, resets),
                 WHOLE);
    meter_family(text, snapshot, METRIC_METER_UNKNOWN_GAPS,
                 offsetof(struct snapshot_meter, unknown_gaps), WHOLE);
    if (snapshot->has_state)
        single_value(text, METRIC_STATE_UP, snapshot->state_is_up, WHOLE);
}

static void dropped_families(struct text *text, const struct snapshot *snapshot)
{
    static const char *const reasons[] = {"garbage", "repeated", "late"};

    text_family(text, METRIC_SAMPLES_DROPPED);
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        const struct snapshot_gpu *gpu = &snapshot->gpus[i];
        const uint64_t counts[] = {gpu->samples_garbage, gpu->samples_repeated, gpu->samples_late};

        for (size_t r = 0; r < ARRAY_SIZE(reasons); r++) {
            text_sample(text);
            text_label_u64(text, "gpu", gpu->gpu);
            text_label(text, "reason", reasons[r]);
            text_value(text, (int64_t)counts[r], WHOLE);
        }
    }
    text_family(text, METRIC_SERIES_DROPPED);
    text_row(text, (int64_t)snapshot->processes_dropped, WHOLE, "limit", "max-processes");
    text_row(text, (int64_t)snapshot->workloads_dropped, WHOLE, "limit", "max-workloads");
}

static void exporter_families(struct text *text, const struct snapshot *snapshot,
                              const struct exposition_options *options)
{
    if (options->pue_millionths > 0)
        single_value(text, METRIC_PUE, options->pue_millionths, MICRO);
    if (snapshot->processes_scanned) {
        single_value(text, METRIC_NODE_PROCESSES, snapshot->node_processes, WHOLE);
        single_value(text, METRIC_NODE_PROCESSES_OUTSIDE, snapshot->node_processes_outside, WHOLE);
        single_value(text, METRIC_NODE_JOB_GPUS_UNKNOWN, snapshot->node_job_gpus_unknown, WHOLE);
    }
    single_value(text, METRIC_REPLAY_ACTIVE, snapshot->replay_active, WHOLE);
    text_family(text, METRIC_CHILD_STARTS);
    for (size_t i = 0; i < snapshot->child_count; i++)
        text_row(text, (int64_t)snapshot->children[i].starts, WHOLE, "child",
                 snapshot->children[i].name);
    text_family(text, METRIC_CHILD_HANGS);
    for (size_t i = 0; i < snapshot->child_count; i++)
        text_row(text, (int64_t)snapshot->children[i].hangs, WHOLE, "child",
                 snapshot->children[i].name);
    single_value(text, METRIC_FRONT_STARTS,
                 snapshot->child_count > 0 ? snapshot->children[0].starts : 0, WHOLE);
    text_family(text, METRIC_BUILD_INFO);
    text_row(text, 1, WHOLE, "version", options->version);
    single_value(text, METRIC_SELF_CPU, snapshot->self_cpu_us, MICRO);
    if (snapshot->self_rss_bytes > 0)
        single_value(text, METRIC_SELF_MEMORY, snapshot->self_rss_bytes, WHOLE);
    single_value(text, METRIC_SELF_START_TIME, snapshot->start_us, MICRO);
}

static void book_families(struct text *text, const struct snapshot *snapshot,
                          const struct exposition_options *options)
{
    exposition_processes(text, snapshot, options);
    meter_families(text, snapshot);
    for (enum metric metric = METRIC_EMISSION_FACTOR; metric <= METRIC_EMISSION_PROVIDER_ERRORS;
         metric++)
        factor_family(text, snapshot, metric);
    bill_families(text, snapshot);
    exposition_workloads(text, snapshot, options->expose);
    gpu_and_container_families(text, snapshot);
    meter_family(text, snapshot, METRIC_LEDGER_IMBALANCE,
                 offsetof(struct snapshot_meter, imbalance_uj), MICRO);
    source_families(text, snapshot);
    dropped_families(text, snapshot);
    exporter_families(text, snapshot, options);
    compat_books(text, snapshot, options);
}

void exposition_render(const struct snapshot *snapshot, const struct exposition_options *options,
                       unsigned parts, struct buffer *out)
{
    struct text text;

    text_begin(&text, out, options->format, options->process_prefix);
    if (parts & EXPOSITION_BOOKS)
        book_families(&text, snapshot, options);
    if (parts & EXPOSITION_USAGE) {
        exposition_usage(&text, snapshot, options->expose);
        compat_usage(&text, snapshot, options);
    }
    if (parts & EXPOSITION_END)
        text_end(&text);
}
