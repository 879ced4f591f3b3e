/*
 * The names of the CEEMS exporter. Its units are batch jobs and pods. The containers of a pod are
 * added up in gauges only, as in compat_kepler.c; its counters have a row for each.
 */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "metrics/compat.h"

/* Their word for what manages a kind of workload; NULL: they have none, or name it otherwise. */
static const char *manager_of(enum workload_kind kind)
{
    static const char *const managers[WORKLOAD_KINDS] = {
        [WORKLOAD_SLURM] = "slurm",
        [WORKLOAD_LSF] = "lsf",
        [WORKLOAD_PBS] = "openpbs",
        [WORKLOAD_POD] = "k8s",
    };

    return managers[kind];
}

static void rapl(struct text *text, const struct snapshot *snapshot)
{
    static const struct {
        enum meter_kind kind;
        enum metric metric;
    } zones[] = {
        {METER_PACKAGE, METRIC_CEEMS_PACKAGE_ENERGY}, {METER_DRAM, METRIC_CEEMS_DRAM_ENERGY},
        {METER_CORE, METRIC_CEEMS_CORE_ENERGY},       {METER_UNCORE, METRIC_CEEMS_UNCORE_ENERGY},
        {METER_PSYS, METRIC_CEEMS_PSYS_ENERGY},
    };

    for (size_t z = 0; z < ARRAY_SIZE(zones); z++) {
        text_family(text, zones[z].metric);
        for (size_t i = 0; i < snapshot->meter_count; i++) {
            const struct snapshot_meter *meter = &snapshot->meters[i];

            if (meter->kind == zones[z].kind && meter->has_counter && !meter->modelled)
                text_row(text, (int64_t)meter->counter_uj, MICRO, "hostname", snapshot->node,
                         "index", meter->meter_id);
        }
        for (size_t i = 0; i < snapshot->observed_count; i++)
            if (snapshot->observed[i].kind == zones[z].kind)
                text_row(text, (int64_t)snapshot->observed[i].counter_uj, MICRO, "hostname",
                         snapshot->node, "index", snapshot->observed[i].id);
    }
}

static void ipmi(struct text *text, const struct snapshot *snapshot)
{
    static const enum metric names[] = {METRIC_CEEMS_IPMI_POWER, METRIC_CEEMS_IPMI_POWER_NEW};

    for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
        text_family(text, names[n]);
        for (size_t i = 0; i < snapshot->node_power_count; i++)
            if (strcmp(snapshot->node_powers[i].source, "ipmi") == 0)
                text_row(text, (int64_t)snapshot->node_powers[i].power_mw, MILLI, "hostname",
                         snapshot->node);
    }
}

/* By their providers' words; ours is the other. */
static void emission_factors(struct text *text, const struct snapshot *snapshot)
{
    static const struct {
        const char *ours, *theirs;
    } providers[] = {
        {"owid", "owid"}, {"rte", "rte"}, {"electricity_maps", "emaps"}, {"watttime", "wt"}};

    text_family(text, METRIC_CEEMS_EMISSION_FACTOR);
    for (size_t i = 0; i < snapshot->factor_count; i++)
        for (size_t p = 0; p < ARRAY_SIZE(providers); p++) {
            const struct price_factor *factor = &snapshot->factors[i].factor;

            if (factor->known && strcmp(factor->provider, providers[p].ours) == 0)
                text_row(text, (int64_t)factor->ug_per_kwh, MICRO, "provider", providers[p].theirs,
                         "country_code", factor->zone);
        }
}

static void begin_unit(struct text *text, const struct snapshot *snapshot, enum workload_kind kind,
                       const char *uuid)
{
    text_sample(text, "manager", manager_of(kind), "hostname", snapshot->node, "uuid", uuid);
}

/* References, to be sorted. */
struct part {
    const struct snapshot_allocation *allocation;
};

struct details {
    enum workload_kind kind;
    const char *id, *pod_uid;
};

