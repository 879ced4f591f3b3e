/* Copies the books and gauges of a pipeline into an immutable snapshot. */
#include "attribution/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

/* A BMC is polled every 10 s, and may be late. */
static const uint64_t NODE_STALE_US = 60 * USEC_PER_SEC;

/* The rest of the node is booked once in five minutes, or not at all. */
static const uint64_t BOOKED_STALE_US = 300 * USEC_PER_SEC;

/* A snapshot being built. */
struct builder {
    const struct pipeline *pipeline;
    const struct ledger *ledger;
    struct snapshot *snapshot;
    uint64_t now_us, stale_us;
    bool out_of_memory; /* then the snapshot is not used: texts may be missing */
};

static const char *copy_text(struct builder *builder, const char *text)
{
    const char *copy =
        text && text[0] ? arena_copy(&builder->snapshot->arena, text, strlen(text)) : "";

    builder->out_of_memory |= !copy;
    return copy ? copy : "";
}

static struct workload_names copy_names(struct builder *builder, const struct workload_names *from)
{
    return (struct workload_names){
        .name = copy_text(builder, from->name),
        .namespace = copy_text(builder, from->namespace),
        .pod = copy_text(builder, from->pod),
        .container = copy_text(builder, from->container),
    };
}

/* NULL if out of memory. */
static void *new_rows(struct builder *builder, size_t count, size_t row_bytes)
{
    void *rows = arena_array(&builder->snapshot->arena, count, row_bytes);

    builder->out_of_memory |= !rows;
    return rows;
}

static bool is_fresh(const struct builder *builder, uint64_t read_us)
{
    return read_us + MAX(builder->stale_us, NODE_STALE_US) >= builder->now_us;
}

static const struct gpu *gpu_of_meter(const struct pipeline *pipeline, uint32_t meter)
{
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i] && pipeline->gpus[i]->meter == meter)
            return pipeline->gpus[i];
    return NULL;
}

/* The board of this meter is gone, and another one has its index. */
static bool is_replaced(const struct pipeline *pipeline, uint32_t meter)
{
    const struct ledger_meter *books = ledger_meter(pipeline->ledger, meter);

    return books->kind == METER_GPU && !gpu_of_meter(pipeline, meter) && pipeline->gpus[books->gpu];
}

/* Booked, but not shown until its names are fixed. */
static bool is_held(const struct pipeline *pipeline, const struct ledger_identity *identity)
{
    return pipeline->options.find_names && !identity->is_named;
}

/* Starts the power of a meter with that of its unowned energy. */
static void add_power(const struct builder *builder, uint32_t meter, struct snapshot_meter *to)
{
    const struct pipeline *pipeline = builder->pipeline;
    const struct measured *measured =
        meter < pipeline->measured_slots ? &pipeline->measured[meter] : NULL;

    to->power_mw = to->measured_mw = -1;
    if (measured && !measured->is_modelled &&
        !measured_is_silent(measured, to->kind, builder->now_us))
        to->measured_mw = measured_power_mw(measured);
    if (ledger_meter(builder->ledger, meter)->settled_until_us + BOOKED_STALE_US < builder->now_us)
        return;
    to->power_mw = 0;
    for (enum unowned owner = 0; owner < UNOWNED_COUNT; owner++) {
        to->unowned_mw[owner] = ledger_unowned_power_mw(builder->ledger, meter, owner);
        to->power_mw += to->unowned_mw[owner];
    }
}

/* Adjusts meters so that on every page a meter is the sum of its rows: what the system used is
 * unowned, and what is held back is not settled yet. */
static void fold_accounts(const struct pipeline *pipeline, struct snapshot_meter *meters)
{
    const struct ledger *ledger = pipeline->ledger;

    for (uint32_t i = 0; i < ledger_counts(ledger)->workload_slots; i++) {
        const struct ledger_workload *workload = ledger_workload(ledger, i);
        const struct ledger_account *at = NULL;

        while (workload && (at = ledger_next_account(ledger, workload, at))) {
            struct snapshot_meter *meter = &meters[at->meter];
            const struct account *account = &at->account;
            uint64_t energy_uj = account_total_uj(account);
            double power_mw = meter->power_mw >= 0 ? ledger_power_mw(ledger, at) : 0;

            if (workload->kind == WORKLOAD_SYSTEM || !is_held(pipeline, &workload->identity))
                meter->power_mw += power_mw;
            if (workload->kind == WORKLOAD_SYSTEM) {
                meter->unowned_uj[UNOWNED_SYSTEM] += energy_uj;
                meter->unowned_mw[UNOWNED_SYSTEM] += power_mw;
                bill_add(&meter->unowned_bill[UNOWNED_SYSTEM], &account->bill);
            } else if (is_held(pipeline, &workload->identity)) {
                meter->energy_uj -= energy_uj;
                meter->pending_uj += energy_uj;
                bill_subtract(&meter->bill, &account->bill);
            }
        }
    }
}

