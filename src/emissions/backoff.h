/*
 * When to poll next: at the interval after a success, later and later after failures, and never in
 * step with the other nodes of a cluster. Pure, given its random numbers.
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

/* First due within a minute or the interval, whichever is less; `is_restart`, after a process that
 * polled before has died, in 0.5 to 1.5 intervals. `interval_us` is not 0. */
void backoff_init(struct backoff *backoff, uint64_t interval_us,
                  uint64_t (*draw)(void *context, uint64_t below), void *context, bool is_restart,
                  uint64_t now_us);

/* Due in 0.9 to 1.1 intervals. */
void backoff_succeed(struct backoff *backoff, uint64_t now_us);

/*
 * Due in 0.5 to 1 steps. A step starts at a minute or the interval, whichever is less, and doubles
 * up to an hour; a permanent failure takes an hour at once. Never within `wait_us`, as the service
 * demands, up to six hours.
 */
void backoff_fail(struct backoff *backoff, uint64_t now_us, bool is_permanent, uint64_t wait_us);
