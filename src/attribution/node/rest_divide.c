/* Who pays for the rest of the node. */
#include "attribution/node/rest.h"

#include <errno.h>
#include <stdlib.h>

#include "core/macros.h"

/* Below this part of its capacity a machine teaches what it draws when it does nothing. */
enum { QUIET_DIVISOR = 50 };

/* Where no package is measured the processors are in the rest, and are most of what moves in it:
 * then it is divided as a package is. */
static bool goes_by_cpu_time(const struct rest *rest)
{
    return rest->options.policy == REST_POLICY_PROPORTIONAL && !rest->start.has_package;
}

/* Only what is supplied through the meter of the whole loses anything there. */
unsigned rest_weighed_kinds(const struct rest *rest)
{
    unsigned kinds = 1U << METER_PACKAGE | 1U << METER_DRAM;

    if (rest->options.policy != REST_POLICY_PROPORTIONAL || goes_by_cpu_time(rest))
        return 0;
    return rest->includes_gpus ? kinds | 1U << METER_GPU : kinds;
}

void rest_weigh_usage(struct rest *rest, const struct sample_usage *usage)
{
    const struct node *node = rest->node;

    rest->busy_us += usage->busy_us;
    rest->capacity_us += usage->capacity_us;
    if (!goes_by_cpu_time(rest))
        return;
    for (size_t w = 0; w < node->members.slots; w++)
        if (node->members.items[w].is_present)
            rest->ledger->workloads[w].weight[TIER_ACTIVE] += node->members.items[w].cpu_us;
}

static int reserve_scratch(struct rest *rest)
{
    size_t capacity = rest->ledger->workload_slots * TIER_COUNT + UNOWNED_COUNT;
    void *grown;

    if (capacity <= rest->scratch_capacity)
        return 0;
    if (!(grown = realloc(rest->shares, capacity * sizeof(*rest->shares))))
        return -ENOMEM;
    rest->shares = grown;
    if (!(grown = realloc(rest->bookings, capacity * sizeof(*rest->bookings))))
        return -ENOMEM;
    rest->bookings = grown;
    rest->scratch_capacity = capacity;
    return 0;
}

static void add_unowned(struct rest *rest, enum unowned owner, uint64_t weight)
{
    rest->shares[rest->booking_count].weight = weight;
    rest->bookings[rest->booking_count++] =
        (struct booking){.process = LEDGER_NONE, .unowned = owner};
}

static void add_workload(struct rest *rest, uint32_t workload, enum tier tier, uint64_t weight)
{
    if (weight == 0)
        return;
    rest->shares[rest->booking_count].weight = weight;
    rest->bookings[rest->booking_count++] = (struct booking){.process = LEDGER_NONE,
                                                             .to_workload = true,
                                                             .workload = workload,
                                                             .tier = tier,
                                                             .method = METHOD_SHARED};
}

static void list_by_weight(struct rest *rest)
{
    const struct ledger *ledger = rest->ledger;
    const uint64_t *unowned = ledger->unowned_weight;

    add_unowned(rest, UNOWNED_IDLE, unowned[UNOWNED_IDLE]);
    add_unowned(rest, UNOWNED_SYSTEM, unowned[UNOWNED_SYSTEM]);
    /* Of a gap in another meter this one was watched; but nobody knows for whom. */
    add_unowned(rest, UNOWNED_UNATTRIBUTED, unowned[UNOWNED_UNATTRIBUTED] + unowned[UNOWNED_GAP]);
    for (uint32_t w = 0; w < ledger->workload_slots; w++)
        for (enum tier tier = 0; ledger->workloads[w].used && tier < TIER_COUNT; tier++)
            add_workload(rest, w, tier, ledger->workloads[w].weight[tier]);
}

/* To be there is not to be active. */
static void list_present(struct rest *rest)
{
    const struct node *node = rest->node;

    add_unowned(rest, UNOWNED_IDLE, 0);
    for (uint32_t w = 0; w < node->members.slots; w++)
        if (node->members.items[w].is_present && rest->ledger->workloads[w].kind != WORKLOAD_SYSTEM)
            add_workload(rest, w, TIER_IDLE, 1);
}

/* The part of the window that a machine draws whose CPUs do nothing. */
static uint64_t idle_energy(struct rest *rest, uint64_t energy_uj)
{
    uint64_t duration_us = rest->latest.t_us - rest->start.t_us;

    if (!goes_by_cpu_time(rest))
        return 0;
    if (rest->busy_us <= rest->capacity_us / QUIET_DIVISOR)
        idle_learn(&rest->idle, false, energy_uj, duration_us);
    return idle_split(&rest->idle, false, energy_uj, duration_us).floor_uj;
}

/* Sets who gets how much; whoever gets nothing is left out. `idle` is the first. */
static void split(struct rest *rest, uint64_t energy_uj)
{
    uint64_t idle_uj = idle_energy(rest, energy_uj), active_uj = energy_uj - idle_uj;
    size_t kept = 0;

    if (share_split(active_uj, rest->shares, rest->booking_count) == 0)
        idle_uj = energy_uj; /* nobody did anything */
    for (size_t i = 0; i < rest->booking_count; i++) {
        struct booking booking = rest->bookings[i];

        booking.energy_uj = rest->shares[i].amount + (i == 0 ? idle_uj : 0);
        if (booking.energy_uj > 0)
            rest->bookings[kept++] = booking;
    }
    rest->booking_count = kept;
}

int rest_divide(struct rest *rest, uint64_t energy_uj)
{
    uint64_t start_us = rest->start.t_us, end_us = rest->latest.t_us;
    int r = reserve_scratch(rest);

    if (r < 0) {
        const struct booking lost = {
            .process = LEDGER_NONE, .unowned = UNOWNED_UNATTRIBUTED, .energy_uj = energy_uj};

        (void)ledger_book(rest->ledger, rest->meter, energy_uj, start_us, end_us, &lost, 1);
        return r;
    }
    rest->booking_count = 0;
    switch (rest->options.policy) {
    case REST_POLICY_PROPORTIONAL:
        list_by_weight(rest);
        break;
    case REST_POLICY_EQUAL:
        list_present(rest);
        break;
    case REST_POLICY_NONE:
        add_unowned(rest, UNOWNED_IDLE, 0);
        break;
    }
    split(rest, energy_uj);
    return ledger_book(rest->ledger, rest->meter, energy_uj, start_us, end_us, rest->bookings,
                       rest->booking_count);
}
