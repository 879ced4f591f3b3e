/*
 * The clock of the fake, and where in the trace it stands. It runs with CLOCK_MONOTONIC from the
 * first nvmlInit on, or stands where a test puts it. Hardware counts on when the wall clock is set;
 * the times that NVML hands out follow it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scenario.h"

struct play_clock {
    bool started;
    bool manual;
    uint64_t manual_us;
    uint64_t start_us;
    double speed;
};

/* A moment: the time since the start, over all rounds, and the time of the trace. */
struct play {
    uint64_t elapsed_us;
    uint64_t round;
    uint64_t t_us;
};

/* Starts it, once; reads FAKE_NVML_SPEED. */
void play_clock_start(struct play_clock *clock);

struct play play_now(const struct play_clock *clock, const struct scenario *scenario);

/* A time of the trace in a round as time since the start; before the start it is negative. */
int64_t play_elapsed_us(const struct scenario *scenario, uint64_t round, uint64_t t_us);

/* A time since the start as the time that NVML hands out, in us since the epoch. */
uint64_t play_stamp_us(const struct play_clock *clock, const struct scenario *scenario,
                       int64_t elapsed);