/* The estimator knows the error of every share at every GPU. CPU time and time shares have none. */
static bool has_uncertainty(const struct pipeline *pipeline, enum meter_kind kind)
{
    return kind == METER_GPU && pipeline->options.gpu.attribution == ATTRIBUTION_INTENSITY;
}

/* Nothing was counted or integrated, as on integrated GPUs, whose energy is in the package's. */
static bool is_unread(const struct pipeline *pipeline, uint32_t meter)
{
    const struct ledger_meter *books = ledger_meter(pipeline->ledger, meter);
    const struct gpu *gpu = gpu_of_meter(pipeline, meter);

    return books->kind == METER_GPU && books->energy_uj == 0 && !(gpu && gpu->counter_seen);
}

static void add_meters(struct builder *builder)
{
    size_t count = ledger_meter_count(builder->ledger);
    struct snapshot_meter *meters = new_rows(builder, count, sizeof(*meters));

    if (!meters)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const struct ledger_meter *from = ledger_meter(builder->ledger, i);
        const struct gpu *gpu = gpu_of_meter(builder->pipeline, i);
        const struct node_meter *node_meter = node_meter_of(&builder->pipeline->node, i);
        struct snapshot_meter *to = &meters[i];

        *to = (struct snapshot_meter){
            .kind = from->kind,
            .gpu = from->gpu,
            .meter_id = copy_text(builder, from->meter_id),
            .replaced = is_replaced(builder->pipeline, i),
            .is_unread = is_unread(builder->pipeline, i),
            .has_uncertainty = has_uncertainty(builder->pipeline, from->kind),
            .energy_uj = from->energy_uj,
            .bill = from->bill,
            .unknown_gaps = from->unknown_gaps,
            .settled_until_us = from->settled_until_us,
            .imbalance_uj = ledger_imbalance_uj(builder->ledger, i),
        };
        if (gpu) {
            to->has_counter = gpu->counter_seen;
            to->counter_uj = gpu->counter_uj;
            to->pending_uj = gpu_pending_uj(gpu);
            to->resets = gpu->resets;
        } else if (node_meter) {
            to->has_counter = !node_meter->modelled && is_fresh(builder, node_meter->read_us);
            to->counter_uj = node_meter->counter_uj;
            to->pending_uj = node_meter->pending_uj;
            to->resets = node_meter->breaks;
            to->modelled = node_meter->modelled;
        }
        memcpy(to->unowned_uj, from->unowned_uj, sizeof(to->unowned_uj));
        memcpy(to->unowned_bill, from->unowned_bill, sizeof(to->unowned_bill));
        add_power(builder, i, to);
    }
    fold_accounts(builder->pipeline, meters);
    builder->snapshot->meters = meters;
    builder->snapshot->meter_count = count;
}

/* Is it shown as that of another source, which is booked or came first? */
static bool is_duplicate(const struct builder *builder, size_t index)
{
    const struct node *node = &builder->pipeline->node;
    const struct node_meter *meter = &node->meters[index];

    for (size_t i = 0; i < node->meter_count; i++) {
        const struct node_meter *other = &node->meters[i];

        if (i != index && other->kind == meter->kind && strcmp(other->id, meter->id) == 0 &&
            (other->meter != LEDGER_NONE || (i < index && is_fresh(builder, other->read_us))))
            return true;
    }
    return false;
}

static void add_power_limits(struct builder *builder)
{
    const struct node *node = &builder->pipeline->node;
    struct snapshot_power_limits *limits = new_rows(builder, node->meter_count, sizeof(*limits));

    for (size_t i = 0; i < node->meter_count && limits; i++) {
        const struct node_meter *from = &node->meters[i];

        if (is_fresh(builder, from->read_us) && !is_duplicate(builder, i))
            limits[builder->snapshot->power_limit_count++] = (struct snapshot_power_limits){
                from->kind, copy_text(builder, from->id), from->limits};
    }
    builder->snapshot->power_limits = limits;
}

