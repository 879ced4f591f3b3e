/* The books and gauges of a pipeline, copied into an immutable snapshot. */
#include "attribution/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/gpu/memory.h"
#include "core/macros.h"

static const uint64_t NODE_STALE_US = 60 * USEC_PER_SEC;

/* A BMC is asked every 10 s, and may be late. */
static bool is_fresh_of_node(uint64_t read_us, uint64_t now_us, uint64_t stale_us)
{
    return read_us + MAX(stale_us, NODE_STALE_US) >= now_us;
}

static const char *copy_text(struct arena *arena, const char *text)
{
    return text && text[0] ? arena_copy(arena, text, strlen(text)) : "";
}

/* The board of this meter is gone, and another one has its index. */
static bool is_replaced(const struct pipeline *pipeline, uint32_t meter)
{
    const struct ledger_meter *books = ledger_meter(pipeline->ledger, meter);

    return books->kind == METER_GPU && !pipeline_gpu_of_meter(pipeline, meter) &&
           pipeline->gpus[books->gpu];
}

/* Booked, but not to be shown yet. */
static bool is_held(const struct pipeline *pipeline, const struct ledger_names *names)
{
    return pipeline->options.find_names && !names->fixed;
}

static struct workload_names copy_names(struct arena *arena, const struct ledger_names *from)
{
    return (struct workload_names){
        .name = copy_text(arena, from->name),
        .namespace = copy_text(arena, from->namespace),
        .pod = copy_text(arena, from->pod),
        .container = copy_text(arena, from->container),
    };
}

static bool has_names(struct workload_names names)
{
    return names.name && names.namespace && names.pod && names.container;
}

/*
 * What a scrape shows of a meter: what the system used is nobody's, and what is held back is not
 * settled yet, so that on every page the meter is the sum of its rows.
 */
static void fold_accounts(const struct pipeline *pipeline, struct snapshot_meter *meters)
{
    const struct ledger *ledger = pipeline->ledger;

    for (uint32_t i = 0; i < ledger_workload_slots(ledger); i++) {
        const struct ledger_workload *workload = ledger_workload(ledger, i);
        const struct ledger_account *at = NULL;

        while (workload && (at = ledger_next_account(ledger, workload, at))) {
            struct snapshot_meter *meter = &meters[at->meter];
            const struct account *account = &at->account;
            uint64_t energy_uj = account_total_uj(account);

            if (workload->kind == WORKLOAD_SYSTEM) {
                meter->unowned_uj[UNOWNED_SYSTEM] += energy_uj;
                meter->unowned_device_us[UNOWNED_SYSTEM] += account->device_us;
                bill_add(&meter->unowned_bill[UNOWNED_SYSTEM], &account->bill);
            } else if (is_held(pipeline, &workload->names)) {
                meter->energy_uj -= energy_uj;
                meter->pending_uj += energy_uj;
                meter->device_us -= account->device_us;
                bill_subtract(&meter->bill, &account->bill);
            }
        }
    }
}

static int add_meters(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                      struct snapshot *snapshot)
{
    const struct ledger *ledger = pipeline->ledger;
    struct snapshot_meter *meters =
        arena_array(&snapshot->arena, ledger_meter_count(ledger), sizeof(*meters));

    if (!meters)
        return -ENOMEM;
    for (uint32_t i = 0; i < ledger_meter_count(ledger); i++) {
        const struct ledger_meter *from = ledger_meter(ledger, i);
        const struct gpu *gpu = pipeline_gpu_of_meter(pipeline, i);
        const struct node_meter *node_meter = node_meter_of(&pipeline->node, i);
        struct snapshot_meter *to = &meters[i];

        *to = (struct snapshot_meter){
            .kind = from->kind,
            .gpu = from->gpu,
            .meter_id = copy_text(&snapshot->arena, from->meter_id),
            .replaced = is_replaced(pipeline, i),
            .has_counter = gpu && gpu->counter_seen,
            .counter_uj = gpu ? gpu->counter_uj : 0,
            .energy_uj = from->energy_uj,
            .bill = from->bill,
            .device_us = from->device.total_us,
            .pending_uj = gpu ? gpu_pending_uj(gpu) : 0,
            .imbalance_uj = ledger_imbalance_uj(ledger, i),
            .resets = gpu ? gpu->resets : 0,
        };
        if (node_meter) {
            to->has_counter =
                !node_meter->modelled && is_fresh_of_node(node_meter->read_us, now_us, stale_us);
            to->counter_uj = node_meter->counter_uj;
            to->pending_uj = node_meter->pending_uj;
            to->resets = node_meter->breaks;
            to->modelled = node_meter->modelled;
        }
        memcpy(to->unowned_uj, from->unowned_uj, sizeof(to->unowned_uj));
        memcpy(to->unowned_bill, from->unowned_bill, sizeof(to->unowned_bill));
        memcpy(to->unowned_device_us, from->device.unowned_us, sizeof(to->unowned_device_us));
        if (!to->meter_id)
            return -ENOMEM;
    }
    fold_accounts(pipeline, meters);
    snapshot->meters = meters;
    snapshot->meter_count = ledger_meter_count(ledger);
    return 0;
}

