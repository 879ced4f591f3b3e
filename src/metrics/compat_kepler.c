/*
 * The names of Kepler. Of workloads it shows active energy alone, without a GPU and with the zones
 * of RAPL: what a workload is charged for idle devices is not in these rows.
 */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "metrics/compat.h"

/* The zones are named as our meters are. */
static bool is_zone(enum meter_kind kind)
{
    return kind == METER_PACKAGE || kind == METER_DRAM || kind == METER_CORE ||
           kind == METER_UNCORE || kind == METER_PSYS;
}

/* A row for each socket, as a sum of them would go back when one is not read. */
static void node_cpus(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_KEPLER_NODE_CPU_ENERGY);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        const struct snapshot_meter *meter = &snapshot->meters[i];

        if (is_zone(meter->kind) && meter->has_counter && !meter->modelled)
            text_row(text, (int64_t)meter->counter_uj, MICRO, "zone", meter_words[meter->kind],
                     "path", meter->meter_id, "node_name", snapshot->node);
    }
    for (size_t i = 0; i < snapshot->observed_count; i++)
        if (is_zone(snapshot->observed[i].kind))
            text_row(text, (int64_t)snapshot->observed[i].counter_uj, MICRO, "zone",
                     meter_words[snapshot->observed[i].kind], "path", snapshot->observed[i].id,
                     "node_name", snapshot->node);
    text_family(text, METRIC_KEPLER_NODE_CPU_POWER);
    for (size_t i = 0; i < snapshot->meter_count; i++) {
        const struct snapshot_meter *meter = &snapshot->meters[i];

        if (is_zone(meter->kind) && !meter->modelled && meter->measured_mw >= 0)
            text_row(text, (int64_t)(meter->measured_mw + 0.5), MILLI, "zone",
                     meter_words[meter->kind], "path", meter->meter_id, "node_name",
                     snapshot->node);
    }
}

static void begin_gpu(struct text *text, const struct snapshot *snapshot,
                      const struct snapshot_gpu *gpu)
{
    text_sample(text);
    text_label_u64(text, "gpu", gpu->gpu);
    text_label(text, "gpu_uuid", gpu->uuid);
    text_label(text, "gpu_name", gpu->name);
    text_label(text, "node_name", snapshot->node);
}

static void node_gpus(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_KEPLER_NODE_GPU_ENERGY);
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        const struct snapshot_meter *meter = compat_gpu_counter(snapshot, &snapshot->gpus[i]);

        if (!meter)
            continue;
        begin_gpu(text, snapshot, &snapshot->gpus[i]);
        text_value(text, (int64_t)meter->counter_uj, MICRO);
    }
    text_family(text, METRIC_KEPLER_NODE_GPU_POWER);
    for (size_t i = 0; i < snapshot->gpu_count; i++)
        if (snapshot->gpus[i].valid >> GPU_GAUGE_POWER_MW & 1) {
            begin_gpu(text, snapshot, &snapshot->gpus[i]);
            text_value(text, (int64_t)snapshot->gpus[i].gauges[GPU_GAUGE_POWER_MW], MILLI);
        }
}

/* From here on: workloads. We have a row for each container and meter, Kepler one for each unit and
 * zone. The containers of a pod are added up in gauges only: a counter that is their sum would go
 * back when one of them retires, and increase() would count its joules again. */

enum unit { UNIT_CONTAINER, UNIT_POD, UNIT_POD_CONTAINER, UNIT_VM };

struct sum {
    const char *key;
    enum meter_kind meter;
    const struct snapshot_workload *workload; /* any of those that are added up */
    uint64_t active_uj;
    double power_mw;
    bool has_power;
};

/* What tells its units apart; NULL: it is none of this kind. */
static const char *find_key(const struct snapshot_workload *workload, enum unit unit)
{
    const char *key = NULL;

    if (unit == UNIT_VM)
        key = workload->kind == WORKLOAD_VM ? workload->id : NULL;
    else if (unit == UNIT_POD)
        key = workload->kind == WORKLOAD_POD ? workload->pod_uid : NULL;
    else if (workload->kind == WORKLOAD_POD ||
             (workload->kind == WORKLOAD_CONTAINER && unit == UNIT_CONTAINER))
        key = workload->container_id;
    return key && key[0] ? key : NULL;
}

static int compare_sums(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    int order = strcmp(x->key, y->key);

    return order != 0 ? order : (int)x->meter - (int)y->meter;
}

