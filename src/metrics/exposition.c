#include "metrics/exposition.h"

#include "metrics/confidence.h"

/* Decimal places between what the model counts in and the base unit. */
enum { MICRO = 6, MILLI = 3, PERCENT = 2, WHOLE = 0 };

static const char *const unowned_words[UNOWNED_COUNT] = {"idle", "system", "unattributed", "gap"};
static const char *const tier_words[TIER_COUNT] = {"active", "idle"};
static const char *const method_words[METHOD_COUNT] = {"measured", "shared", "inferred",
                                                       "modelled"};
static const char *const kind_words[] = {
    [WORKLOAD_PROCESS] = "process",
    [WORKLOAD_CGROUP] = "cgroup",
    [WORKLOAD_OTHER] = "other",
    [WORKLOAD_RETIRED] = "retired",
};

static void process_labels(struct text *text, const struct snapshot_process *process)
{
    /* Names that come with a pod or container are empty where there is none. */
    static const char *const later[] = {"pod", "namespace", "container", "pod_uid", "container_id"};

    text_sample(text);
    if (process->pid > 0)
        text_label_u64(text, "pid", process->pid);
    else
        text_label(text, "pid", "other");
    text_label_u64(text, "gpu", process->gpu);
    text_label(text, "process_name", process->name);
    for (size_t i = 0; i < ARRAY_SIZE(later); i++)
        text_label(text, later[i], "");
}

static uint64_t energy_of(const struct snapshot_process *process)
{
    return process->active_uj + process->idle_uj;
}

static void process_energy(struct text *text, const struct snapshot_process *process)
{
    process_labels(text, process);
    text_label(text, "energy_estimated", "false");
    text_value(text, (int64_t)process->measured_uj, MICRO);
    process_labels(text, process);
    text_label(text, "energy_estimated", "true");
    text_value(text, (int64_t)(energy_of(process) - process->measured_uj), MICRO);
}

static void process_energy_sum(struct text *text, const struct snapshot_process *process)
{
    process_labels(text, process);
    text_value(text, (int64_t)energy_of(process), MICRO);
}

/* A sum of percents over the samples that a process won, as a ratio over all samples. */
static void won_ratio(struct text *text, const struct snapshot_process *process,
                      uint64_t won_percent)
{
    if (!(process->valid & SNAPSHOT_PROCESS_UTILISATION))
        return;
    process_labels(text, process);
    text_value(text, process->samples ? (int64_t)(won_percent * 10000 / process->samples) : 0,
               MICRO);
}

static void process_sm(struct text *text, const struct snapshot_process *process)
{
    won_ratio(text, process, process->sm_won_percent);
}

static void process_memory_utilisation(struct text *text, const struct snapshot_process *process)
{
    won_ratio(text, process, process->memory_won_percent);
}

static void process_memory(struct text *text, const struct snapshot_process *process)
{
    if (!(process->valid & SNAPSHOT_PROCESS_MEMORY))
        return;
    process_labels(text, process);
    text_value(text, (int64_t)process->memory_bytes, WHOLE);
}

static void process_start(struct text *text, const struct snapshot_process *process)
{
    if (!(process->valid & SNAPSHOT_PROCESS_START))
        return;
    process_labels(text, process);
    text_value(text, (int64_t)process->start_us, MICRO);
}

static void process_active(struct text *text, const struct snapshot_process *process)
{
    if (process->pid == 0)
        return; /* many, in one row */
    process_labels(text, process);
    text_value(text, process->active, WHOLE);
}

static void processes(struct text *text, const struct snapshot *snapshot, enum metric metric,
                      void (*row)(struct text *, const struct snapshot_process *))
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->process_count; i++)
        if (!snapshot->processes[i].superseded)
            row(text, &snapshot->processes[i]);
}

static void compat_gpu_energy(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_COMPAT_GPU_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        if (snapshot->meters[i].replaced)
            continue;
        text_sample(text);
        text_label_u64(text, "gpu", snapshot->meters[i].gpu);
        text_value(text, (int64_t)snapshot->meters[i].energy_uj, MICRO);
    }
}

