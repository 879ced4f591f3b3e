/* A clock that tests can drive: code that needs the time takes a `const struct clock *`. */
#pragma once

#include <stdint.h>

struct clock {
    uint64_t (*realtime_us)(const struct clock *clock);  /* since the epoch; may step */
    uint64_t (*monotonic_us)(const struct clock *clock); /* never goes back */
};

/* The system's CLOCK_REALTIME and CLOCK_MONOTONIC. */
extern const struct clock clock_system;
