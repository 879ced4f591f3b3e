/*
 * Pace: when somebody should be asked next. After an answer at the interval, after a failure later
 * and later, and never at a moment that the nodes of a cluster have in common. Pure, but for the
 * random numbers that it is given.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct backoff {
    uint64_t interval_us;
    uint64_t (*draw)(void *context, uint64_t below); /* a random number */
    void *context;
    uint64_t due_us;
    unsigned failures; /* in a row */
};

/* The first time is within a minute or the interval, whichever is less; `is_again`, of who asked
 * before and died, in half to one and a half intervals. `interval_us` is not 0. */
void backoff_init(struct backoff *pace, uint64_t interval_us,
                  uint64_t (*draw)(void *context, uint64_t below), void *context, bool is_again,
                  uint64_t now_us);

/* In 0.9 to 1.1 intervals. */
void backoff_succeed(struct backoff *pace, uint64_t now_us);

/*
 * In half to all of a step, which begins at a minute or the interval, whichever is less, and
 * doubles up to an hour; it is an hour at once if the failure `lasts`. And not within `wait_us`,
 * for which the other side has asked; but what it asks for ends after six hours.
 */
void backoff_fail(struct backoff *pace, uint64_t now_us, bool lasts, uint64_t wait_us);