/* By the part of a GPU. */
static int compare_parts(const void *a, const void *b)
{
    const struct snapshot_allocation *x = ((const struct part *)a)->allocation;
    const struct snapshot_allocation *y = ((const struct part *)b)->allocation;
    int order = strcmp(x->uuid, y->uuid);

    if (order != 0 || x->has_instance != y->has_instance)
        return order != 0 ? order : (int)x->has_instance - (int)y->has_instance;
    if (!x->has_instance || x->gpu_instance == y->gpu_instance)
        return 0;
    return x->gpu_instance < y->gpu_instance ? -1 : 1;
}

static int compare_details(const void *a, const void *b)
{
    const struct details *x = a, *y = b;

    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->id, y->id);
}

/* A pod's uid is in its details. */
static const char *find_uuid(const struct details *details, size_t count,
                             const struct snapshot_allocation *allocation)
{
    const struct details wanted = {.kind = WORKLOAD_POD, .id = allocation->id}, *found = NULL;

    if (allocation->kind != WORKLOAD_POD)
        return allocation->id;
    if (count > 0)
        found = bsearch(&wanted, details, count, sizeof(*details), compare_details);
    return found && found->pod_uid ? found->pod_uid : "";
}

static void gpu_flag(struct text *text, const struct snapshot *snapshot,
                     const struct snapshot_allocation *allocation, const char *uuid, size_t owners)
{
    begin_unit(text, snapshot, allocation->kind, uuid);
    text_label_u64(text, "index", allocation->gpu);
    text_label(text, "gpuuuid", allocation->uuid);
    if (allocation->has_instance)
        text_label_u64(text, "gpuiid", allocation->gpu_instance);
    else
        text_label(text, "gpuiid", "");
    text_value(text, (int64_t)(1000000 / owners), MICRO);
}

/* The flag is 1, or the share of a device; equal ones, as of their virtual machines. */
static void gpu_flags(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    size_t count = snapshot->allocation_count, infos = snapshot->info_count;
    _cleanup_free_ struct part *parts = calloc(count + 1, sizeof(*parts));
    _cleanup_free_ struct details *details = calloc(infos + 1, sizeof(*details));

    if (!parts || !details) {
        buffer_fail(text->out);
        return;
    }
    for (size_t i = 0; i < count; i++)
        parts[i].allocation = &snapshot->allocations[i];
    for (size_t i = 0; i < infos; i++)
        details[i] = (struct details){snapshot->infos[i].kind, snapshot->infos[i].id,
                                      snapshot->infos[i].pod_uid};
    qsort(parts, count, sizeof(*parts), compare_parts);
    qsort(details, infos, sizeof(*details), compare_details);
    text_family(text, METRIC_CEEMS_GPU_FLAG);
    for (size_t i = 0, owners; i < count; i += owners) {
        for (owners = 1; i + owners < count; owners++)
            if (compare_parts(&parts[i], &parts[i + owners]) != 0)
                break;
        for (size_t k = i; k < i + owners; k++) {
            const struct snapshot_allocation *allocation = parts[k].allocation;
            const char *uuid = find_uuid(details, infos, allocation);

            if (manager_of(allocation->kind) && expose_has(expose, allocation->kind) && uuid[0])
                gpu_flag(text, snapshot, allocation, uuid, owners);
        }
    }
}

void compat_ceems_books(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    rapl(text, snapshot);
    ipmi(text, snapshot);
    emission_factors(text, snapshot);
    gpu_flags(text, snapshot, expose);
}

/* From here on: what units use. */

static const struct {
    enum metric metric;
    enum usage_field field;
    unsigned digits;
    bool is_of_jobs; /* not of pods: theirs has another meaning */
} families[] = {
    {METRIC_CEEMS_CPU_USER, USAGE_CPU_USER_US, MICRO, false},
    {METRIC_CEEMS_CPU_SYSTEM, USAGE_CPU_SYSTEM_US, MICRO, false},
    {METRIC_CEEMS_CPUS, USAGE_CPUS_THOUSANDTHS, MILLI, true},
    {METRIC_CEEMS_MEMORY_RSS, USAGE_MEMORY_RSS_BYTES, WHOLE, false},
    {METRIC_CEEMS_MEMORY_CACHE, USAGE_MEMORY_CACHE_BYTES, WHOLE, false},
    {METRIC_CEEMS_MEMORY_USED, USAGE_MEMORY_USED_BYTES, WHOLE, false},
    {METRIC_CEEMS_MEMORY_TOTAL, USAGE_MEMORY_LIMIT_BYTES, WHOLE, true},
    {METRIC_CEEMS_CPU_PRESSURE, USAGE_CPU_FULL_US, MICRO, true},
    {METRIC_CEEMS_MEMORY_PRESSURE, USAGE_MEMORY_FULL_US, MICRO, true},
};