/* The meters that are not booked, and the power of the whole node. */
static int add_observed(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                        struct snapshot *snapshot)
{
    const struct node *node = &pipeline->node;
    struct snapshot_observed *observed =
        arena_array(&snapshot->arena, node->meter_count, sizeof(*observed));
    struct snapshot_node_power *powers =
        arena_array(&snapshot->arena, node->power_count, sizeof(*powers));

    if (!observed || !powers)
        return -ENOMEM;
    for (size_t i = 0; i < node->meter_count; i++) {
        const struct node_meter *from = &node->meters[i];
        struct snapshot_observed *to = &observed[snapshot->observed_count];

        if (from->meter != LEDGER_NONE || from->modelled ||
            !is_fresh_of_node(from->read_us, now_us, stale_us))
            continue;
        *to = (struct snapshot_observed){from->kind, copy_text(&snapshot->arena, from->id),
                                         from->counter_uj};
        if (!to->id)
            return -ENOMEM;
        snapshot->observed_count++;
    }
    for (size_t i = 0; i < node->power_count; i++)
        if (is_fresh_of_node(node->powers[i].read_us, now_us, stale_us))
            powers[snapshot->node_power_count++] =
                (struct snapshot_node_power){node->powers[i].source, node->powers[i].power_mw};
    snapshot->observed = observed;
    snapshot->node_powers = powers;
    return 0;
}

static void add_rest(const struct node_overhead *overhead, struct snapshot *snapshot)
{
    snapshot->rest_source = overhead->meter != LEDGER_NONE ? overhead->total->source : NULL;
    snapshot->rest_includes_gpus = overhead->includes_gpus;
    snapshot->rest_mismatch = overhead->mismatch;
}

static int add_gpus(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                    struct snapshot *snapshot, struct snapshot_gpu **ret_gpus)
{
    struct snapshot_gpu *gpus = arena_array(&snapshot->arena, SAMPLE_GPU_MAX, sizeof(*gpus));

    if (!gpus)
        return -ENOMEM;
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++) {
        const struct gpu *gpu = pipeline->gpus[i];
        int r;

        if (!gpu)
            continue;
        r = gpu_snapshot(gpu, now_us, stale_us, &snapshot->arena, &gpus[snapshot->gpu_count]);
        if (r < 0)
            return r;
        snapshot->gpu_count++;
    }
    snapshot->gpus = *ret_gpus = gpus;
    return 0;
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

