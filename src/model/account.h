/* The terms of the books: owners of joules, tiers, and methods of attribution; label values. */
#pragma once

#include <stdint.h>

#include "model/price.h"

/* Owners of joules that no workload owns. */
enum unowned { UNOWNED_IDLE, UNOWNED_SYSTEM, UNOWNED_UNATTRIBUTED, UNOWNED_GAP, UNOWNED_COUNT };

/* Active: above the idle level in force. Idle: a share of that level. */
enum tier { TIER_ACTIVE, TIER_IDLE, TIER_COUNT };

enum method {
    METHOD_MEASURED, /* the whole delta of a hardware counter, with no other process present */
    METHOD_SHARED,   /* a share of a hardware counter's delta */
    METHOD_INFERRED, /* by exclusion: no process was visible */
    METHOD_MODELLED, /* no meter: a model of one */
    METHOD_COUNT,
};

/* A confidence of 1: determined by data. 0 is the time share and nothing more. */
enum { CONFIDENCE_ONE = 1000000 };

/* Energy of one workload at one meter, its emissions and its cost. */
struct account {
    uint64_t energy_uj[TIER_COUNT][METHOD_COUNT];
    uint64_t known_uj;  /* each joule times the confidence that it was booked with */
    uint64_t device_us; /* of the device, if that has a rate of embodied carbon */
    struct bill bill;
};

static inline void account_add(struct account *account, const struct account *other)
{
    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int method = 0; method < METHOD_COUNT; method++)
            account->energy_uj[tier][method] += other->energy_uj[tier][method];
    account->known_uj += other->known_uj;
    account->device_us += other->device_us;
    bill_add(&account->bill, &other->bill);
}

static inline uint64_t account_total_uj(const struct account *account)
{
    uint64_t total = 0;

    for (int tier = 0; tier < TIER_COUNT; tier++)
        for (int method = 0; method < METHOD_COUNT; method++)
            total += account->energy_uj[tier][method];
    return total;
}

/* How much of the energy is determined by data, in millionths; 0 where nothing was booked. */
static inline int64_t confidence_millionths(uint64_t known_uj, uint64_t energy_uj)
{
    return energy_uj ? (int64_t)((unsigned __int128)known_uj * CONFIDENCE_ONE / energy_uj) : 0;
}
