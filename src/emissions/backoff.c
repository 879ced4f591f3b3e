#include "emissions/backoff.h"

#include "core/macros.h"

enum { DOUBLINGS_MAX = 32 }; /* from a microsecond to more than an hour */

static const uint64_t STEP_MIN_US = USEC_PER_SEC * 60, STEP_MAX_US = USEC_PER_SEC * 3600,
                      WAIT_MAX_US = USEC_PER_SEC * 3600 * 6;

static uint64_t first_step_us(const struct backoff *backoff)
{
    return MIN(STEP_MIN_US, backoff->interval_us);
}

static uint64_t draw_us(const struct backoff *backoff, uint64_t below_us)
{
    return backoff->draw(backoff->context, below_us);
}

void backoff_init(struct backoff *backoff, uint64_t interval_us,
                  uint64_t (*draw)(void *context, uint64_t below), void *context, bool is_restart,
                  uint64_t now_us)
{
    *backoff = (struct backoff){
        .interval_us = MIN(interval_us, UINT64_MAX / 4), /* sums with it do not overflow */
        .draw = draw,
        .context = context,
    };
    backoff->due_us =
        now_us + (is_restart ? backoff->interval_us / 2 + draw_us(backoff, backoff->interval_us)
                             : draw_us(backoff, first_step_us(backoff)));
}

void backoff_succeed(struct backoff *backoff, uint64_t now_us)
{
    uint64_t tenth_us = backoff->interval_us / 10;

    backoff->failures = 0;
    backoff->due_us = now_us + backoff->interval_us - tenth_us + draw_us(backoff, 2 * tenth_us + 1);
}

void backoff_fail(struct backoff *backoff, uint64_t now_us, bool is_permanent, uint64_t wait_us)
{
    uint64_t first_us = first_step_us(backoff);
    uint64_t step_us = is_permanent ? STEP_MAX_US : MIN(first_us << backoff->failures, STEP_MAX_US);
    uint64_t pause_us = step_us / 2 + draw_us(backoff, step_us - step_us / 2 + 1);

    /* Every node is sent away until the same moment. */
    if (wait_us > 0)
        pause_us =
            MAX(pause_us, MIN(wait_us, WAIT_MAX_US - first_us) + draw_us(backoff, first_us + 1));
    if (backoff->failures < DOUBLINGS_MAX)
        backoff->failures++;
    backoff->due_us = now_us + pause_us;
}
