/* Processes and workloads: their energy, and what workloads use beside GPUs. */
#include <stdlib.h>

#include "core/macros.h"
#include "metrics/exposition_private.h"

static void process_row(struct text *text, const struct snapshot_process *process,
                        enum metric metric, bool is_estimated)
{
    uint64_t energy_uj = process->active_uj + process->idle_uj, measured_uj = process->measured_uj;
    uint64_t samples = MAX(process->samples, (uint64_t)1);
    const struct {
        bool is_shown;
        uint64_t value;
        unsigned digits;
    } values[] = {
        [METRIC_PROCESS_ENERGY] = {!process->is_unread,
                                   is_estimated ? energy_uj - measured_uj : measured_uj, MICRO},
        [METRIC_PROCESS_ENERGY_SUM] = {!process->is_unread, energy_uj, MICRO},
        [METRIC_PROCESS_CONFIDENCE] = {energy_uj > 0,
                                       confidence_millionths(process->known_uj, energy_uj), MICRO},
        /* A sum of percents over the samples that it won, as a ratio over all samples. */
        [METRIC_PROCESS_SM_UTILIZATION] = {process->valid & SNAPSHOT_PROCESS_UTILISATION,
                                           process->sm_won_percent * 10000 / samples, MICRO},
        [METRIC_PROCESS_MEMORY_UTILIZATION] = {process->valid & SNAPSHOT_PROCESS_UTILISATION,
                                               process->memory_won_percent * 10000 / samples,
                                               MICRO},
        [METRIC_PROCESS_MEMORY_USED] = {process->valid & SNAPSHOT_PROCESS_MEMORY,
                                        process->memory_bytes, WHOLE},
        [METRIC_PROCESS_START_TIME] = {process->valid & SNAPSHOT_PROCESS_START, process->start_us,
                                       MICRO},
        [METRIC_PROCESS_ACTIVE] = {process->pid > 0, process->active, WHOLE},
    };

    if (!values[metric].is_shown)
        return;
    text_sample(text);
    if (process->pid > 0)
        text_label_u64(text, "pid", process->pid);
    else
        text_label(text, "pid", "other");
    text_label_u64(text, "gpu", process->gpu);
    text_label(text, "process_name", process->name);
    text_label(text, "pod", process->names.pod);
    text_label(text, "namespace", process->names.namespace);
    text_label(text, "container", process->names.container);
    text_label(text, "pod_uid", process->pod_uid);
    text_label(text, "container_id", process->container_id);
    if (metric == METRIC_PROCESS_ENERGY)
        text_label(text, "energy_estimated", is_estimated ? "true" : "false");
    text_value(text, (int64_t)values[metric].value, values[metric].digits);
}

static void process_family(struct text *text, const struct snapshot *snapshot, enum metric metric)
{
    text_family(text, metric);
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct snapshot_process *process = &snapshot->processes[i];

        if (process->superseded || process->hidden)
            continue;
        process_row(text, process, metric, false);
        if (metric == METRIC_PROCESS_ENERGY)
            process_row(text, process, metric, true);
    }
}

void exposition_processes(struct text *text, const struct snapshot *snapshot,
                          const struct exposition_options *options)
{
    bool is_compat = options->compat & COMPAT_MY_GPU_EXPORTER;

    for (enum metric metric = METRIC_PROCESS_ENERGY; metric <= METRIC_PROCESS_ACTIVE; metric++) {
        /* In OpenMetrics a counter's family has no _total: there the name of the sum is taken. */
        bool is_wanted =
            metric != METRIC_PROCESS_ENERGY_SUM || (is_compat && options->format == PAGE_TEXT);

        if (options->expose == EXPOSE_ALL && is_wanted)
            process_family(text, snapshot, metric);
    }
    text_family(text, METRIC_COMPAT_GPU_ENERGY);
    for (size_t i = 0; is_compat && i < snapshot->meter_count; i++) {
        const struct snapshot_meter *meter = &snapshot->meters[i];

        if (meter->kind != METER_GPU || meter->replaced || meter->is_unread)
            continue;
        text_sample(text);
        text_label_u64(text, "gpu", meter->gpu);
        text_value(text, (int64_t)meter->energy_uj, MICRO);
    }
}

static void workload_labels(struct text *text, enum workload_kind kind, const char *id,
                            const struct workload_names *names)
{
    text_label(text, "kind", workload_words[kind]);
    text_label(text, "id", id);
    text_label(text, "name", names->name);
    text_label(text, "namespace", names->namespace);
    text_label(text, "pod", names->pod);
    text_label(text, "container", names->container);
}

