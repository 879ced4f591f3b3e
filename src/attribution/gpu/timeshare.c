#include "attribution/gpu/timeshare.h"

/* A workload's weight, divided among its processes; an integer, so as fine as one may wish. */
static const uint64_t WORKLOAD_WEIGHT = 1ULL << 40;

static bool has_context(const struct claimant *claimant)
{
    return claimant->has_context;
}

static bool is_reserved(const struct claimant *claimant)
{
    return claimant->reserved;
}

/* Weights that divide equally over the workloads that have such claimants, then equally within
 * each. */
static void weigh_workloads(const struct timeshare_window *window, struct share *shares,
                            bool (*counts)(const struct claimant *))
{
    const struct claimant *claimants = window->claimants;

    for (size_t begin = 0, end; begin < window->claimant_count; begin = end) {
        uint64_t counted = 0;

        for (end = begin;
             end < window->claimant_count && claimants[end].workload == claimants[begin].workload;
             end++)
            counted += counts(&claimants[end]);
        for (size_t i = begin; i < end; i++)
            shares[i].weight = counts(&claimants[i]) ? WORKLOAD_WEIGHT / counted : 0;
    }
    shares[window->claimant_count].weight = 0;
}

/* Weights by samples won; the last share is that of samples without a known pid. */
static void weigh_samples(const struct timeshare_window *window, struct share *shares)
{
    for (size_t i = 0; i < window->claimant_count; i++)
        shares[i].weight = window->claimants[i].weight;
    shares[window->claimant_count].weight = window->unknown_weight;
}

/* One split: its own bookings, added to those that the claimants have already. */
struct split {
    const struct timeshare_window *window;
    struct share *shares; /* of all claimants, then of `unattributed` */
    struct booking *bookings;
    uint64_t unattributed_uj;
    uint64_t idle_uj;
};

/* Divides by the weights in `shares`; with no weight at all it goes to `*nobody_uj`. */
static void divide(struct split *split, uint64_t energy_uj, enum tier tier, uint64_t *nobody_uj)
{
    size_t count = split->window->claimant_count;

    if (share_split(energy_uj, split->shares, count + 1) == 0) {
        *nobody_uj += energy_uj;
        return;
    }
    for (size_t i = 0; i < count; i++)
        split->bookings[2 * i + (size_t)tier].energy_uj += split->shares[i].amount;
    split->unattributed_uj += split->shares[count].amount;
}

static void divide_floor(struct split *split)
{
    const struct timeshare_window *window = split->window;

    if (window->policy == IDLE_POLICY_NONE ||
        (window->policy == IDLE_POLICY_PROPORTIONAL && window->nobody_active)) {
        split->idle_uj += window->idle.floor_uj;
        return;
    }
    if (window->policy == IDLE_POLICY_EQUAL)
        weigh_workloads(window, split->shares, has_context);
    else if (window->policy == IDLE_POLICY_RESERVED)
        weigh_workloads(window, split->shares, is_reserved);
    else
        weigh_samples(window, split->shares);
    divide(split, window->idle.floor_uj, TIER_IDLE, &split->idle_uj);
}

static void divide_step(struct split *split)
{
    if (split->window->policy == IDLE_POLICY_NONE) {
        split->idle_uj += split->window->idle.step_uj;
        return;
    }
    weigh_workloads(split->window, split->shares, has_context);
    divide(split, split->window->idle.step_uj, TIER_IDLE, &split->idle_uj);
}

static void divide_active(struct split *split)
{
    const struct timeshare_window *window = split->window;
    uint64_t active_uj = window->energy_uj - window->idle.floor_uj - window->idle.step_uj;

    for (size_t i = 0; i < window->claimant_count; i++)
        split->shares[i].weight = window->claimants[i].active_weight;
    split->shares[window->claimant_count].weight = window->unknown_weight;
    divide(split, active_uj, TIER_ACTIVE, &split->unattributed_uj);
}

size_t timeshare_settle(const struct timeshare_window *window, struct share *scratch,
                        struct booking *bookings)
{
    struct split split = {.window = window, .shares = scratch, .bookings = bookings};
    size_t slots = TIMESHARE_BOOKINGS_PER_CLAIMANT * window->claimant_count, count = 0;
    bool measured;

    for (size_t i = 0; i < slots; i++)
        bookings[i] = (struct booking){
            .process = window->claimants[i / 2].process,
            .tier = (enum tier)(i % 2),
        };
    divide_floor(&split);
    divide_step(&split);
    divide_active(&split);

    /* Measured is only what went whole to the one process that was there. */
    measured = window->alone && split.idle_uj == 0 && split.unattributed_uj == 0;
    bookings[slots] = (struct booking){
        .process = LEDGER_NONE, .unowned = UNOWNED_IDLE, .energy_uj = split.idle_uj};
    bookings[slots + 1] = (struct booking){.process = LEDGER_NONE,
                                           .unowned = UNOWNED_UNATTRIBUTED,
                                           .energy_uj = split.unattributed_uj};
    for (size_t i = 0; i < slots + TIMESHARE_BOOKINGS_MORE; i++) {
        bookings[i].method = measured ? METHOD_MEASURED : METHOD_SHARED;
        if (i < slots && window->claimants[i / 2].inferred)
            bookings[i].method = METHOD_INFERRED;
        if (bookings[i].method == METHOD_MEASURED)
            bookings[i].known_uj = bookings[i].energy_uj;
        else if (i < slots && bookings[i].method == METHOD_SHARED)
            bookings[i].known_uj = (uint64_t)((unsigned __int128)bookings[i].energy_uj *
                                              window->claimants[i / 2].confidence / CONFIDENCE_ONE);
        if (bookings[i].energy_uj > 0)
            bookings[count++] = bookings[i];
    }
    return count;
}
