#include "core/allowance.h"

#include "core/macros.h"

static uint64_t earn_us(const struct allowance *allowance, uint64_t used_us)
{
    return used_us * 100 / allowance->percent;
}

uint64_t allowance_when(const struct allowance *allowance)
{
    uint64_t ahead_us = earn_us(allowance, allowance->burst_us);

    return allowance->earned_us - MIN(allowance->earned_us, ahead_us);
}

void allowance_use(struct allowance *allowance, uint64_t used_us, uint64_t now_us)
{
    allowance->earned_us = MAX(allowance->earned_us, now_us) + earn_us(allowance, used_us);
}
