/*
 * What one counter of memory traffic says, from one reading to the next. Pure.
 *
 * The kernel widens the hardware's counter to 64 bits, so it does not wrap; but it begins anew when
 * the hardware gives the counter to somebody else. And what a class does beside the groups in it is
 * a difference of numbers read one after another: it may go back a little, or far for once, if a
 * group went away in between. So a value that is lower is believed when it is seen twice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Zeroed, it has seen nothing. */
struct resctrl_counter {
    bool has_last;
    bool was_lower;
    uint64_t last, last_us;
};

enum resctrl_step {
    RESCTRL_FIRST,
    RESCTRL_KNOWN,
    RESCTRL_LOWER,
    RESCTRL_ABSURD, /* nothing can move so much in that time */
};

/* Takes a value that was read at a time that never goes back. Writes what was counted since the
 * last one if that is known, and nothing else. */
enum resctrl_step resctrl_counter_take(struct resctrl_counter *counter, uint64_t t_us,
                                       uint64_t value, uint64_t *ret_bytes);