/* Rows that have the same labels in all families, which are escaped only once. */
struct rows {
    struct text *text;
    const struct snapshot *snapshot;
    struct text_labels *labels; /* of each row, once written */
};

/* Begins a sample; `meter` may be NULL. */
static void begin_row(const struct rows *rows, size_t index, enum workload_kind kind,
                      const char *id, const struct workload_names *names,
                      const struct snapshot_meter *meter)
{
    struct text_labels *labels = &rows->labels[index];

    text_sample(rows->text);
    if (labels->len > 0) {
        text_repeat_labels(rows->text, *labels);
        return;
    }
    workload_labels(rows->text, kind, id, names);
    if (meter)
        exposition_meter_labels(rows->text, meter);
    *labels = text_labels_so_far(rows->text);
}

static const struct snapshot_meter *meter_of(const struct rows *rows,
                                             const struct snapshot_workload *workload)
{
    return &rows->snapshot->meters[workload->meter];
}

static void begin_workload(const struct rows *rows, const struct snapshot_workload *workload)
{
    begin_row(rows, (size_t)(workload - rows->snapshot->workloads), workload->kind, workload->id,
              &workload->names, meter_of(rows, workload));
}

static bool is_shown(const struct snapshot_meter *meter, const struct account *account, int tier,
                     int method)
{
    if (account->energy_uj[tier][method] > 0)
        return true;
    /* The usual rows of a meter start at 0, so that rate() sees their first joule. */
    if (meter->kind == METER_GPU)
        return method == METHOD_MEASURED || method == METHOD_SHARED ||
               account->energy_uj[!tier][method] > 0;
    return (tier == TIER_ACTIVE || meter->kind == METER_NODE_OVERHEAD) &&
           method == (meter->modelled ? METHOD_MODELLED : METHOD_SHARED);
}

static void workload_energy(const struct rows *rows, const struct snapshot_workload *workload)
{
    static const char *const tiers[TIER_COUNT] = {"active", "idle"};
    static const char *const methods[METHOD_COUNT] = {"measured", "shared", "inferred", "modelled"};

    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int method = 0; method < METHOD_COUNT; method++) {
            if (!is_shown(meter_of(rows, workload), &workload->account, tier, method))
                continue;
            begin_workload(rows, workload);
            text_label(rows->text, "tier", tiers[tier]);
            text_label(rows->text, "method", methods[method]);
            text_value(rows->text, (int64_t)workload->account.energy_uj[tier][method], MICRO);
        }
}

static void workload_row(const struct rows *rows, const struct snapshot_workload *workload,
                         enum metric metric)
{
    const struct account *account = &workload->account;
    uint64_t energy_uj = account_total_uj(account);
    const struct snapshot_meter *meter = meter_of(rows, workload);
    enum bill_kind kind = metric - METRIC_WORKLOAD_EMISSIONS;

    if (meter->is_unread)
        return;
    if (metric == METRIC_WORKLOAD_ENERGY) {
        workload_energy(rows, workload);
    } else if (metric == METRIC_WORKLOAD_POWER && workload->power_mw >= 0) {
        begin_workload(rows, workload);
        text_value(rows->text, (int64_t)(workload->power_mw + 0.5), MILLI);
    } else if (metric == METRIC_WORKLOAD_CONFIDENCE && energy_uj > 0) {
        begin_workload(rows, workload);
        text_value(rows->text, confidence_millionths(account->known_uj, energy_uj), MICRO);
    } else if (metric == METRIC_WORKLOAD_UNCERTAINTY && meter->has_uncertainty) {
        begin_workload(rows, workload);
        text_value(rows->text, (int64_t)account->uncertain_uj, MICRO);
    } else if (metric >= METRIC_WORKLOAD_EMISSIONS &&
               exposition_bill_is_known(rows->snapshot, kind, meter)) {
        begin_workload(rows, workload);
        exposition_bill_value(rows->text, rows->snapshot, kind, &account->bill);
    }
}

static void workload_info(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    text_family(text, METRIC_WORKLOAD_INFO);
    for (size_t i = 0; i < snapshot->info_count; i++) {
        const struct snapshot_info *info = &snapshot->infos[i];

        if (!expose_has(expose, info->kind))
            continue;
        text_row(text, 1, WHOLE, "kind", workload_words[info->kind], "id", info->id, "node",
                 snapshot->node, "namespace", info->namespace, "pod", info->pod, "container",
                 info->container, "image", info->image, "user", info->user, "account",
                 info->account, "job_id", info->job_id, "job_name", info->job_name, "uuid",
                 info->uuid, "pod_uid", info->pod_uid, "container_id", info->container_id,
                 "unverified", info->unverified);
    }
}

