/*
 * Counter: turns a hardware counter that starts again at 0, when it is full or reset, into one that
 * never goes back. Integrator: energy from power readings, where there is no counter. Pure.
 *
 * A wrap looks like a reset, and two wraps look like none; time tells them apart. A step that is
 * faster than plausible, or after so long that the counter may have wrapped unseen, is a break:
 * nothing is added, and counting goes on from the new value.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/arena.h"

/* No node draws 50 kW; registers of all ones claim more. */
#define PLAUSIBLE_POWER_MAX_UW ((uint64_t)50000000000)

/* Zeroed at first; set its limits before the first value. */
struct counter {
    uint64_t range;      /* the largest value, which means the same as 0; 0: it is never full */
    uint64_t max_per_s;  /* more is not plausible */
    uint64_t max_gap_us; /* half of the shortest time for the whole range */
    bool has_last;
    uint64_t last, last_us;
    uint64_t total; /* never goes back */
    uint32_t breaks;
};

/* Also later, if the range changes. The gap may be lowered afterwards. */
void counter_limit(struct counter *counter, uint64_t range, uint64_t max_per_s);

/* Adds a value and when it was read; a time that goes back is a break, too. False: the value is
 * above the range, and the count is lost. */
bool counter_add(struct counter *counter, uint64_t t_us, uint64_t value);

/* What the device counted since another run read `last` at `last_us`, both on the clock of `t_us`.
 * False: unknown, as after a break. */
bool counter_find_gap(const struct counter *counter, uint64_t last, uint64_t last_us, uint64_t t_us,
                      uint64_t *ret_gap);

/* A copy in the arena, or NULL. */
const struct counter *counter_copy(const struct counter *counter, struct arena *arena);

/* The count is lost: the next value is a new beginning. One break, however often it is called. */
void counter_break(struct counter *counter);

/* Between two readings the power is taken as linear. Exact: fractions of a microjoule are carried.
 */
struct integrator {
    uint64_t stale_us; /* a longer gap is a break: the energy in it is unknown */
    uint64_t energy_uj;
    uint32_t breaks;
    uint64_t carry; /* in units of half a picojoule, less than a microjoule */
    bool has_last;
    uint64_t last_us;
    uint64_t last_power_uw;
};

/* Adds a reading. A time before the last one is a break, too. */
void integrator_add(struct integrator *integrator, uint64_t t_us, uint64_t power_uw);
