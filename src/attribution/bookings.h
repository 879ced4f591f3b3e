/* The bookings of a window, being built, and its energy divided among them. */
#pragma once

#include "attribution/ledger/ledger.h"
#include "attribution/share.h"

/* Its memory is reused for the next window. */
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