static void workload_allocations(struct text *text, const struct snapshot *snapshot,
                                 enum expose expose)
{
    text_family(text, METRIC_WORKLOAD_GPU_ALLOCATED);
    for (size_t i = 0; i < snapshot->allocation_count; i++) {
        const struct snapshot_allocation *allocation = &snapshot->allocations[i];

        if (!expose_has(expose, allocation->kind))
            continue;
        text_sample(text);
        workload_labels(text, allocation->kind, allocation->id, &allocation->names);
        text_label_u64(text, "gpu", allocation->gpu);
        text_label(text, "uuid", allocation->uuid);
        if (allocation->has_instance)
            text_label_u64(text, "gpu_instance", allocation->gpu_instance);
        else
            text_label(text, "gpu_instance", "");
        text_label(text, "source", allocation_source_words[allocation->source]);
        text_label(text, "unverified", allocation->is_unverified ? "gpu" : "");
        text_value(text, 1, WHOLE);
    }
}

void exposition_workloads(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    _cleanup_free_ struct text_labels *labels =
        calloc(snapshot->workload_count + 1, sizeof(*labels));
    const struct rows rows = {text, snapshot, labels};

    if (!labels) {
        buffer_fail(text->out);
        return;
    }
    for (enum metric metric = METRIC_WORKLOAD_ENERGY; metric <= METRIC_WORKLOAD_COST; metric++) {
        text_family(text, metric);
        for (size_t i = 0; i < snapshot->workload_count; i++)
            if (expose_has(expose, snapshot->workloads[i].kind))
                workload_row(&rows, &snapshot->workloads[i], metric);
    }
    workload_info(text, snapshot, expose);
    workload_allocations(text, snapshot, expose);
}

/* A field of the usage, and the labels that tell it apart within its family. */
static const struct {
    enum metric metric;
    enum usage_field field;
    unsigned digits;
    const char *labels[4]; /* pairs */
} usage_families[] = {
    {METRIC_WORKLOAD_CPU, USAGE_CPU_USER_US, MICRO, {"mode", "user"}},
    {METRIC_WORKLOAD_CPU, USAGE_CPU_SYSTEM_US, MICRO, {"mode", "system"}},
    {METRIC_WORKLOAD_CPU_PERIODS, USAGE_CPU_PERIODS, WHOLE, {0}},
    {METRIC_WORKLOAD_CPU_THROTTLED_PERIODS, USAGE_CPU_THROTTLED_PERIODS, WHOLE, {0}},
    {METRIC_WORKLOAD_CPU_THROTTLED, USAGE_CPU_THROTTLED_US, MICRO, {0}},
    {METRIC_WORKLOAD_CPUS, USAGE_CPUS_THOUSANDTHS, MILLI, {0}},
    {METRIC_WORKLOAD_MEMORY_RSS, USAGE_MEMORY_RSS_BYTES, WHOLE, {0}},
    {METRIC_WORKLOAD_MEMORY_CACHE, USAGE_MEMORY_CACHE_BYTES, WHOLE, {0}},
    {METRIC_WORKLOAD_MEMORY_USED, USAGE_MEMORY_USED_BYTES, WHOLE, {0}},
    {METRIC_WORKLOAD_MEMORY_SWAP, USAGE_MEMORY_SWAP_BYTES, WHOLE, {0}},
    {METRIC_WORKLOAD_MEMORY_LIMIT, USAGE_MEMORY_LIMIT_BYTES, WHOLE, {0}},
    {METRIC_WORKLOAD_MEMORY_FAILURES, USAGE_MEMORY_FAILURES, WHOLE, {0}},
    {METRIC_WORKLOAD_MEMORY_OOM_KILLS, USAGE_MEMORY_OOM_KILLS, WHOLE, {0}},
    {METRIC_WORKLOAD_PRESSURE, USAGE_CPU_SOME_US, MICRO, {"resource", "cpu", "stall", "some"}},
    {METRIC_WORKLOAD_PRESSURE, USAGE_CPU_FULL_US, MICRO, {"resource", "cpu", "stall", "full"}},
    {METRIC_WORKLOAD_PRESSURE,
     USAGE_MEMORY_SOME_US,
     MICRO,
     {"resource", "memory", "stall", "some"}},
    {METRIC_WORKLOAD_PRESSURE,
     USAGE_MEMORY_FULL_US,
     MICRO,
     {"resource", "memory", "stall", "full"}},
    {METRIC_WORKLOAD_PRESSURE, USAGE_IO_SOME_US, MICRO, {"resource", "io", "stall", "some"}},
    {METRIC_WORKLOAD_PRESSURE, USAGE_IO_FULL_US, MICRO, {"resource", "io", "stall", "full"}},
    {METRIC_WORKLOAD_PIDS, USAGE_PIDS, WHOLE, {0}},
};