/* Adds the meters that are not booked, and the power of the whole node. */
static void add_observed(struct builder *builder)
{
    const struct node *node = &builder->pipeline->node;
    struct snapshot *snapshot = builder->snapshot;
    struct snapshot_observed *observed = new_rows(builder, node->meter_count, sizeof(*observed));
    struct snapshot_node_power *powers = new_rows(builder, node->power_count, sizeof(*powers));

    for (size_t i = 0; i < node->meter_count && observed; i++) {
        const struct node_meter *from = &node->meters[i];

        if (from->meter == LEDGER_NONE && !from->modelled && is_fresh(builder, from->read_us) &&
            !is_duplicate(builder, i))
            observed[snapshot->observed_count++] = (struct snapshot_observed){
                from->kind, copy_text(builder, from->id), from->counter_uj};
    }
    for (size_t i = 0; i < node->power_count && powers; i++)
        if (is_fresh(builder, node->powers[i].read_us))
            powers[snapshot->node_power_count++] =
                (struct snapshot_node_power){node->powers[i].source, node->powers[i].power_mw};
    snapshot->observed = observed;
    snapshot->node_powers = powers;
}

static struct snapshot_gpu *add_gpus(struct builder *builder)
{
    struct snapshot *snapshot = builder->snapshot;
    struct snapshot_gpu *gpus = new_rows(builder, SAMPLE_GPU_MAX, sizeof(*gpus));

    for (size_t i = 0; i < SAMPLE_GPU_MAX && gpus; i++)
        if (builder->pipeline->gpus[i])
            builder->out_of_memory |=
                gpu_snapshot(builder->pipeline->gpus[i], builder->now_us, builder->stale_us,
                             &snapshot->arena, &gpus[snapshot->gpu_count++]) < 0;
    snapshot->gpus = gpus;
    return gpus;
}

