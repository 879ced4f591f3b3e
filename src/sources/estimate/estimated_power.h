/*
 * A model of what a machine draws: so much when it does nothing, so much when all of its CPUs are
 * busy, and a straight line in between. Energy from CPU time; pure, and exact: what is less than a
 * microjoule is carried on, not dropped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct estimated_power {
    uint64_t idle_uw, full_uw; /* the first is not above the second */

    uint64_t idle_uj, active_uj; /* so far: the sum is what the machine has used */
    uint32_t breaks;             /* how often CPU time went back: that interval is not counted */
    uint64_t idle_carry_pj, active_carry_pj;
    bool has_last;
    uint64_t last_us, last_busy_us, last_capacity_us;
};

/* Adds a reading: CPU time since boot, of all CPUs. One without any tick since the last waits for
 * the next. */
void estimated_power_add(struct estimated_power *model, uint64_t t_us, uint64_t busy_us,
                         uint64_t capacity_us);