static int add_processes(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                         struct snapshot *snapshot)
{
    const struct ledger *ledger = pipeline->ledger;
    struct snapshot_process *processes =
        arena_array(&snapshot->arena, ledger_counts(ledger).processes, sizeof(*processes));
    struct gpu_won *won = arena_array(&snapshot->arena, ledger_process_slots(ledger), sizeof(*won));
    uint64_t samples[SAMPLE_GPU_MAX] = {0};

    if (!processes || !won)
        return -ENOMEM;
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i])
            samples[i] = gpu_count_won(pipeline->gpus[i], won);
    for (uint32_t i = 0; i < ledger_process_slots(ledger); i++) {
        const struct ledger_process *from = ledger_process(ledger, i);
        struct snapshot_process *to = &processes[snapshot->process_count];
        const struct gpu *gpu;

        if (!from)
            continue;
        *to = (struct snapshot_process){
            .gpu = ledger_meter(ledger, from->meter)->gpu,
            .pid = from->pid,
            .superseded = from->superseded || is_replaced(pipeline, from->meter),
            .hidden = is_held(pipeline, &from->names) || from->unseen,
            .name = copy_text(&snapshot->arena, from->name),
            .names = copy_names(&snapshot->arena, &from->names),
            .container_id = copy_text(&snapshot->arena, from->container_id),
            .pod_uid = copy_text(&snapshot->arena, from->pod_uid),
            .active_uj = from->active_uj,
            .idle_uj = from->idle_uj,
            .measured_uj = from->measured_uj,
            .known_uj = from->known_uj,
            .start_us = from->start_us,
            .valid = from->start_us > 0 ? SNAPSHOT_PROCESS_START : 0,
        };
        if (!to->name || !has_names(to->names) || !to->container_id || !to->pod_uid)
            return -ENOMEM;
        gpu = pipeline_gpu_of_meter(pipeline, from->meter);
        if (gpu)
            gpu_snapshot_process(gpu, i, &won[i], samples[gpu->index], now_us, stale_us, to);
        snapshot->process_count++;
    }
    qsort(processes, snapshot->process_count, sizeof(*processes), by_gpu_and_pid);
    snapshot->processes = processes;
    return 0;
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

/* The rows of retired workloads: see ledger_workload.c for the id. */
static int add_retired(const struct ledger *ledger, struct snapshot *snapshot,
                       struct snapshot_workload *rows)
{
    uint64_t retired_at_us = ledger_counts(ledger).retired_at_us;
    char id[32];
    const char *text;

    if (retired_at_us == 0)
        return 0;
    snprintf(id, sizeof(id), "%llu.%06llu", (unsigned long long)(retired_at_us / USEC_PER_SEC),
             (unsigned long long)(retired_at_us % USEC_PER_SEC));
    text = copy_text(&snapshot->arena, id);
    if (!text)
        return -ENOMEM;
    for (uint32_t i = 0; i < ledger_meter_count(ledger); i++)
        rows[snapshot->workload_count++] = (struct snapshot_workload){
            .kind = WORKLOAD_RETIRED,
            .id = text,
            .names = {"", "", "", "", ""},
            .container_id = "",
            .pod_uid = "",
            .meter = i,
            .account = ledger_meter(ledger, i)->retired,
            .power_mw = -1,
        };
    return 0;
}

static int add_workloads(const struct pipeline *pipeline, struct snapshot *snapshot)
{
    const struct ledger *ledger = pipeline->ledger;
    struct snapshot_workload *rows = arena_array(
        &snapshot->arena, ledger_account_slots(ledger) + ledger_meter_count(ledger), sizeof(*rows));
    int r;

    if (!rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < ledger_workload_slots(ledger); i++) {
        const struct ledger_workload *workload = ledger_workload(ledger, i);
        const struct ledger_account *at = NULL;
        struct snapshot_workload row;

        if (!workload || workload->kind == WORKLOAD_SYSTEM || is_held(pipeline, &workload->names))
            continue;
        row = (struct snapshot_workload){
            .kind = workload->kind,
            .id = copy_text(&snapshot->arena, workload->id),
            .names = copy_names(&snapshot->arena, &workload->names),
            .container_id = copy_text(&snapshot->arena, workload->container_id),
            .pod_uid = copy_text(&snapshot->arena, workload->pod_uid),
        };
        if (!row.id || !has_names(row.names) || !row.container_id || !row.pod_uid)
            return -ENOMEM;
        while ((at = ledger_next_account(ledger, workload, at))) {
            row.meter = at->meter;
            row.account = at->account;
            row.power_mw = ledger_power_mw(ledger, at);
            rows[snapshot->workload_count++] = row;
        }
    }
    r = add_retired(ledger, snapshot, rows);
    qsort(rows, snapshot->workload_count, sizeof(*rows), by_workload);
    snapshot->workloads = rows;
    return r;
}

