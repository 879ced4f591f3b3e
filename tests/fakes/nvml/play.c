/* The clock of the fake. */
#include "play.h"

#include <stdlib.h>
#include <time.h>

static uint64_t clock_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* By how much the wall clock is ahead of the monotonic one. */
static uint64_t wall_offset_us(void)
{
    return clock_us(CLOCK_REALTIME) - clock_us(CLOCK_MONOTONIC);
}

void play_clock_start(struct play_clock *clock)
{
    const char *speed = getenv("FAKE_NVML_SPEED"), *start = getenv("FAKE_NVML_START_US");

    if (clock->started)
        return;
    clock->started = true;
    clock->start_us =
        start ? strtoull(start, NULL, 10) - wall_offset_us() : clock_us(CLOCK_MONOTONIC);
    clock->speed = speed ? strtod(speed, NULL) : 1;
    if (!(clock->speed > 0 && clock->speed <= 1e6))
        clock->speed = 1;
}

static uint64_t elapsed_us(const struct play_clock *clock)
{
    uint64_t now_us;

    if (clock->manual)
        return clock->manual_us;
    now_us = clock_us(CLOCK_MONOTONIC);
    return clock->started && now_us > clock->start_us
               ? (uint64_t)((double)(now_us - clock->start_us) * clock->speed)
               : 0;
}

struct play play_now(const struct play_clock *clock, const struct scenario *scenario)
{
    struct play play = {.elapsed_us = elapsed_us(clock)};
    uint64_t period_us = scenario->loop_us ? scenario->loop_us - scenario->start_us : 0;

    if (period_us > 0)
        play.round = play.elapsed_us / period_us;
    play.t_us = scenario->start_us + play.elapsed_us - play.round * period_us;
    return play;
}

int64_t play_elapsed_us(const struct scenario *scenario, uint64_t round, uint64_t t_us)
{
    uint64_t period_us = scenario->loop_us ? scenario->loop_us - scenario->start_us : 0;

    return (int64_t)(t_us - scenario->start_us + round * period_us);
}

uint64_t play_stamp_us(const struct play_clock *clock, const struct scenario *scenario,
                       int64_t elapsed)
{
    return (clock->manual ? scenario->start_us : clock->start_us + wall_offset_us()) +
           (uint64_t)elapsed;
}
