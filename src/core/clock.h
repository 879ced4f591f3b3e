/*
 * Clocks that tests can drive. Code that needs the time takes a `const struct clock *` and never
 * asks the system itself.
 */
#pragma once

#include <stdint.h>

struct clock {
    uint64_t (*realtime_us)(const struct clock *clock);  /* since the epoch; may step */
    uint64_t (*monotonic_us)(const struct clock *clock); /* never goes back */
};

/* The system's CLOCK_REALTIME and CLOCK_MONOTONIC. */
extern const struct clock clock_system;

/* A clock that stands still until it is moved. Both readings are `now_us`. */
struct clock_manual {
    struct clock clock; /* first: a pointer to this is a pointer to the whole */
    uint64_t now_us;
};

void clock_manual_init(struct clock_manual *manual, uint64_t now_us);