static void meter_labels(struct text *text, const struct snapshot_meter *meter)
{
    text_label(text, "meter", "gpu");
    text_label(text, "meter_id", meter->meter_id);
}

static void meters(struct text *text, const struct snapshot *snapshot)
{
    const struct snapshot_meter *rows = snapshot->meters;

    text_family(text, METRIC_METER_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        text_sample(text);
        meter_labels(text, &rows[i]);
        text_value(text, (int64_t)rows[i].energy_uj, MICRO);
    }
    text_family(text, METRIC_METER_HARDWARE_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        if (!rows[i].has_counter)
            continue;
        text_sample(text);
        meter_labels(text, &rows[i]);
        text_value(text, (int64_t)rows[i].counter_uj, MICRO);
    }
    text_family(text, METRIC_ENERGY_PENDING);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        text_sample(text);
        meter_labels(text, &rows[i]);
        text_value(text, (int64_t)rows[i].pending_uj, MICRO);
    }
    text_family(text, METRIC_UNOWNED_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        for (int owner = 0; owner < UNOWNED_COUNT; owner++) {
            text_sample(text);
            meter_labels(text, &rows[i]);
            text_label(text, "owner", unowned_words[owner]);
            text_value(text, (int64_t)rows[i].unowned_uj[owner], MICRO);
        }
}

static void workload_labels(struct text *text, const struct snapshot *snapshot,
                            const struct snapshot_workload *workload)
{
    static const char *const later[] = {"name", "namespace", "pod", "container"};

    text_sample(text);
    text_label(text, "kind", kind_words[workload->kind]);
    text_label(text, "id", workload->id);
    for (size_t i = 0; i < ARRAY_SIZE(later); i++)
        text_label(text, later[i], "");
    meter_labels(text, &snapshot->meters[workload->meter]);
}

/* Methods that a GPU meter always has start at 0, so that rate() sees their first joule. */
static bool is_shown(const struct account *account, int method)
{
    if (method == METHOD_MEASURED || method == METHOD_SHARED)
        return true;
    return account->energy_uj[TIER_ACTIVE][method] + account->energy_uj[TIER_IDLE][method] > 0;
}

static void workloads(struct text *text, const struct snapshot *snapshot)
{
    const struct snapshot_workload *rows = snapshot->workloads;

    text_family(text, METRIC_WORKLOAD_ENERGY);
    for (size_t i = 0; i < snapshot->workload_count; i++)
        for (int tier = 0; tier < TIER_COUNT; tier++)
            for (int method = 0; method < METHOD_COUNT; method++) {
                if (!is_shown(&rows[i].account, method))
                    continue;
                workload_labels(text, snapshot, &rows[i]);
                text_label(text, "tier", tier_words[tier]);
                text_label(text, "method", method_words[method]);
                text_value(text, (int64_t)rows[i].account.energy_uj[tier][method], MICRO);
            }
    text_family(text, METRIC_WORKLOAD_POWER);
    for (size_t i = 0; i < snapshot->workload_count; i++) {
        if (rows[i].power_mw < 0)
            continue;
        workload_labels(text, snapshot, &rows[i]);
        text_value(text, (int64_t)(rows[i].power_mw + 0.5), MILLI);
    }
    text_family(text, METRIC_WORKLOAD_CONFIDENCE);
    for (size_t i = 0; i < snapshot->workload_count; i++) {
        const struct account *account = &rows[i].account;
        uint64_t measured_uj = account->energy_uj[TIER_ACTIVE][METHOD_MEASURED] +
                               account->energy_uj[TIER_IDLE][METHOD_MEASURED];

        if (account_total_uj(account) == 0)
            continue;
        workload_labels(text, snapshot, &rows[i]);
        text_value(text, confidence_millionths(measured_uj, account_total_uj(account)), MICRO);
    }
}

static bool has_gauge(const struct snapshot_gpu *gpu, enum gpu_gauge gauge)
{
    return gpu->valid >> gauge & 1;
}

