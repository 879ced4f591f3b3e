/*
 * Tally: what a hardware counter of energy has counted since it was first read.
 *
 * A counter that goes back was restarted, and one that jumps further than any node can draw
 * answered nonsense, now or before: both are breaks, after which it is counted on from the new
 * value. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tally {
    uint64_t energy_uj;
    uint32_t breaks;
    bool has_last;
    bool restarted;
    uint64_t last_us;
    uint64_t last_counter_uj;
};

/* Adds a reading. */
void tally_add(struct tally *tally, uint64_t t_us, uint64_t counter_uj);

/* Somebody knows that the counter was lost: the next reading begins anew whatever it is. */
void tally_restart(struct tally *tally);
