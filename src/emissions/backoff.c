#include "emissions/backoff.h"

#include "core/macros.h"

enum { DOUBLINGS_MAX = 32 }; /* from a microsecond to more than an hour */

static const uint64_t STEP_MIN_US = USEC_PER_SEC * 60, STEP_MAX_US = USEC_PER_SEC * 3600,
                      WAIT_MAX_US = USEC_PER_SEC * 3600 * 6;

static uint64_t first_step_us(const struct backoff *pace)
{
    return MIN(STEP_MIN_US, pace->interval_us);
}

void backoff_init(struct backoff *pace, uint64_t interval_us,
                  uint64_t (*draw)(void *context, uint64_t below), void *context, bool is_again,
                  uint64_t now_us)
{
    *pace = (struct backoff){
        .interval_us = MIN(interval_us, UINT64_MAX / 4), /* sums with it do not overflow */
        .draw = draw,
        .context = context,
    };
    pace->due_us = is_again ? now_us + pace->interval_us / 2 + draw(context, pace->interval_us)
                            : now_us + draw(context, first_step_us(pace));
}

void backoff_succeed(struct backoff *pace, uint64_t now_us)
{
    uint64_t tenth_us = pace->interval_us / 10;

    pace->failures = 0;
    pace->due_us =
        now_us + pace->interval_us - tenth_us + pace->draw(pace->context, 2 * tenth_us + 1);
}

/* Whoever is told to come back at a time is not the only one. */
static uint64_t spread_us(const struct backoff *pace, uint64_t wait_us)
{
    uint64_t step_us = first_step_us(pace);

    if (wait_us == 0)
        return 0;
    return MIN(wait_us, WAIT_MAX_US - step_us) + pace->draw(pace->context, step_us + 1);
}

void backoff_fail(struct backoff *pace, uint64_t now_us, bool lasts, uint64_t wait_us)
{
    uint64_t step_us =
        lasts ? STEP_MAX_US : MIN(first_step_us(pace) << pace->failures, STEP_MAX_US);
    uint64_t pause_us = step_us / 2 + pace->draw(pace->context, step_us - step_us / 2 + 1);
    uint64_t wanted_us = spread_us(pace, wait_us);

    if (pace->failures < DOUBLINGS_MAX)
        pace->failures++;
    pace->due_us = now_us + MAX(pause_us, wanted_us);
}
