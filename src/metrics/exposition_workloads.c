/* Who owns the joules. */
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

static void workload_labels(struct text *text, const struct snapshot *snapshot,
                            const struct snapshot_workload *workload)
{
    text_sample(text);
    exposition_workload_labels(text, workload->kind, workload->id, &workload->names);
    exposition_meter_labels(text, &snapshot->meters[workload->meter]);
}

/* Methods that a GPU meter always has start at 0, so that rate() sees their first joule. */
static bool is_shown(const struct account *account, int method)
{
    if (method == METHOD_MEASURED || method == METHOD_SHARED)
        return true;
    return account->energy_uj[TIER_ACTIVE][method] + account->energy_uj[TIER_IDLE][method] > 0;
}

static void workload_energy(struct text *text, const struct snapshot *snapshot,
                            const struct snapshot_workload *workload)
{
    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int method = 0; method < METHOD_COUNT; method++) {
            if (!is_shown(&workload->account, method))
                continue;
            workload_labels(text, snapshot, workload);
            text_label(text, "tier", tier_words[tier]);
            text_label(text, "method", method_words[method]);
            text_value(text, (int64_t)workload->account.energy_uj[tier][method], MICRO);
        }
}

static void workload_power(struct text *text, const struct snapshot *snapshot,
                           const struct snapshot_workload *workload)
{
    if (workload->power_mw < 0)
        return;
    workload_labels(text, snapshot, workload);
    text_value(text, (int64_t)(workload->power_mw + 0.5), MILLI);
}

static void workload_confidence(struct text *text, const struct snapshot *snapshot,
                                const struct snapshot_workload *workload)
{
    const struct account *account = &workload->account;

    if (account_total_uj(account) == 0)
        return;
    workload_labels(text, snapshot, workload);
    text_value(text, confidence_millionths(account->known_uj, account_total_uj(account)), MICRO);
}

static void workload_books(struct text *text, const struct snapshot *snapshot, enum expose expose)
{
    static const struct {
        enum metric metric;
        void (*row)(struct text *, const struct snapshot *, const struct snapshot_workload *);
    } families[] = {
        {METRIC_WORKLOAD_ENERGY, workload_energy},
        {METRIC_WORKLOAD_POWER, workload_power},
        {METRIC_WORKLOAD_CONFIDENCE, workload_confidence},
    };

    for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
        text_family(text, families[f].metric);
        for (size_t i = 0; i < snapshot->workload_count; i++)
            if (exposition_shows(expose, snapshot->workloads[i].kind))
                families[f].row(text, snapshot, &snapshot->workloads[i]);
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
