/* Dividing an integer without losing any of it. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
