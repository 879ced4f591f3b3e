/* Numbers that look random and are the same in every run (xorshift64*, Vigna 2016). */
#pragma once

#include <stdint.h>

struct random_source {
    uint64_t state; /* never 0 */
};

static uint64_t random_u64(struct random_source *source)
{
    source->state ^= source->state >> 12;
    source->state ^= source->state << 25;
    source->state ^= source->state >> 27;
    return source->state * 0x2545f4914f6cdd1dULL;
}

/* From 0 up to, but not, 1. */
static double random_part(struct random_source *source)
{
    return (double)(random_u64(source) >> 11) * 0x1p-53;
}