/* By unit and kind of meter. The number of them. */
static size_t add_up(const struct snapshot *snapshot, enum expose expose, enum unit unit,
                     struct sum *sums)
{
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < snapshot->workload_count; i++) {
        const struct snapshot_workload *workload = &snapshot->workloads[i];
        const struct snapshot_meter *meter = &snapshot->meters[workload->meter];
        const char *key = find_key(workload, unit);
        struct sum *sum = &sums[count];

        if (!key || !expose_has(expose, workload->kind) || meter->is_unread || meter->modelled ||
            !(is_zone(meter->kind) || meter->kind == METER_GPU))
            continue;
        *sum = (struct sum){.key = key,
                            .meter = meter->kind,
                            .workload = workload,
                            .power_mw = workload->power_mw,
                            .has_power = workload->power_mw >= 0};
        for (int method = 0; method < METHOD_COUNT; method++)
            sum->active_uj += workload->account.energy_uj[TIER_ACTIVE][method];
        count++;
    }
    if (count > 0)
        qsort(sums, count, sizeof(*sums), compare_sums);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || compare_sums(&sums[kept - 1], &sums[i]) != 0) {
            sums[kept++] = sums[i];
            continue;
        }
        sums[kept - 1].active_uj += sums[i].active_uj;
        sums[kept - 1].power_mw += sums[i].power_mw;
        sums[kept - 1].has_power &= sums[i].has_power;
    }
    return kept;
}

static void begin_unit(struct text *text, const struct snapshot *snapshot, enum unit unit,
                       const char *key, const struct workload_names *names, const char *pod_uid)
{
    text_sample(text);
    if (unit == UNIT_VM) {
        text_label(text, "vm_id", key);
        text_label(text, "vm_name", names->name);
    } else if (unit == UNIT_POD || unit == UNIT_POD_CONTAINER) {
        text_label(text, "pod_id", pod_uid);
        if (unit == UNIT_POD_CONTAINER)
            text_label(text, "container_id", key);
        text_label(text, "pod_name", names->pod);
        text_label(text, "pod_namespace", names->namespace);
    } else {
        text_label(text, "container_id", key);
        text_label(text, "container_name", names->container[0] ? names->container : names->name);
        text_label(text, "pod_id", pod_uid ? pod_uid : "");
    }
    text_label(text, "state", "running");
    text_label(text, "node_name", snapshot->node);
}

/* All units of a kind in one family. */
struct family {
    enum metric metric;
    enum unit unit;
    bool is_gpu, is_power;
};

static void unit_family(struct text *text, const struct snapshot *snapshot,
                        const struct family *family, const struct sum *sums, size_t count)
{
    text_family(text, family->metric);
    for (size_t i = 0; i < count; i++) {
        const struct sum *sum = &sums[i];

        if ((sum->meter == METER_GPU) != family->is_gpu || (family->is_power && !sum->has_power))
            continue;
        begin_unit(text, snapshot, family->unit, sum->key, &sum->workload->names,
                   sum->workload->pod_uid);
        if (!family->is_gpu)
            text_label(text, "zone", meter_words[sum->meter]);
        if (family->is_power)
            text_value(text, (int64_t)(sum->power_mw + 0.5), MILLI);
        else
            text_value(text, (int64_t)sum->active_uj, MICRO);
    }
}

void compat_kepler_books(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    static const struct family families[] = {
        {METRIC_KEPLER_CONTAINER_CPU_ENERGY, UNIT_CONTAINER, false, false},
        {METRIC_KEPLER_CONTAINER_CPU_POWER, UNIT_CONTAINER, false, true},
        {METRIC_KEPLER_CONTAINER_GPU_ENERGY, UNIT_CONTAINER, true, false},
        {METRIC_KEPLER_POD_CPU_ENERGY, UNIT_POD_CONTAINER, false, false},
        {METRIC_KEPLER_POD_CPU_POWER, UNIT_POD, false, true},
        {METRIC_KEPLER_POD_GPU_ENERGY, UNIT_POD_CONTAINER, true, false},
        {METRIC_KEPLER_VM_CPU_ENERGY, UNIT_VM, false, false},
        {METRIC_KEPLER_VM_CPU_POWER, UNIT_VM, false, true},
    };
    _cleanup_free_ struct sum *sums = calloc(snapshot->workload_count + 1, sizeof(*sums));
    size_t count = 0;

    if (!sums) {
        buffer_fail(text->out);
        return;
    }
    node_cpus(text, snapshot);
    node_gpus(text, snapshot);
    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        if (i == 0 || families[i].unit != families[i - 1].unit)
            count = add_up(snapshot, expose, families[i].unit, sums);
        unit_family(text, snapshot, &families[i], sums, count);
    }
}

void compat_kepler_usage(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    text_family(text, METRIC_KEPLER_CONTAINER_CPU_TIME);
    for (size_t i = 0; i < snapshot->usage_count; i++) {
        const struct snapshot_usage *row = &snapshot->usages[i];

        if ((row->kind != WORKLOAD_POD && row->kind != WORKLOAD_CONTAINER) || !row->container_id ||
            !row->container_id[0] || !expose_has(expose, row->kind) ||
            !usage_has(&row->usage, USAGE_CPU_US))
            continue;
        begin_unit(text, snapshot, UNIT_CONTAINER, row->container_id, &row->names, row->pod_uid);
        text_value(text, (int64_t)row->usage.values[USAGE_CPU_US], MICRO);
    }
}
