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

static uint64_t manual_now(const struct clock *clock)
{
    return ((const struct clock_manual *)clock)->now_us;
}

void clock_manual_init(struct clock_manual *manual, uint64_t now_us)
{
    *manual = (struct clock_manual){{manual_now, manual_now}, now_us};
}
