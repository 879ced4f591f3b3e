/*
 * Integrator: energy from power that is read now and then, where there is no counter.
 *
 * Between two readings the power is taken to have run straight from one to the other. Pure, and
 * exact: what is less than a microjoule is carried on, not dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct integrator {
    uint64_t stale_us; /* a gap that is longer is a break: nobody knows what was used meanwhile */
    uint64_t energy_uj;
    uint32_t breaks;
    uint64_t carry; /* in units of half a picojoule, less than a microjoule */
    bool has_last;
    uint64_t last_us;
    uint64_t last_power_uw;
};

/* Adds a reading. A time before the last one is a break, too. */
void integrator_add(struct integrator *integrator, uint64_t t_us, uint64_t power_uw);
