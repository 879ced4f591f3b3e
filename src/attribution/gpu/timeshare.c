#include "attribution/gpu/timeshare.h"

/* The weight of a workload, to be divided among its processes; an integer, but fine enough. */
static const uint64_t WORKLOAD_WEIGHT = 1ULL << 40;

/* A window being divided. The first shares are those of the claimants, the next is that of unknown
 * processes. */
struct split {
    const struct timeshare_window *window;
    struct share *shares;
    struct booking *bookings; /* for each claimant one of each tier */
    uint64_t unattributed_uj;
    uint64_t idle_uj;
};

/* Weighs the workloads with a context, or with a grant, equally, and so the claimants of each. */
static void weigh_workloads(struct split *split, bool by_grant)
{
    const struct claimant *claimants = split->window->claimants;
    size_t count = split->window->claimant_count;

    for (size_t begin = 0, end; begin < count; begin = end) {
        uint64_t counted = 0;

        for (end = begin; end < count && claimants[end].workload == claimants[begin].workload;
             end++)
            counted += by_grant ? claimants[end].reserved : claimants[end].has_context;
        for (size_t i = begin; i < end; i++)
            split->shares[i].weight = (by_grant ? claimants[i].reserved : claimants[i].has_context)
                                          ? WORKLOAD_WEIGHT / counted
                                          : 0;
    }
    split->shares[count].weight = 0;
}

static void weigh_samples(struct split *split, bool is_active)
{
    const struct timeshare_window *window = split->window;

    for (size_t i = 0; i < window->claimant_count; i++)
        split->shares[i].weight =
            is_active ? window->claimants[i].active_weight : window->claimants[i].weight;
    split->shares[window->claimant_count].weight = window->unknown_weight;
}

/* Divides by the weights of the shares; without any weight it goes to `*otherwise_uj`. */
static void divide(struct split *split, uint64_t energy_uj, enum tier tier, uint64_t *otherwise_uj)
{
    size_t count = split->window->claimant_count;

    if (share_split(energy_uj, split->shares, count + 1) == 0) {
        *otherwise_uj += energy_uj;
        return;
    }
    for (size_t i = 0; i < count; i++)
        split->bookings[TIER_COUNT * i + (size_t)tier].energy_uj += split->shares[i].amount;
    split->unattributed_uj += split->shares[count].amount;
}

static void divide_idle(struct split *split)
{
    const struct timeshare_window *window = split->window;

    if (window->policy == IDLE_POLICY_NONE) {
        split->idle_uj = window->idle.floor_uj + window->idle.step_uj;
        return;
    }
    if (window->policy == IDLE_POLICY_PROPORTIONAL && window->is_inactive) {
        split->idle_uj = window->idle.floor_uj;
    } else {
        if (window->policy == IDLE_POLICY_PROPORTIONAL)
            weigh_samples(split, false);
        else
            weigh_workloads(split, window->policy == IDLE_POLICY_RESERVED);
        divide(split, window->idle.floor_uj, TIER_IDLE, &split->idle_uj);
    }
    weigh_workloads(split, false);
    divide(split, window->idle.step_uj, TIER_IDLE, &split->idle_uj);
}

void timeshare_settle(const struct timeshare_window *window, struct bookings *bookings)
{
    struct split split = {window, bookings->shares, bookings->items, 0, 0};
    bool measured;

    bookings->count = TIMESHARE_BOOKINGS_PER_CLAIMANT * window->claimant_count;
    for (size_t i = 0; i < bookings->count; i++)
        bookings->items[i] = (struct booking){
            .process = window->claimants[i / TIER_COUNT].process,
            .tier = (enum tier)(i % TIER_COUNT),
        };
    divide_idle(&split);
    weigh_samples(&split, true);
    divide(&split, window->energy_uj - window->idle.floor_uj - window->idle.step_uj, TIER_ACTIVE,
           &split.unattributed_uj);

    /* Only a window that went whole to its one process is measured. */
    measured = window->is_alone && split.idle_uj == 0 && split.unattributed_uj == 0;
    for (size_t i = 0; i < bookings->count; i++) {
        const struct claimant *claimant = &window->claimants[i / TIER_COUNT];
        struct booking *booking = &bookings->items[i];

        booking->method = claimant->inferred ? METHOD_INFERRED
                          : measured         ? METHOD_MEASURED
                                             : METHOD_SHARED;
        if (booking->method == METHOD_MEASURED)
            booking->known_uj = booking->energy_uj;
        else if (booking->method == METHOD_SHARED)
            booking->known_uj = (uint64_t)((unsigned __int128)booking->energy_uj *
                                           claimant->confidence / CONFIDENCE_ONE);
    }
    bookings_add_unowned(bookings, UNOWNED_IDLE, split.idle_uj, 0);
    bookings_add_unowned(bookings, UNOWNED_UNATTRIBUTED, split.unattributed_uj, 0);
}