static int copy_usage(struct arena *arena, const struct usage *from, bool has_gauges,
                      struct usage *to)
{
    *to = *from;
    if (!has_gauges)
        usage_forget_gauges(to);
    to->io = arena_array(arena, to->io_count, sizeof(*to->io));
    to->rdma = arena_array(arena, to->rdma_count, sizeof(*to->rdma));
    to->hugetlb = arena_array(arena, to->hugetlb_count, sizeof(*to->hugetlb));
    if (!to->io || !to->rdma || !to->hugetlb)
        return -ENOMEM;
    if (to->io_count > 0)
        memcpy(to->io, from->io, to->io_count * sizeof(*to->io));
    if (to->rdma_count > 0)
        memcpy(to->rdma, from->rdma, to->rdma_count * sizeof(*to->rdma));
    if (to->hugetlb_count > 0)
        memcpy(to->hugetlb, from->hugetlb, to->hugetlb_count * sizeof(*to->hugetlb));
    return 0;
}

static int by_kind_and_id(const void *a, const void *b)
{
    const struct snapshot_usage *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return strcmp(x->id, y->id);
}

int pipeline_snapshot_usages(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                             struct snapshot *snapshot)
{
    const struct workload_usages *members = &pipeline->node.members;
    struct snapshot_usage *rows = arena_array(&snapshot->arena, members->slots, sizeof(*rows));

    if (!rows)
        return -ENOMEM;
    for (uint32_t w = 0; w < members->slots; w++) {
        const struct ledger_workload *workload = ledger_workload(pipeline->ledger, w);
        const struct workload_usage *member = workload_usages_find(members, w);
        struct snapshot_usage *row = &rows[snapshot->usage_count];

        if (!member || workload->kind == WORKLOAD_SYSTEM || is_held(pipeline, &workload->names))
            continue;
        *row = (struct snapshot_usage){
            .kind = workload->kind,
            .id = copy_text(&snapshot->arena, workload->id),
            .names = copy_names(&snapshot->arena, &workload->names),
            .container_id = copy_text(&snapshot->arena, workload->container_id),
            .pod_uid = copy_text(&snapshot->arena, workload->pod_uid),
        };
        if (!row->id || !has_names(row->names) || !row->container_id || !row->pod_uid ||
            copy_usage(&snapshot->arena, &member->usage,
                       is_fresh_of_node(member->seen_us, now_us, stale_us), &row->usage) < 0)
            return -ENOMEM;
        snapshot->usage_count++;
    }
    qsort(rows, snapshot->usage_count, sizeof(*rows), by_kind_and_id);
    snapshot->usages = rows;
    return 0;
}

uint64_t pipeline_usage_version(const struct pipeline *pipeline)
{
    /* Neither goes back. */
    return pipeline->node.members.round + ledger_counts(pipeline->ledger).names_fixed;
}

static int add_containers(const struct pipeline *pipeline, struct snapshot *snapshot,
                          struct snapshot_gpu *gpus)
{
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        const struct gpu *gpu = pipeline->gpus[gpus[i].gpu];
        int r = memory_divide(snapshot, &gpus[i], gpu->attached, gpu->attached_count);

        if (r < 0)
            return r;
    }
    return memory_list_containers(snapshot);
}

int pipeline_snapshot(const struct pipeline *pipeline, uint64_t now_us, uint64_t stale_us,
                      struct snapshot *snapshot)
{
    const struct ledger_counts counts = ledger_counts(pipeline->ledger);
    struct snapshot_gpu *gpus;
    int r;

    snapshot->processes_dropped = counts.processes_dropped;
    snapshot->workloads_dropped = counts.workloads_dropped;
    snapshot->price = pipeline->price;
    snapshot->embodied = pipeline->options.embodied;
    if ((r = add_meters(pipeline, now_us, stale_us, snapshot)) < 0 ||
        (r = add_observed(pipeline, now_us, stale_us, snapshot)) < 0 ||
        (r = add_gpus(pipeline, now_us, stale_us, snapshot, &gpus)) < 0 ||
        (r = add_processes(pipeline, now_us, stale_us, snapshot)) < 0 ||
        (r = add_workloads(pipeline, snapshot)) < 0 ||
        (r = pipeline_snapshot_usages(pipeline, now_us, stale_us, snapshot)) < 0 ||
        (r = add_containers(pipeline, snapshot, gpus)) < 0)
        return r;
    add_rest(&pipeline->overhead, snapshot);
    return 0;
}
