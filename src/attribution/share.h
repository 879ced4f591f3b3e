/* Dividing an integer without losing any of it, and a window's energy among bookings. Pure. */
#pragma once

#include "attribution/ledger/ledger.h"

struct share {
    uint64_t weight;
    uint64_t amount; /* out */

    /* Scratch of share_split. */
    uint64_t remainder_high, remainder_low;
    size_t index;
};

/* Divides `total` in proportion to the weights, by largest remainder: the amounts are integers and
 * sum to `total`, each within one of its exact quota; equal remainders go to the earlier. Returns
 * the sum of the amounts: `total`, or 0 if all weights are 0. */
uint64_t share_split(uint64_t total, struct share *shares, size_t count);

/* The bookings of a window, being built. Its memory is reused for the next. */
struct bookings {
    struct booking *items;
    struct share *shares; /* by the same index */
    size_t count, capacity;
};

void bookings_done(struct bookings *bookings);

/* Empties it and makes room for `capacity` bookings. 0 or -ENOMEM. */
int bookings_begin(struct bookings *bookings, size_t capacity);

void bookings_add_workload(struct bookings *bookings, uint32_t workload, enum tier tier,
                           enum method method, uint64_t weight);
void bookings_add_unowned(struct bookings *bookings, enum unowned owner, uint64_t energy_uj,
                          uint64_t weight);

/* Divides energy by weight and adds it to the bookings. False if all weights are 0. */
bool bookings_divide(struct bookings *bookings, uint64_t energy_uj);