static int by_gpu_and_pid(const void *a, const void *b)
{
    const struct snapshot_process *x = a, *y = b;

    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

static void add_processes(struct builder *builder)
{
    const struct pipeline *pipeline = builder->pipeline;
    const struct ledger *ledger = builder->ledger;
    struct snapshot *snapshot = builder->snapshot;
    struct snapshot_process *processes =
        new_rows(builder, ledger_counts(ledger)->processes, sizeof(*processes));

    if (!processes)
        return;
    for (uint32_t i = 0; i < ledger_counts(ledger)->process_slots; i++) {
        const struct ledger_process *from = ledger_process(ledger, i);
        struct snapshot_process *to = &processes[snapshot->process_count];
        const struct ledger_workload *workload;
        const struct gpu *gpu;

        if (!from)
            continue;
        workload = ledger_workload(ledger, from->workload);
        *to = (struct snapshot_process){
            .kind = workload->kind,
            .id = copy_text(builder, workload->id),
            .gpu = ledger_meter(ledger, from->meter)->gpu,
            .pid = from->pid,
            .superseded = from->superseded || is_replaced(pipeline, from->meter),
            .unseen = from->unseen,
            .is_unread = is_unread(pipeline, from->meter),
            .hidden = is_held(pipeline, &from->identity) || from->unseen,
            .name = copy_text(builder, from->name),
            .names = copy_names(builder, &from->identity.names),
            .container_id = copy_text(builder, from->identity.container_id),
            .pod_uid = copy_text(builder, from->identity.pod_uid),
            .active_uj = from->active_uj,
            .idle_uj = from->idle_uj,
            .measured_uj = from->measured_uj,
            .known_uj = from->known_uj,
            .uncertain_uj = from->uncertain_uj,
            .start_us = from->start_us,
            .valid = from->start_us > 0 ? SNAPSHOT_PROCESS_START : 0,
        };
        if (has_uncertainty(pipeline, METER_GPU))
            to->valid |= SNAPSHOT_PROCESS_UNCERTAINTY;
        gpu = gpu_of_meter(pipeline, from->meter);
        if (gpu)
            gpu_snapshot_process(gpu, i, builder->now_us, builder->stale_us, to);
        snapshot->process_count++;
    }
    qsort(processes, snapshot->process_count, sizeof(*processes), by_gpu_and_pid);
    for (size_t i = 0; i < snapshot->process_count; i++)
        if (processes[i].unseen)
            processes[i].pid = 0;
    snapshot->processes = processes;
}

static int by_workload(const void *a, const void *b)
{
    const struct snapshot_workload *x = a, *y = b;
    int order;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    order = strcmp(x->id, y->id);
    return order ? order : (x->meter > y->meter) - (x->meter < y->meter);
}

/* Adds the rows of retired workloads: see ledger_workload.c for the id. */
static void add_retired(struct builder *builder, struct snapshot_workload *rows)
{
    uint64_t retired_at_us = ledger_counts(builder->ledger)->retired_at_us;
    const char *text;
    char id[32];

    if (retired_at_us == 0)
        return;
    snprintf(id, sizeof(id), "%llu.%06llu", (unsigned long long)(retired_at_us / USEC_PER_SEC),
             (unsigned long long)(retired_at_us % USEC_PER_SEC));
    text = copy_text(builder, id);
    for (uint32_t i = 0; i < ledger_meter_count(builder->ledger); i++)
        rows[builder->snapshot->workload_count++] = (struct snapshot_workload){
            .kind = WORKLOAD_RETIRED,
            .id = text,
            .names = {"", "", "", "", ""},
            .container_id = "",
            .pod_uid = "",
            .meter = i,
            .account = ledger_meter(builder->ledger, i)->retired,
            .power_mw = -1,
        };
}

/* Sets the identity of a workload's rows. False if the workload is not shown. */
static bool describe_workload(struct builder *builder, const struct ledger_workload *workload,
                              struct snapshot_workload *ret_row)
{
    if (!workload || workload->kind == WORKLOAD_SYSTEM ||
        is_held(builder->pipeline, &workload->identity))
        return false;
    *ret_row = (struct snapshot_workload){
        .kind = workload->kind,
        .id = copy_text(builder, workload->id),
        .names = copy_names(builder, &workload->identity.names),
        .container_id = copy_text(builder, workload->identity.container_id),
        .pod_uid = copy_text(builder, workload->identity.pod_uid),
    };
    return true;
}

static void add_workloads(struct builder *builder)
{
    const struct ledger *ledger = builder->ledger;
    struct snapshot *snapshot = builder->snapshot;
    struct snapshot_workload *rows = new_rows(
        builder, ledger_counts(ledger)->accounts + ledger_meter_count(ledger), sizeof(*rows));

    if (!rows)
        return;
    for (uint32_t i = 0; i < ledger_counts(ledger)->workload_slots; i++) {
        const struct ledger_workload *workload = ledger_workload(ledger, i);
        const struct ledger_account *at = NULL;
        struct snapshot_workload row;

        if (!describe_workload(builder, workload, &row))
            continue;
        while ((at = ledger_next_account(ledger, workload, at))) {
            row.meter = at->meter;
            row.account = at->account;
            row.power_mw = ledger_power_mw(ledger, at);
            rows[snapshot->workload_count++] = row;
        }
    }
    add_retired(builder, rows);
    qsort(rows, snapshot->workload_count, sizeof(*rows), by_workload);
    snapshot->workloads = rows;
}

static void *copy_rows(struct builder *builder, const void *from, size_t count, size_t row_bytes)
{
    void *rows = new_rows(builder, count, row_bytes);

    if (rows && count > 0)
        memcpy(rows, from, count * row_bytes);
    return rows;
}

static int by_kind_and_id(const void *a, const void *b)
{
    const struct snapshot_usage *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strcmp(x->id, y->id);
}

static void add_usages(struct builder *builder)
{
    const struct workload_usages *usages = &builder->pipeline->node.usages;
    struct snapshot *snapshot = builder->snapshot;
    struct snapshot_usage *rows = new_rows(builder, usages->slots, sizeof(*rows));

    if (!rows)
        return;
    for (uint32_t w = 0; w < usages->slots; w++) {
        const struct workload_usage *from = workload_usages_find(usages, w);
        struct snapshot_usage *to = &rows[snapshot->usage_count];
        struct snapshot_workload row;

        if (!from || !describe_workload(builder, ledger_workload(builder->ledger, w), &row))
            continue;
        *to = (struct snapshot_usage){.kind = row.kind,
                                      .id = row.id,
                                      .names = row.names,
                                      .container_id = row.container_id,
                                      .pod_uid = row.pod_uid,
                                      .usage = from->usage};
        if (!is_fresh(builder, from->seen_us))
            usage_clear_gauges(&to->usage);
        to->usage.io = copy_rows(builder, to->usage.io, to->usage.io_count, sizeof(*to->usage.io));
        to->usage.rdma =
            copy_rows(builder, to->usage.rdma, to->usage.rdma_count, sizeof(*to->usage.rdma));
        to->usage.hugetlb = copy_rows(builder, to->usage.hugetlb, to->usage.hugetlb_count,
                                      sizeof(*to->usage.hugetlb));
        snapshot->usage_count++;
    }
    qsort(rows, snapshot->usage_count, sizeof(*rows), by_kind_and_id);
    snapshot->usages = rows;
}

int pipeline_snapshot_usages(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                             struct snapshot *snapshot)
{
    struct builder builder = {pipeline, pipeline->ledger, snapshot, now_us, stale_us, false};

    add_usages(&builder);
    return builder.out_of_memory ? -ENOMEM : 0;
}

uint64_t pipeline_usage_version(const struct pipeline *pipeline)
{
    return pipeline->node.usages.round + ledger_counts(pipeline->ledger)->names_fixed;
}

static int by_container(const void *a, const void *b)
{
    const struct snapshot_container *x = a, *y = b;

    return strcmp(x->container_id, y->container_id);
}

/* Adds the containers of each GPU, and then all of them, each once. */
static void add_containers(struct builder *builder, struct snapshot_gpu *gpus)
{
    struct gpu *const *from = builder->pipeline->gpus;
    struct snapshot *snapshot = builder->snapshot;
    size_t kept = 0, most = snapshot->process_count;
    struct snapshot_container *rows, *containers;

    for (size_t i = 0; i < snapshot->gpu_count; i++)
        most += from[gpus[i].gpu]->attached_count;
    snapshot->containers = containers = new_rows(builder, most, sizeof(*containers));
    for (size_t i = 0; i < snapshot->gpu_count && containers; i++)
        builder->out_of_memory |=
            gpu_snapshot_containers(from[gpus[i].gpu], snapshot, &gpus[i],
                                    &containers[snapshot->container_count]) < 0;
    rows = copy_rows(builder, containers, snapshot->container_count, sizeof(*rows));
    if (!rows)
        return;
    qsort(rows, snapshot->container_count, sizeof(*rows), by_container);
    for (size_t i = 0; i < snapshot->container_count; i++)
        if (kept == 0 || by_container(&rows[kept - 1], &rows[i]) != 0)
            rows[kept++] = rows[i];
    snapshot->detected = rows;
    snapshot->detected_count = kept;
}

/* Adds a row for each workload and GPU that it was given. */
static void add_allocations(struct builder *builder)
{
    struct gpu *const *gpus = builder->pipeline->gpus;
    struct snapshot *snapshot = builder->snapshot;
    struct snapshot_allocation *rows;
    size_t most = 0;

    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        most += gpus[i] ? gpus[i]->attached_count : 0;
    rows = new_rows(builder, most, sizeof(*rows));
    for (size_t i = 0; i < SAMPLE_GPU_MAX && rows; i++)
        for (size_t k = 0; gpus[i] && k < gpus[i]->attached_count; k++) {
            const struct attached *from = &gpus[i]->attached[k];
            const struct workload_names names = {.name = from->name,
                                                 .namespace = from->namespace,
                                                 .pod = from->pod,
                                                 .container = from->container};

            if (from->is_allocated && from->is_named)
                rows[snapshot->allocation_count++] = (struct snapshot_allocation){
                    .kind = from->owner.kind,
                    .id = copy_text(builder, from->owner.id),
                    .names = copy_names(builder, &names),
                    .gpu = gpus[i]->index,
                    .uuid = copy_text(builder, gpus[i]->uuid),
                    .has_instance = from->is_of_instance,
                    .gpu_instance = from->gpu_instance,
                    .source = from->source,
                    .is_unverified = from->is_unverified,
                };
        }
    snapshot->allocations = rows;
}

int pipeline_snapshot(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                      struct snapshot *snapshot)
{
    struct builder builder = {pipeline, pipeline->ledger, snapshot, now_us, stale_us, false};
    const struct ledger_counts *counts = ledger_counts(pipeline->ledger);
    struct snapshot_gpu *gpus;

    snapshot->time_us = now_us;
    snapshot->processes_dropped = counts->processes_dropped;
    snapshot->workloads_dropped = counts->workloads_dropped;
    snapshot->price = pipeline->price;
    snapshot->embodied = pipeline->options.embodied;
    snapshot->overhead_source =
        pipeline->overhead.meter != LEDGER_NONE ? pipeline->overhead.source : NULL;
    snapshot->overhead_includes_gpus = pipeline->overhead.includes_gpus;
    snapshot->overhead_mismatch = pipeline->overhead.mismatch;
    add_meters(&builder);
    add_observed(&builder);
    add_power_limits(&builder);
    gpus = add_gpus(&builder);
    add_processes(&builder);
    add_workloads(&builder);
    add_usages(&builder);
    add_containers(&builder, gpus);
    add_allocations(&builder);
    return builder.out_of_memory ? -ENOMEM : 0;
}
