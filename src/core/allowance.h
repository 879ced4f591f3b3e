/* Allowance: time that may be used, as a share of all time, and after a rest some more at once. */
#pragma once

#include <stdint.h>

struct allowance {
    uint32_t percent; /* above 0 */
    uint64_t burst_us;
    uint64_t earned_us; /* when all that was used will have been earned */
};

/* When more may be used: a time that is past, or until which to wait. */
uint64_t allowance_when(const struct allowance *allowance);

void allowance_use(struct allowance *allowance, uint64_t used_us, uint64_t now_us);
