/* Who owns the joules. */
#include <stdlib.h>

#include "metrics/confidence.h"
#include "metrics/exposition_parts.h"

static const char *const tier_words[TIER_COUNT] = {"active", "idle"};
static const char *const method_words[METHOD_COUNT] = {"measured", "shared", "inferred",
                                                       "modelled"};
bool exposition_shows(enum expose expose, enum workload_kind kind)
{
    return expose == EXPOSE_ALL || kind == WORKLOAD_POD ||
           (expose == EXPOSE_CONTAINERS && kind == WORKLOAD_CONTAINER);
}

void exposition_workload_labels(struct text *text, enum workload_kind kind, const char *id,
                                const struct workload_names *names)
{
    text_label(text, "kind", workload_words[kind]);
    text_label(text, "id", id);
    text_label(text, "name", names->name);
    text_label(text, "namespace", names->namespace);
    text_label(text, "pod", names->pod);
    text_label(text, "container", names->container);
}

/* The rows of one family after the other; a workload has the same labels in all of them. */
struct rows {
    struct text *text;
    const struct snapshot *snapshot;
    struct text_labels *labels; /* of each workload, once written; NULL: no memory */
};

static void write_labels(struct text *text, const struct snapshot *snapshot,
                         const struct snapshot_workload *workload)
{
    exposition_workload_labels(text, workload->kind, workload->id, &workload->names);
    exposition_meter_labels(text, &snapshot->meters[workload->meter]);
}

static void begin_row(const struct rows *rows, const struct snapshot_workload *workload)
{
    struct text_labels *labels =
        rows->labels ? &rows->labels[workload - rows->snapshot->workloads] : NULL;

    text_sample(rows->text);
    if (labels && labels->len > 0) {
        text_repeat_labels(rows->text, *labels);
        return;
    }
    write_labels(rows->text, rows->snapshot, workload);
    if (labels)
        *labels = text_labels_so_far(rows->text);
}

/* What a meter usually is booked as starts at 0, so that rate() sees its first joule. */
static bool is_usual(const struct snapshot_meter *meter, int tier, int method)
{
    if (meter->kind == METER_GPU)
        return method == METHOD_MEASURED || method == METHOD_SHARED;
    return (tier == TIER_ACTIVE || meter->kind == METER_REST) &&
           method == (meter->modelled ? METHOD_MODELLED : METHOD_SHARED);
}

static bool is_shown(const struct snapshot_meter *meter, const struct account *account, int tier,
                     int method)
{
    if (meter->kind == METER_GPU && /* both tiers of what is there at all */
        account->energy_uj[TIER_ACTIVE][method] + account->energy_uj[TIER_IDLE][method] > 0)
        return true;
    return is_usual(meter, tier, method) || account->energy_uj[tier][method] > 0;
}

static void workload_energy(const struct rows *rows, const struct snapshot_workload *workload)
{
    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int method = 0; method < METHOD_COUNT; method++) {
            if (!is_shown(&rows->snapshot->meters[workload->meter], &workload->account, tier,
                          method))
                continue;
            begin_row(rows, workload);
            text_label(rows->text, "tier", tier_words[tier]);
            text_label(rows->text, "method", method_words[method]);
            text_value(rows->text, (int64_t)workload->account.energy_uj[tier][method], MICRO);
        }
}

static void workload_power(const struct rows *rows, const struct snapshot_workload *workload)
{
    if (workload->power_mw < 0)
        return;
    begin_row(rows, workload);
    text_value(rows->text, (int64_t)(workload->power_mw + 0.5), MILLI);
}

static void workload_confidence(const struct rows *rows, const struct snapshot_workload *workload)
{
    const struct account *account = &workload->account;

    if (account_total_uj(account) == 0)
        return;
    begin_row(rows, workload);
    text_value(rows->text, confidence_millionths(account->known_uj, account_total_uj(account)),
               MICRO);
}

static void workload_emissions(const struct rows *rows, const struct snapshot_workload *workload)
{
    if (!rows->snapshot->price.factor.known)
        return;
    begin_row(rows, workload);
    exposition_bill_value(rows->text, workload->account.bill.emission);
}

static void workload_embodied(const struct rows *rows, const struct snapshot_workload *workload)
{
    enum meter_kind kind = rows->snapshot->meters[workload->meter].kind;
    struct embodied_rate rate = rows->snapshot->embodied.of[kind];

    if (!rate.known)
        return;
    begin_row(rows, workload);
    exposition_bill_value(rows->text, embodied_bill(rate, workload->account.device_us));
}

static void workload_cost(const struct rows *rows, const struct snapshot_workload *workload)
{
    const struct price_cost *cost = &rows->snapshot->price.cost;

    if (!cost->known)
        return;
    begin_row(rows, workload);
    text_label(rows->text, "currency", cost->currency);
    exposition_bill_value(rows->text, workload->account.bill.cost);
}

static void workload_books(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    static const struct {
        enum metric metric;
        void (*write)(const struct rows *rows, const struct snapshot_workload *workload);
    } families[] = {
        {METRIC_WORKLOAD_ENERGY, workload_energy},
        {METRIC_WORKLOAD_POWER, workload_power},
        {METRIC_WORKLOAD_CONFIDENCE, workload_confidence},
        {METRIC_WORKLOAD_EMISSIONS, workload_emissions},
        {METRIC_WORKLOAD_EMBODIED, workload_embodied},
        {METRIC_WORKLOAD_COST, workload_cost},
    };
    _cleanup_free_ struct text_labels *labels =
        calloc(MAX(snapshot->workload_count, (size_t)1), sizeof(*labels));
    const struct rows rows = {text, snapshot, labels};

    for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
        text_family(text, families[f].metric);
        for (size_t i = 0; i < snapshot->workload_count; i++)
            if (exposition_shows(expose, snapshot->workloads[i].kind))
                families[f].write(&rows, &snapshot->workloads[i]);
    }
}

static void workload_info(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    text_family(text, METRIC_WORKLOAD_INFO);
    for (size_t i = 0; i < snapshot->info_count; i++) {
        const struct snapshot_info *info = &snapshot->infos[i];

        if (!exposition_shows(expose, info->kind))
            continue;
        text_sample(text);
        text_label(text, "kind", workload_words[info->kind]);
        text_label(text, "id", info->id);
        text_label(text, "node", snapshot->node);
        text_label(text, "namespace", info->namespace);
        text_label(text, "pod", info->pod);
        text_label(text, "container", info->container);
        text_label(text, "image", info->image);
        text_label(text, "user", info->user);
        text_label(text, "account", info->account);
        text_label(text, "job_id", info->job_id);
        text_label(text, "job_name", info->job_name);
        text_label(text, "uuid", info->uuid);
        text_label(text, "pod_uid", info->pod_uid);
        text_label(text, "container_id", info->container_id);
        text_label(text, "unverified", info->unverified);
        text_value(text, 1, WHOLE);
    }
}

static void workload_allocated(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_WORKLOAD_GPU_ALLOCATED);
    for (size_t i = 0; i < snapshot->allocation_count; i++) {
        const struct snapshot_allocation *allocation = &snapshot->allocations[i];

        text_sample(text);
        exposition_workload_labels(text, WORKLOAD_POD, allocation->container_id,
                                   &allocation->names);
        text_label_u64(text, "gpu", allocation->gpu);
        text_value(text, 1, WHOLE);
    }
}

void exposition_workloads(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    workload_books(text, snapshot, expose);
    workload_info(text, snapshot, expose);
    workload_allocated(text, snapshot);
}
