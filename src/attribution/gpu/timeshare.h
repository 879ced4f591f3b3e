/*
 * Who pays for a window: the split itself, for either method. Pure: numbers in, bookings out.
 *
 * The idle floor goes by policy, the context step equally over the workloads that hold a context,
 * and what is above goes to the processes by the utilisation samples that they won, or by what was
 * learned of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attribution/gpu/idle.h"
#include "attribution/ledger/ledger.h"
#include "attribution/share.h"
#include "model/policy.h"

/* A process that may have to pay. */
struct claimant {
    uint32_t process;
    uint32_t workload;
    uint64_t weight;        /* of the samples it won; 0: none */
    uint64_t active_weight; /* the same, as the active energy is divided */
    uint32_t confidence;    /* that this is right, in CONFIDENCE_ONE */
    bool has_context;
    bool inferred; /* nobody saw it: it is the one, or one of those, that it can have been */
    bool reserved; /* its workload was given the GPU */
};

struct timeshare_window {
    uint64_t energy_uj;
    struct idle_part idle;
    const struct claimant *claimants; /* sorted by workload */
    size_t claimant_count;
    uint64_t unknown_weight; /* of samples whose pid nobody knows */
    bool nobody_active;      /* weights name whom the rest concerns, but the floor is idle */
    bool alone;              /* there is one claimant, alone in every list and sample */
    enum idle_policy policy;
};

enum { TIMESHARE_BOOKINGS_PER_CLAIMANT = 2, TIMESHARE_BOOKINGS_MORE = 2 };

/*
 * Writes the bookings (room for PER_CLAIMANT x claimants + MORE) and returns how many. They sum to
 * energy_uj exactly. `scratch` has room for one more than the claimants.
 */
size_t timeshare_settle(const struct timeshare_window *window, struct share *scratch,
                        struct booking *bookings);
