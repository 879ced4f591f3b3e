/*
 * Counter: a hardware counter that begins again at 0, when it is full or when it was restarted,
 * made one that does not.
 *
 * A wrap looks like a reset, and two wraps look like none; what tells them apart is time. So there
 * is a bound to how fast it can plausibly count: what is faster, and what was not looked at for so
 * long that it may have gone round unseen, is a break. Nothing is added over a break: it is counted
 * on from the new value. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Zeroed, it has seen nothing; give it its limits before the first value. */
struct counter {
    uint64_t range;     /* the largest value, which stands for the same as 0; 0: it is never full */
    uint64_t max_per_s; /* more is not plausible */
    uint64_t max_gap_us; /* half of the shortest time for the whole range */
    bool has_last;
    uint64_t last, last_us;
    uint64_t total; /* never goes back */
    uint32_t breaks;
};

/* Also later, should the range have changed. The gap may be lowered afterwards. */
void counter_limit(struct counter *counter, uint64_t range, uint64_t max_per_s);

/* A value and when it was read; a time that goes back is a break, too. False if the value is above
 * the range, and the count lost with it; else `total` and `breaks` are up to date. */
bool counter_add(struct counter *counter, uint64_t t_us, uint64_t value);

/* The count is lost: the next value is a new beginning. Once for each loss, however often it is
 * told. */
void counter_break(struct counter *counter);
