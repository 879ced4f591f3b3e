#include "core/clock.h"

#include <time.h>

#include "core/macros.h"

static uint64_t read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / 1000;
}

static uint64_t system_realtime(const struct clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_REALTIME);
}

static uint64_t system_monotonic(const struct clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_MONOTONIC);
}

const struct clock clock_system = {system_realtime, system_monotonic};