static void gpu_info(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_GPU_INFO);
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        text_sample(text);
        text_label_u64(text, "gpu", snapshot->gpus[i].gpu);
        text_label(text, "uuid", snapshot->gpus[i].uuid);
        text_label(text, "name", snapshot->gpus[i].name);
        text_label(text, "driver", snapshot->gpus[i].driver);
        text_value(text, 1, WHOLE);
    }
}

/* Gauges and device counters that are one number each. */
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
            text_sample(text);
            text_label_u64(text, "gpu", gpu->gpu);
            text_value(text, (int64_t)gpu->gauges[shown[g].gauge] * shown[g].scale,
                       shown[g].digits);
        }
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
    for (size_t i = 0; i < snapshot->gpu_count; i++)
        for (size_t r = 0; r < ARRAY_SIZE(reasons); r++) {
            const struct snapshot_gpu *gpu = &snapshot->gpus[i];

            if (!has_gauge(gpu, GPU_GAUGE_THROTTLE_MASK))
                continue;
            text_sample(text);
            text_label_u64(text, "gpu", gpu->gpu);
            text_label(text, "reason", reasons[r]);
            text_value(text, (int64_t)(gpu->gauges[GPU_GAUGE_THROTTLE_MASK] >> r & 1), WHOLE);
        }
}

static void gpu_errors(struct text *text, const struct snapshot *snapshot)
{
    static const struct {
        enum gpu_gauge gauge;
        const char *type;
    } ecc[] = {{GPU_GAUGE_ECC_CORRECTED, "corrected"}, {GPU_GAUGE_ECC_UNCORRECTED, "uncorrected"}};

    text_family(text, METRIC_GPU_ECC_ERRORS);
    for (size_t i = 0; i < snapshot->gpu_count; i++)
        for (size_t e = 0; e < ARRAY_SIZE(ecc); e++) {
            if (!has_gauge(&snapshot->gpus[i], ecc[e].gauge))
                continue;
            text_sample(text);
            text_label_u64(text, "gpu", snapshot->gpus[i].gpu);
            text_label(text, "type", ecc[e].type);
            text_value(text, (int64_t)snapshot->gpus[i].gauges[ecc[e].gauge], WHOLE);
        }
    text_family(text, METRIC_GPU_XID_ERRORS);
    for (size_t i = 0; i < snapshot->gpu_count; i++)
        for (size_t x = 0; x < SNAPSHOT_XIDS_MAX && snapshot->gpus[i].xids[x].xid > 0; x++) {
            text_sample(text);
            text_label_u64(text, "gpu", snapshot->gpus[i].gpu);
            text_label_u64(text, "xid", snapshot->gpus[i].xids[x].xid);
            text_value(text, (int64_t)snapshot->gpus[i].xids[x].count, WHOLE);
        }
}

static void ledger_health(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_LEDGER_IMBALANCE);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        text_sample(text);
        meter_labels(text, &snapshot->meters[i]);
        text_value(text, snapshot->meters[i].imbalance_uj, MICRO);
    }
}

static void source_family(struct text *text, const struct snapshot *snapshot, enum metric metric,
                          int64_t (*value)(const struct snapshot_source *), unsigned digits)
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->source_count; i++) {
        text_sample(text);
        text_label(text, "source", snapshot->sources[i].name);
        text_value(text, value(&snapshot->sources[i]), digits);
    }
}

static int64_t source_up(const struct snapshot_source *source)
{
    return source->up;
}

static int64_t source_age(const struct snapshot_source *source)
{
    return (int64_t)source->age_us;
}

static int64_t source_duration(const struct snapshot_source *source)
{
    return (int64_t)source->duration_us;
}

static int64_t source_errors(const struct snapshot_source *source)
{
    return (int64_t)source->errors;
}

