/* Who pays for the rest of the node. */
#include "attribution/node/node_overhead.h"

#include <errno.h>
#include <stdlib.h>

#include "core/macros.h"

/* Below this part of its capacity a machine teaches what it draws when it does nothing. */
enum { QUIET_DIVISOR = 50 };

/* Where no package is measured the processors are in the rest, and are most of what moves in it:
 * then it is divided as a package is. */
static bool goes_by_cpu_time(const struct node_overhead *overhead)
{
    return overhead->options.policy == NODE_OVERHEAD_POLICY_PROPORTIONAL &&
           !overhead->start.has_package;
}

/* Only what is supplied through the meter of the whole loses anything there. */
unsigned node_overhead_weighed_kinds(const struct node_overhead *overhead)
{
    unsigned kinds = 1U << METER_PACKAGE | 1U << METER_DRAM;

    if (overhead->options.policy != NODE_OVERHEAD_POLICY_PROPORTIONAL || goes_by_cpu_time(overhead))
        return 0;
    return overhead->includes_gpus ? kinds | 1U << METER_GPU : kinds;
}

int node_overhead_weigh_usage(struct node_overhead *overhead, const struct sample_usage *usage)
{
    const struct node *node = overhead->node;
    int result = 0;

    overhead->busy_us += usage->busy_us;
    overhead->capacity_us += usage->capacity_us;
    if (!goes_by_cpu_time(overhead))
        return 0;
    for (uint32_t w = 0; w < node->members.slots; w++) {
        const struct workload_usage *member = &node->members.items[w];
        int r = member->is_present
                    ? overhead_weights_add_cpu_time(&overhead->weights, w, member->cpu_us)
                    : 0;

        result = r < 0 ? r : result;
    }
    return result;
}

static int reserve_scratch(struct node_overhead *overhead)
{
    size_t capacity = ledger_workload_slots(overhead->ledger) * TIER_COUNT + UNOWNED_COUNT;
    void *grown;

    if (capacity <= overhead->scratch_capacity)
        return 0;
    if (!(grown = realloc(overhead->shares, capacity * sizeof(*overhead->shares))))
        return -ENOMEM;
    overhead->shares = grown;
    if (!(grown = realloc(overhead->bookings, capacity * sizeof(*overhead->bookings))))
        return -ENOMEM;
    overhead->bookings = grown;
    overhead->scratch_capacity = capacity;
    return 0;
}

static void add_unowned(struct node_overhead *overhead, enum unowned owner, uint64_t weight)
{
    overhead->shares[overhead->booking_count].weight = weight;
    overhead->bookings[overhead->booking_count++] =
        (struct booking){.process = LEDGER_NONE, .unowned = owner};
}

static void add_workload(struct node_overhead *overhead, uint32_t workload, enum tier tier,
                         uint64_t weight)
{
    if (weight == 0)
        return;
    overhead->shares[overhead->booking_count].weight = weight;
    overhead->bookings[overhead->booking_count++] = (struct booking){.process = LEDGER_NONE,
                                                                     .to_workload = true,
                                                                     .workload = workload,
                                                                     .tier = tier,
                                                                     .method = METHOD_SHARED};
}

static void list_by_weight(struct node_overhead *overhead)
{
    const struct overhead_weights *weights = &overhead->weights;
    const uint64_t *unowned = weights->unowned;

    add_unowned(overhead, UNOWNED_IDLE, unowned[UNOWNED_IDLE]);
    add_unowned(overhead, UNOWNED_SYSTEM, unowned[UNOWNED_SYSTEM]);
    /* Of a gap in another meter this one was watched; but nobody knows for whom. */
    add_unowned(overhead, UNOWNED_UNATTRIBUTED,
                unowned[UNOWNED_UNATTRIBUTED] + unowned[UNOWNED_GAP]);
    for (uint32_t w = 0; w < weights->slots; w++)
        for (enum tier tier = 0; tier < TIER_COUNT; tier++)
            add_workload(overhead, w, tier, weights->items[w].of[tier]);
}

/* To be there is not to be active. */
static void list_present(struct node_overhead *overhead)
{
    const struct node *node = overhead->node;

    add_unowned(overhead, UNOWNED_IDLE, 0);
    for (uint32_t w = 0; w < node->members.slots; w++)
        if (node->members.items[w].is_present &&
            ledger_workload(overhead->ledger, w)->kind != WORKLOAD_SYSTEM)
            add_workload(overhead, w, TIER_IDLE, 1);
}

/* The part of the window that a machine draws whose CPUs do nothing. */
static uint64_t idle_energy(struct node_overhead *overhead, uint64_t energy_uj)
{
    uint64_t duration_us = overhead->latest.t_us - overhead->start.t_us;

    if (!goes_by_cpu_time(overhead))
        return 0;
    if (overhead->busy_us <= overhead->capacity_us / QUIET_DIVISOR)
        idle_learn(&overhead->idle, false, energy_uj, duration_us);
    return idle_split(&overhead->idle, false, energy_uj, duration_us).floor_uj;
}

/* Sets who gets how much; whoever gets nothing is left out. `idle` is the first. */
static void split(struct node_overhead *overhead, uint64_t energy_uj)
{
    uint64_t idle_uj = idle_energy(overhead, energy_uj), active_uj = energy_uj - idle_uj;
    size_t kept = 0;

    if (share_split(active_uj, overhead->shares, overhead->booking_count) == 0)
        idle_uj = energy_uj; /* nobody did anything */
    for (size_t i = 0; i < overhead->booking_count; i++) {
        struct booking booking = overhead->bookings[i];

        booking.energy_uj = overhead->shares[i].amount + (i == 0 ? idle_uj : 0);
        if (booking.energy_uj > 0)
            overhead->bookings[kept++] = booking;
    }
    overhead->booking_count = kept;
}

int node_overhead_divide(struct node_overhead *overhead, uint64_t energy_uj)
{
    uint64_t start_us = overhead->start.t_us, end_us = overhead->latest.t_us;
    int r = reserve_scratch(overhead);

    if (r == 0)
        r = overhead_weights_measure(&overhead->weights);
    if (r < 0) {
        const struct booking lost = {
            .process = LEDGER_NONE, .unowned = UNOWNED_UNATTRIBUTED, .energy_uj = energy_uj};

        (void)ledger_book(overhead->ledger, overhead->meter, energy_uj, start_us, end_us, &lost, 1);
        return r;
    }
    overhead->booking_count = 0;
    switch (overhead->options.policy) {
    case NODE_OVERHEAD_POLICY_PROPORTIONAL:
        list_by_weight(overhead);
        break;
    case NODE_OVERHEAD_POLICY_EQUAL:
        list_present(overhead);
        break;
    case NODE_OVERHEAD_POLICY_NONE:
        add_unowned(overhead, UNOWNED_IDLE, 0);
        break;
    }
    split(overhead, energy_uj);
    return ledger_book(overhead->ledger, overhead->meter, energy_uj, start_us, end_us,
                       overhead->bookings, overhead->booking_count);
}
