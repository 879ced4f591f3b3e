/* The division of a window among processes: the idle floor by policy, the context step equally over
 * the workloads that hold a context, and the active energy by the weights of the processes. Pure.
 */
#pragma once

#include "attribution/bookings.h"
#include "attribution/gpu/idle.h"
#include "model/policy.h"

/* A process that may have a part in the window. */
struct claimant {
    uint32_t process;
    uint32_t workload;
    uint64_t weight;        /* of the samples it won; 0: none */
    uint64_t active_weight; /* for the active energy */
    uint32_t confidence;    /* in active_weight, in CONFIDENCE_ONE */
    uint32_t error;         /* of active_weight, expected; relative to it, in CONFIDENCE_ONE */
    bool has_context, is_mps_client;
    uint32_t served; /* as a server: its clients */
    bool inferred;   /* it was not seen, but can have done what no other did */
    bool reserved;   /* its workload was granted the GPU */
};

struct claimants {
    struct claimant *items;
    size_t count, slots;
};

struct timeshare_window {
    uint64_t energy_uj;
    struct idle_part idle;
    const struct claimant *claimants; /* sorted by workload */
    size_t claimant_count;
    uint64_t unknown_weight; /* of samples of unknown processes */
    bool is_inactive;        /* nothing ran: the floor is idle */
    bool is_alone;           /* one claimant, alone in every list and sample */
    enum idle_policy policy;
};

enum { TIMESHARE_BOOKINGS_PER_CLAIMANT = TIER_COUNT, TIMESHARE_BOOKINGS_MORE = 2 };

/* Adds the bookings, which sum to energy_uj. Needs room for PER_CLAIMANT x claimants + MORE. */
void timeshare_settle(const struct timeshare_window *window, struct bookings *bookings);
