#include "attribution/gpu/timeshare.h"

/* The weight of a workload, to be divided among its processes; an integer, but fine enough. */
static const uint64_t WORKLOAD_WEIGHT = 1ULL << 40;

/* Weighs the workloads with a context, or with a grant, equally, and so the claimants of each. */
static void weigh_workloads(const struct timeshare_window *window, struct share *shares,
                            bool by_grant)
{
    const struct claimant *claimants = window->claimants;
    size_t count = window->claimant_count;

    for (size_t begin = 0, end; begin < count; begin = end) {
        uint64_t counted = 0;

        for (end = begin; end < count && claimants[end].workload == claimants[begin].workload;
             end++)
            counted += by_grant ? claimants[end].reserved : claimants[end].has_context;
        for (size_t i = begin; i < end; i++)
            shares[i].weight = (by_grant ? claimants[i].reserved : claimants[i].has_context)
                                   ? WORKLOAD_WEIGHT / counted
                                   : 0;
    }
    shares[count].weight = 0;
}

/* Weighs the claimants and, after them, unknown processes. */
static void weigh_samples(const struct timeshare_window *window, struct share *shares,
                          bool is_active)
{
    for (size_t i = 0; i < window->claimant_count; i++)
        shares[i].weight =
            is_active ? window->claimants[i].active_weight : window->claimants[i].weight;
    shares[window->claimant_count].weight = window->unknown_weight;
}

/* Divides by the weights of the shares; without any weight it goes to `*otherwise_uj`. */
static void divide(const struct timeshare_window *window, struct bookings *bookings,
                   uint64_t energy_uj, enum tier tier, uint64_t *otherwise_uj)
{
    size_t count = window->claimant_count;
    struct booking *last = &bookings->items[bookings->count - 1], *unowned = last - 1;

    if (share_split(energy_uj, bookings->shares, count + 1) == 0) {
        *otherwise_uj += energy_uj;
        return;
    }
    for (size_t i = 0; i < count; i++)
        (unowned - TIER_COUNT * (count - i) + tier)->energy_uj += bookings->shares[i].amount;
    last->energy_uj += bookings->shares[count].amount;
}

static void divide_idle(const struct timeshare_window *window, struct bookings *bookings,
                        uint64_t *idle_uj)
{
    struct share *shares = bookings->shares;

    if (window->policy == IDLE_POLICY_NONE) {
        *idle_uj = window->idle.floor_uj + window->idle.step_uj;
        return;
    }
    if (window->policy == IDLE_POLICY_PROPORTIONAL && window->is_inactive) {
        *idle_uj = window->idle.floor_uj;
    } else {
        if (window->policy == IDLE_POLICY_PROPORTIONAL)
            weigh_samples(window, shares, false);
        else
            weigh_workloads(window, shares, window->policy == IDLE_POLICY_RESERVED);
        divide(window, bookings, window->idle.floor_uj, TIER_IDLE, idle_uj);
    }
    weigh_workloads(window, shares, false);
    divide(window, bookings, window->idle.step_uj, TIER_IDLE, idle_uj);
}

/* Rounded up: the sum over all windows is an upper bound. */
static uint64_t expected_error(uint64_t energy_uj, uint32_t error)
{
    return (uint64_t)(((unsigned __int128)energy_uj * error + CONFIDENCE_ONE - 1) / CONFIDENCE_ONE);
}

void timeshare_settle(const struct timeshare_window *window, struct bookings *bookings)
{
    struct booking *items = &bookings->items[bookings->count];
    size_t slots = TIER_COUNT * window->claimant_count;
    uint64_t *idle_uj = &items[slots].energy_uj, *unattributed_uj = &items[slots + 1].energy_uj;
    bool measured;

    for (size_t i = 0; i < slots; i++)
        items[i] = (struct booking){
            .process = window->claimants[i / TIER_COUNT].process,
            .tier = (enum tier)(i % TIER_COUNT),
        };
    bookings->count += slots;
    bookings_add_unowned(bookings, UNOWNED_IDLE, 0, 0);
    bookings_add_unowned(bookings, UNOWNED_UNATTRIBUTED, 0, 0);
    divide_idle(window, bookings, idle_uj);
    weigh_samples(window, bookings->shares, true);
    divide(window, bookings, window->energy_uj - window->idle.floor_uj - window->idle.step_uj,
           TIER_ACTIVE, unattributed_uj);

    /* Only a window that went whole to its one process is measured. */
    measured = window->is_alone && *idle_uj == 0 && *unattributed_uj == 0;
    for (size_t i = 0; i < slots; i++) {
        const struct claimant *claimant = &window->claimants[i / TIER_COUNT];
        struct booking *booking = &items[i];

        if (claimant->inferred) {
            booking->method = METHOD_INFERRED;
            booking->uncertain_uj = booking->energy_uj;
        } else if (measured) {
            booking->method = METHOD_MEASURED;
            booking->known_uj = booking->energy_uj;
        } else {
            booking->method = METHOD_SHARED;
            booking->known_uj = (uint64_t)((unsigned __int128)booking->energy_uj *
                                           claimant->confidence / CONFIDENCE_ONE);
            /* Idle energy is divided by policy: there is no other truth to be off from. */
            if (booking->tier == TIER_ACTIVE)
                booking->uncertain_uj = expected_error(booking->energy_uj, claimant->error);
        }
    }
}