static void begin_usage(const struct rows *rows, const struct snapshot_usage *row)
{
    begin_row(rows, (size_t)(row - rows->snapshot->usages), row->kind, row->id, &row->names, NULL);
}

static void usage_field(const struct rows *rows, const struct snapshot_usage *row, size_t which)
{
    if (!usage_has(&row->usage, usage_families[which].field))
        return;
    begin_usage(rows, row);
    for (size_t i = 0; i < 4 && usage_families[which].labels[i]; i += 2)
        text_label(rows->text, usage_families[which].labels[i],
                   usage_families[which].labels[i + 1]);
    text_value(rows->text, (int64_t)row->usage.values[usage_families[which].field],
               usage_families[which].digits);
}

static void usage_working_set(const struct rows *rows, const struct snapshot_usage *row)
{
    uint64_t used = row->usage.values[USAGE_MEMORY_USED_BYTES];
    uint64_t inactive = row->usage.values[USAGE_MEMORY_INACTIVE_FILE_BYTES];

    if (!usage_has(&row->usage, USAGE_MEMORY_USED_BYTES) ||
        !usage_has(&row->usage, USAGE_MEMORY_INACTIVE_FILE_BYTES))
        return;
    begin_usage(rows, row);
    text_value(rows->text, (int64_t)(used - MIN(used, inactive)), WHOLE);
}

static void device_row(const struct rows *rows, const struct snapshot_usage *row,
                       const char *device, uint64_t value)
{
    begin_usage(rows, row);
    text_label(rows->text, "device", device);
    text_value(rows->text, (int64_t)value, WHOLE);
}

static void usage_row(const struct rows *rows, const struct snapshot_usage *row, enum metric metric)
{
    const struct usage *usage = &row->usage;
    unsigned io_field = metric - METRIC_WORKLOAD_IO_READ;

    if (metric == METRIC_WORKLOAD_MEMORY_WORKING_SET) {
        usage_working_set(rows, row);
    } else if (metric == METRIC_WORKLOAD_HUGETLB) {
        for (size_t i = 0; i < usage->hugetlb_count; i++) {
            begin_usage(rows, row);
            text_label_u64(rows->text, "page_bytes", usage->hugetlb[i].page_bytes);
            text_value(rows->text, (int64_t)usage->hugetlb[i].used_bytes, WHOLE);
        }
    } else if (metric == METRIC_WORKLOAD_RDMA_HANDLES) {
        for (size_t i = 0; i < usage->rdma_count; i++)
            if (usage->rdma[i].has_handles)
                device_row(rows, row, usage->rdma[i].device, usage->rdma[i].handles);
    } else if (metric == METRIC_WORKLOAD_RDMA_OBJECTS) {
        for (size_t i = 0; i < usage->rdma_count; i++)
            if (usage->rdma[i].has_objects)
                device_row(rows, row, usage->rdma[i].device, usage->rdma[i].objects);
    } else {
        for (size_t i = 0; i < usage->io_count; i++)
            if (usage->io[i].valid & 1U << io_field)
                device_row(rows, row, usage->io[i].device, usage->io[i].values[io_field]);
    }
}

void exposition_usage(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    _cleanup_free_ struct text_labels *labels = calloc(snapshot->usage_count + 1, sizeof(*labels));
    const struct rows rows = {text, snapshot, labels};

    if (!labels) {
        buffer_fail(text->out);
        return;
    }
    for (size_t f = 0; f < ARRAY_SIZE(usage_families); f++) {
        if (f == 0 || usage_families[f].metric != usage_families[f - 1].metric)
            text_family(text, usage_families[f].metric);
        for (size_t i = 0; i < snapshot->usage_count; i++)
            if (expose_has(expose, snapshot->usages[i].kind))
                usage_field(&rows, &snapshot->usages[i], f);
    }
    for (enum metric metric = METRIC_WORKLOAD_MEMORY_WORKING_SET; metric <= METRIC_WORKLOAD_HUGETLB;
         metric++) {
        text_family(text, metric);
        for (size_t i = 0; i < snapshot->usage_count; i++)
            if (expose_has(expose, snapshot->usages[i].kind))
                usage_row(&rows, &snapshot->usages[i], metric);
    }
}
