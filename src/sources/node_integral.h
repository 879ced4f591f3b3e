/* The energy of the node from readings of its power: trapezoids, in whole numbers, nothing lost by
 * rounding. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct node_integral {
    bool has_last;
    uint64_t last_us, last_mw;
    uint64_t counter_uj;
    uint32_t carry; /* what is not a whole microjoule yet, in halves of a nanojoule */
    uint32_t breaks;
};

/* A reading, at a time of a clock that never goes back. What lies further back than `hold_us` is
 * not filled in: that is a break, and the count goes on from here. */
void node_integral_add(struct node_integral *integral, uint64_t at_us, uint64_t power_mw,
                       uint64_t hold_us);
