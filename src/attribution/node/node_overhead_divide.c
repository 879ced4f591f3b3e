/* The division of the node's overhead among workloads. */
#include "attribution/node/node_overhead.h"

#include "attribution/grow.h"

/* Without a package meter the overhead varies mostly with the processors, and is divided likewise.
 */
static bool is_by_cpu_time(const struct node_overhead *overhead)
{
    return overhead->options.policy == NODE_OVERHEAD_POLICY_PROPORTIONAL &&
           !overhead->start.has_package;
}

static bool is_weighed(const struct node_overhead *overhead, uint32_t meter)
{
    return overhead->weighed_kinds & 1U << ledger_meter(overhead->ledger, meter)->kind;
}

/* Returns the energy of the weighed meters and the unowned part of it. */
static uint64_t sum_meters(const struct node_overhead *overhead,
                           uint64_t ret_unowned_uj[static UNOWNED_COUNT])
{
    uint64_t energy_uj = 0;

    memset(ret_unowned_uj, 0, UNOWNED_COUNT * sizeof(*ret_unowned_uj));
    for (uint32_t m = 0; m < ledger_meter_count(overhead->ledger); m++) {
        const struct ledger_meter *meter = ledger_meter(overhead->ledger, m);

        if (!is_weighed(overhead, m))
            continue;
        energy_uj += meter->energy_uj;
        for (int i = 0; i < UNOWNED_COUNT; i++)
            ret_unowned_uj[i] += meter->unowned_uj[i];
    }
    return energy_uj;
}

/* Sums the energy of a workload at the weighed meters. */
static void sum_workload(const struct node_overhead *overhead, uint32_t index,
                         uint64_t ret_uj[static TIER_COUNT])
{
    const struct ledger_workload *workload = ledger_workload(overhead->ledger, index);
    const struct ledger_account *at = NULL;

    memset(ret_uj, 0, TIER_COUNT * sizeof(*ret_uj));
    while (workload && (at = ledger_next_account(overhead->ledger, workload, at)))
        for (int tier = 0; is_weighed(overhead, at->meter) && tier < TIER_COUNT; tier++)
            for (int method = 0; method < METHOD_COUNT; method++)
                ret_uj[tier] += at->account.energy_uj[tier][method];
}

static int reserve_weights(struct node_overhead *overhead)
{
    return grow_zeroed(&overhead->weights, &overhead->weight_slots,
                       ledger_counts(overhead->ledger)->workload_slots, sizeof(*overhead->weights));
}

/* The weight of the workload in this slot; that of the slot's former workload is lost. */
static struct node_overhead_weight *weight_of(struct node_overhead *overhead, uint32_t index)
{
    const struct ledger_workload *workload = ledger_workload(overhead->ledger, index);
    struct node_overhead_weight *weight = &overhead->weights[index];
    uint64_t serial = workload ? workload->serial : 0;

    if (weight->serial != serial) {
        overhead->lost_us += weight->cpu_us;
        *weight = (struct node_overhead_weight){.serial = serial};
    }
    return weight;
}

int node_overhead_reset_weights(struct node_overhead *overhead)
{
    unsigned kinds = 0;
    int r = reserve_weights(overhead);

    if (r < 0)
        return r;
    /* Only what is supplied through the meter of the whole has losses there. */
    if (overhead->options.policy == NODE_OVERHEAD_POLICY_PROPORTIONAL && !is_by_cpu_time(overhead))
        kinds = 1U << METER_PACKAGE | 1U << METER_DRAM |
                (overhead->includes_gpus ? 1U << METER_GPU : 0);
    overhead->weighed_kinds = kinds;
    overhead->begin_uj = sum_meters(overhead, overhead->begin_unowned_uj);
    for (uint32_t w = 0; w < ledger_counts(overhead->ledger)->workload_slots; w++) {
        struct node_overhead_weight *weight = weight_of(overhead, w);

        weight->cpu_us = 0;
        sum_workload(overhead, w, weight->begin_uj);
    }
    overhead->lost_us = 0;
    ledger_keep_booked(overhead->ledger, kinds);
    return 0;
}