/* A row of a unit: of a pod there are several, side by side once they are sorted. */
struct unit_row {
    enum workload_kind kind;
    const char *uuid, *container_id;
    const struct usage *usage;
};

static int compare_units(const void *a, const void *b)
{
    const struct unit_row *x = a, *y = b;

    return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->uuid, y->uuid);
}

static size_t sort_units(const struct snapshot *snapshot, enum expose expose, struct unit_row *rows)
{
    size_t count = 0;

    for (size_t i = 0; i < snapshot->usage_count; i++) {
        const struct snapshot_usage *from = &snapshot->usages[i];
        const char *uuid = from->kind == WORKLOAD_POD ? from->pod_uid : from->id;

        if (manager_of(from->kind) && uuid && uuid[0] && expose_has(expose, from->kind))
            rows[count++] = (struct unit_row){from->kind, uuid, from->container_id, &from->usage};
    }
    if (count > 0)
        qsort(rows, count, sizeof(*rows), compare_units);
    return count;
}

static size_t count_rows_of_unit(const struct unit_row *rows, size_t count)
{
    size_t same = 1;

    while (same < count && compare_units(&rows[0], &rows[same]) == 0)
        same++;
    return same;
}

static void unit_counts(struct text *text, const struct snapshot *snapshot,
                        const struct unit_row *rows, size_t count)
{
    uint64_t units[WORKLOAD_KINDS] = {0};
    size_t same;

    for (size_t i = 0; i < count; i += same) {
        bool is_alive = false;

        same = count_rows_of_unit(&rows[i], count - i);
        for (size_t k = i; k < i + same; k++) /* what has ended has counters only */
            is_alive |= (rows[k].usage->valid & ~USAGE_COUNTERS) != 0;
        units[rows[i].kind] += is_alive;
    }
    text_family(text, METRIC_CEEMS_UNITS);
    for (int kind = 0; kind < WORKLOAD_KINDS; kind++)
        if (units[kind] > 0)
            text_row(text, (int64_t)units[kind], WHOLE, "manager",
                     manager_of((enum workload_kind)kind), "hostname", snapshot->node);
}

static void unit_family(struct text *text, const struct snapshot *snapshot, size_t family,
                        const struct unit_row *rows, size_t count)
{
    bool is_counter = USAGE_COUNTERS & USAGE_BIT(families[family].field);
    size_t same;

    text_family(text, families[family].metric);
    for (size_t i = 0; i < count; i += same) {
        uint64_t sum = 0;
        bool has = false;

        same = is_counter ? 1 : count_rows_of_unit(&rows[i], count - i);
        for (size_t k = i; k < i + same; k++)
            if (usage_has(rows[k].usage, families[family].field)) {
                sum += rows[k].usage->values[families[family].field];
                has = true;
            }
        if (!has || (families[family].is_of_jobs && rows[i].kind == WORKLOAD_POD))
            continue;
        begin_unit(text, snapshot, rows[i].kind, rows[i].uuid);
        if (is_counter && rows[i].kind == WORKLOAD_POD)
            text_label(text, "container_id", rows[i].container_id);
        text_value(text, (int64_t)sum, families[family].digits);
    }
}

void compat_ceems_usage(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    _cleanup_free_ struct unit_row *rows = calloc(snapshot->usage_count + 1, sizeof(*rows));
    size_t count;

    if (!rows) {
        buffer_fail(text->out);
        return;
    }
    count = sort_units(snapshot, expose, rows);
    unit_counts(text, snapshot, rows, count);
    for (size_t family = 0; family < ARRAY_SIZE(families); family++)
        unit_family(text, snapshot, family, rows, count);
}