static void sources(struct text *text, const struct snapshot *snapshot)
{
    source_family(text, snapshot, METRIC_SOURCE_UP, source_up, WHOLE);
    source_family(text, snapshot, METRIC_SOURCE_AGE, source_age, MICRO);
    source_family(text, snapshot, METRIC_SOURCE_DURATION, source_duration, MICRO);
    source_family(text, snapshot, METRIC_SOURCE_ERRORS, source_errors, WHOLE);
    text_family(text, METRIC_SOURCE_RESETS);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        text_sample(text);
        meter_labels(text, &snapshot->meters[i]);
        text_value(text, (int64_t)snapshot->meters[i].resets, WHOLE);
    }
}

static void dropped(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_SAMPLES_DROPPED);
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        const struct snapshot_gpu *gpu = &snapshot->gpus[i];
        const struct {
            const char *reason;
            uint64_t count;
        } reasons[] = {{"garbage", gpu->labels_garbage},
                       {"repeated", gpu->labels_repeated},
                       {"late", gpu->labels_late}};

        for (size_t r = 0; r < ARRAY_SIZE(reasons); r++) {
            text_sample(text);
            text_label_u64(text, "gpu", gpu->gpu);
            text_label(text, "reason", reasons[r].reason);
            text_value(text, (int64_t)reasons[r].count, WHOLE);
        }
    }
    text_family(text, METRIC_SERIES_DROPPED);
    text_sample(text);
    text_label(text, "limit", "max-processes");
    text_value(text, (int64_t)snapshot->processes_dropped, WHOLE);
    text_sample(text);
    text_label(text, "limit", "max-workloads");
    text_value(text, (int64_t)snapshot->workloads_dropped, WHOLE);
}

static void one_value(struct text *text, enum metric metric, uint64_t value, unsigned digits)
{
    text_family(text, metric);
    text_sample(text);
    text_value(text, (int64_t)value, digits);
}

static void self(struct text *text, const struct snapshot *snapshot, const char *version)
{
    one_value(text, METRIC_REPLAY_ACTIVE, snapshot->replay_active, WHOLE);
    one_value(text, METRIC_FRONT_STARTS, snapshot->front_starts, WHOLE);
    text_family(text, METRIC_BUILD_INFO);
    text_sample(text);
    text_label(text, "version", version);
    text_value(text, 1, WHOLE);
    one_value(text, METRIC_SELF_CPU, snapshot->self_cpu_us, MICRO);
    if (snapshot->self_rss_bytes > 0)
        one_value(text, METRIC_SELF_MEMORY, snapshot->self_rss_bytes, WHOLE);
    one_value(text, METRIC_SELF_START_TIME, snapshot->start_us, MICRO);
}

void exposition_render(const struct snapshot *snapshot, const struct exposition_options *options,
                       struct buffer *out)
{
    struct text text;

    text_begin(&text, out, options->format, options->process_prefix);
    processes(&text, snapshot, METRIC_PROCESS_ENERGY, process_energy);
    /* In OpenMetrics a counter's family has no _total: there this name is taken. */
    if (options->compat_my_gpu_exporter && options->format == TEXT_PROMETHEUS)
        processes(&text, snapshot, METRIC_PROCESS_ENERGY_SUM, process_energy_sum);
    processes(&text, snapshot, METRIC_PROCESS_SM_UTILIZATION, process_sm);
    processes(&text, snapshot, METRIC_PROCESS_MEMORY_UTILIZATION, process_memory_utilisation);
    processes(&text, snapshot, METRIC_PROCESS_MEMORY_USED, process_memory);
    processes(&text, snapshot, METRIC_PROCESS_START_TIME, process_start);
    processes(&text, snapshot, METRIC_PROCESS_ACTIVE, process_active);
    if (options->compat_my_gpu_exporter)
        compat_gpu_energy(&text, snapshot);
    meters(&text, snapshot);
    workloads(&text, snapshot);
    gpu_info(&text, snapshot);
    gpu_gauges(&text, snapshot);
    gpu_throttle(&text, snapshot);
    gpu_errors(&text, snapshot);
    ledger_health(&text, snapshot);
    sources(&text, snapshot);
    dropped(&text, snapshot);
    self(&text, snapshot, options->version);
    text_end(&text);
}
