#include "attribution/node/overhead_weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void overhead_weights_init(struct overhead_weights *weights, struct ledger *ledger)
{
    *weights = (struct overhead_weights){.ledger = ledger};
}

void overhead_weights_done(struct overhead_weights *weights)
{
    free(weights->items);
    *weights = (struct overhead_weights){0};
}

static int reserve(struct overhead_weights *weights)
{
    size_t slots = ledger_workload_slots(weights->ledger);
    struct overhead_weight *items;

    if (slots <= weights->slots)
        return 0;
    items = realloc(weights->items, slots * sizeof(*items));
    if (!items)
        return -ENOMEM;
    memset(items + weights->slots, 0, (slots - weights->slots) * sizeof(*items));
    weights->items = items;
    weights->slots = slots;
    return 0;
}

/* The item of a workload; what one weighed that had the slot before is nobody's. */
static struct overhead_weight *weight_of(struct overhead_weights *weights, uint32_t index)
{
    const struct ledger_workload *workload = ledger_workload(weights->ledger, index);
    struct overhead_weight *weight = &weights->items[index];
    uint64_t serial = workload ? workload->serial : 0;

    if (weight->serial == serial)
        return weight;
    if (weights->kinds == 0)
        weights->lost_us += weight->of[TIER_ACTIVE];
    *weight = (struct overhead_weight){.serial = serial};
    return weight;
}

static bool weighs(const struct overhead_weights *weights, uint32_t meter)
{
    return weights->kinds & 1U << ledger_meter(weights->ledger, meter)->kind;
}

/* The joules of a workload at the meters that weigh. */
static void sum_workload(const struct overhead_weights *weights, uint32_t index,
                         uint64_t ret_uj[static TIER_COUNT])
{
    const struct ledger_workload *workload = ledger_workload(weights->ledger, index);
    const struct ledger_account *at = NULL;

    memset(ret_uj, 0, TIER_COUNT * sizeof(*ret_uj));
    while (workload && (at = ledger_next_account(weights->ledger, workload, at)))
        for (int tier = 0; weighs(weights, at->meter) && tier < TIER_COUNT; tier++)
            for (int method = 0; method < METHOD_COUNT; method++)
                ret_uj[tier] += at->account.energy_uj[tier][method];
}

/* The joules of these meters, and those of nobody. */
static uint64_t sum_meters(const struct overhead_weights *weights,
                           uint64_t ret_unowned_uj[static UNOWNED_COUNT])
{
    uint64_t energy_uj = 0;

    memset(ret_unowned_uj, 0, UNOWNED_COUNT * sizeof(*ret_unowned_uj));
    for (uint32_t m = 0; m < ledger_meter_count(weights->ledger); m++) {
        const struct ledger_meter *meter = ledger_meter(weights->ledger, m);

        if (!weighs(weights, m))
            continue;
        energy_uj += meter->energy_uj;
        for (int i = 0; i < UNOWNED_COUNT; i++)
            ret_unowned_uj[i] += meter->unowned_uj[i];
    }
    return energy_uj;
}

int overhead_weights_begin(struct overhead_weights *weights, unsigned kinds)
{
    int r = reserve(weights);

    if (r < 0)
        return r;
    weights->kinds = kinds;
    weights->begin_uj = sum_meters(weights, weights->begin_unowned_uj);
    for (uint32_t w = 0; w < ledger_workload_slots(weights->ledger); w++) {
        struct overhead_weight *weight = weight_of(weights, w);

        memset(weight->of, 0, sizeof(weight->of));
        sum_workload(weights, w, weight->begin_uj);
    }
    weights->lost_us = 0;
    ledger_keep_booked(weights->ledger, kinds);
    return 0;
}

void overhead_weights_end(struct overhead_weights *weights)
{
    ledger_keep_booked(weights->ledger, 0);
}

int overhead_weights_add_cpu_time(struct overhead_weights *weights, uint32_t workload,
                                  uint64_t cpu_us)
{
    int r = cpu_us > 0 ? reserve(weights) : 0;

    if (r < 0 || cpu_us == 0)
        return r;
    weight_of(weights, workload)->of[TIER_ACTIVE] += cpu_us;
    ledger_keep_workload(weights->ledger, workload);
    return 0;
}

/* By how far the accounts went; what nobody has of it was of workloads that are gone. */
static void measure_joules(struct overhead_weights *weights)
{
    uint64_t unowned_uj[UNOWNED_COUNT];
    uint64_t left_uj = sum_meters(weights, unowned_uj) - weights->begin_uj;

    for (uint32_t w = 0; w < ledger_workload_slots(weights->ledger); w++) {
        struct overhead_weight *weight = weight_of(weights, w);

        sum_workload(weights, w, weight->of);
        for (int tier = 0; tier < TIER_COUNT; tier++) {
            weight->of[tier] -= weight->begin_uj[tier];
            left_uj -= weight->of[tier];
        }
    }
    for (int i = 0; i < UNOWNED_COUNT; i++) {
        weights->unowned[i] = unowned_uj[i] - weights->begin_unowned_uj[i];
        left_uj -= weights->unowned[i];
    }
    weights->unowned[UNOWNED_UNATTRIBUTED] += left_uj;
}

static void measure_cpu_time(struct overhead_weights *weights)
{
    for (uint32_t w = 0; w < ledger_workload_slots(weights->ledger); w++)
        (void)weight_of(weights, w);
    memset(weights->unowned, 0, sizeof(weights->unowned));
    weights->unowned[UNOWNED_UNATTRIBUTED] = weights->lost_us;
}

int overhead_weights_measure(struct overhead_weights *weights)
{
    int r = reserve(weights);

    if (r < 0)
        return r;
    if (weights->kinds)
        measure_joules(weights);
    else
        measure_cpu_time(weights);
    return 0;
}