int node_overhead_add_usage(struct node_overhead *overhead, const struct sample_usage *usage)
{
    const struct workload_usages *usages = &overhead->node->usages;
    int r = is_by_cpu_time(overhead) ? reserve_weights(overhead) : 0;

    overhead->busy_us += usage->busy_us;
    overhead->capacity_us += usage->capacity_us;
    for (uint32_t w = 0; w < usages->slots && r == 0 && is_by_cpu_time(overhead); w++) {
        uint64_t cpu_us = usages->items[w].weights[USAGE_WEIGHT_CPU_TIME];

        if (!workload_usages_has(usages, w) || cpu_us == 0)
            continue;
        weight_of(overhead, w)->cpu_us += cpu_us;
        ledger_keep_workload(overhead->ledger, w);
    }
    return r;
}

/* Adds the bookings of the proportional policy. */
static void list_by_weight(struct node_overhead *overhead)
{
    struct bookings *bookings = &overhead->bookings;
    uint64_t unowned_uj[UNOWNED_COUNT], lost;

    lost = sum_meters(overhead, unowned_uj) - overhead->begin_uj;
    for (int i = 0; i < UNOWNED_COUNT; i++) {
        unowned_uj[i] -= overhead->begin_unowned_uj[i];
        lost -= unowned_uj[i];
    }
    bookings_add_unowned(bookings, UNOWNED_IDLE, 0, unowned_uj[UNOWNED_IDLE]);
    bookings_add_unowned(bookings, UNOWNED_SYSTEM, 0, unowned_uj[UNOWNED_SYSTEM]);
    bookings_add_unowned(bookings, UNOWNED_UNATTRIBUTED, 0, 0);
    for (uint32_t w = 0; w < ledger_counts(overhead->ledger)->workload_slots; w++) {
        const struct node_overhead_weight *weight = weight_of(overhead, w);
        uint64_t weights[TIER_COUNT];

        sum_workload(overhead, w, weights);
        for (enum tier tier = 0; tier < TIER_COUNT; tier++) {
            weights[tier] -= weight->begin_uj[tier];
            lost -= weights[tier];
            weights[tier] += tier == TIER_ACTIVE ? weight->cpu_us : 0;
            if (weights[tier] > 0)
                bookings_add_workload(bookings, w, tier, METHOD_SHARED, weights[tier]);
        }
    }
    /* During a gap of another meter this one was read, but not for a known owner. What is missing
     * in the sums was of workloads that are gone. */
    bookings->shares[2].weight =
        unowned_uj[UNOWNED_UNATTRIBUTED] + unowned_uj[UNOWNED_GAP] + lost + overhead->lost_us;
}

int node_overhead_book(struct node_overhead *overhead, uint64_t energy_uj)
{
    uint64_t start_us = overhead->start.t_us, end_us = overhead->latest.t_us, idle_uj = 0;
    bool is_equal = overhead->options.policy == NODE_OVERHEAD_POLICY_EQUAL;
    const struct workload_usages *usages = &overhead->node->usages;
    struct bookings *bookings = &overhead->bookings;
    int r = reserve_weights(overhead);

    if (r == 0)
        r = bookings_begin(bookings, overhead->weight_slots * TIER_COUNT + UNOWNED_COUNT);
    if (r < 0) {
        ledger_book_unattributed(overhead->ledger, overhead->meter, energy_uj, start_us, end_us);
        return r;
    }
    if (overhead->options.policy == NODE_OVERHEAD_POLICY_PROPORTIONAL)
        list_by_weight(overhead);
    else
        bookings_add_unowned(bookings, UNOWNED_IDLE, 0, 0);
    /* A workload that is present need not be active. */
    for (uint32_t w = 0; w < usages->slots && is_equal; w++)
        if (workload_usages_has(usages, w) &&
            ledger_workload(overhead->ledger, w)->kind != WORKLOAD_SYSTEM)
            bookings_add_workload(bookings, w, TIER_IDLE, METHOD_SHARED, 1);
    if (is_by_cpu_time(overhead))
        idle_uj = idle_floor(&overhead->idle, overhead->busy_us, overhead->capacity_us, energy_uj,
                             end_us - start_us);
    if (!bookings_divide(bookings, energy_uj - idle_uj))
        idle_uj = energy_uj; /* nothing was active */
    bookings->items[0].energy_uj += idle_uj;
    return ledger_book(overhead->ledger, overhead->meter, energy_uj, start_us, end_us,
                       bookings->items, bookings->count);
}
