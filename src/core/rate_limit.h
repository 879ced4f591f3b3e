/* Rate limit: an allowance of time that may be used, as a share of all time, with a burst. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/macros.h"

/* Zeroed but for the first two, the whole burst may be used. */
struct allowance {
    uint32_t percent; /* above 0 */
    uint64_t burst_us;
    uint64_t earned_us; /* when all that was used will have been earned */
};

/* When more may be used: a time that is past, or until which to wait. */
static inline uint64_t allowance_next_us(const struct allowance *allowance)
{
    uint64_t ahead_us = allowance->burst_us * 100 / allowance->percent;

    return allowance->earned_us - MIN(allowance->earned_us, ahead_us);
}

static inline void allowance_use(struct allowance *allowance, uint64_t used_us, uint64_t now_us)
{
    allowance->earned_us = MAX(allowance->earned_us, now_us) + used_us * 100 / allowance->percent;
}

/* Uses some if that is allowed now. */
static inline bool allowance_take(struct allowance *allowance, uint64_t used_us, uint64_t now_us)
{
    bool is_allowed = allowance_next_us(allowance) <= now_us;

    if (is_allowed)
        allowance_use(allowance, used_us, now_us);
    return is_allowed;
}
