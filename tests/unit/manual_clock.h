/* A clock that stands still until a test moves it. Both readings are `now_us`. */
#pragma once

#include "core/clock.h"

struct clock_manual {
    struct clock clock; /* first: a pointer to this is a pointer to the whole */
    uint64_t now_us;
};

static inline uint64_t clock_manual_now(const struct clock *clock)
{
    return ((const struct clock_manual *)clock)->now_us;
}

static inline void clock_manual_init(struct clock_manual *manual, uint64_t now_us)
{
    *manual = (struct clock_manual){{clock_manual_now, clock_manual_now}, now_us};
}
