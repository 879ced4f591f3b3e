/*
 * Measured: what the meters' own counters say, from one reading to the next. It shares nothing with
 * windows and bookings, so that a reader can compare the two.
 */
#pragma once

#include "attribution/ledger/ledger.h"

/* One meter. Zeroed, it was not read yet. */
struct measured {
    uint64_t counter_uj, read_us;
    uint64_t breaks; /* of the count: another number, another beginning */
    bool is_modelled;
    uint64_t since_us; /* the readings that `power` is of; 0: there was one alone */
    struct ledger_power power;
};

/* < 0: unknown, as it was not read twice. */
double measured_power_mw(const struct measured *measured);

/* Takes a reading. A counter that goes back begins anew. */
void measured_take(struct measured *measured, uint64_t t_us, uint64_t counter_uj, uint64_t breaks,
                   bool is_modelled, struct history *history /* or NULL */);

/* It was not read for longer than such a meter takes, or never. */
bool measured_is_silent(const struct measured *measured, enum meter_kind kind, uint64_t now_us);
