#include "model/counter.h"

#include "core/macros.h"

typedef unsigned __int128 u128;

/* Registers are updated in steps, and the thread may be delayed between the clock and the read. */
static const uint64_t JITTER_US = 100000;

void counter_limit(struct counter *counter, uint64_t range, uint64_t max_per_s)
{
    u128 gap_us = (u128)range * USEC_PER_SEC / 2 / MAX(max_per_s, (uint64_t)1);

    counter->range = range;
    counter->max_per_s = max_per_s;
    counter->max_gap_us = range > 0 ? (uint64_t)MIN(gap_us, (u128)UINT64_MAX) : UINT64_MAX;
}

/* What was counted since the last value. False: unknown. */
static bool find_delta(const struct counter *counter, uint64_t t_us, uint64_t value,
                       uint64_t *ret_delta)
{
    /* The range may have changed since. */
    uint64_t last = counter->range > 0 ? MIN(counter->last, counter->range) : counter->last;
    uint64_t elapsed_us = t_us - counter->last_us;
    u128 most = (u128)counter->max_per_s * ((u128)elapsed_us + JITTER_US) / USEC_PER_SEC;

    if (t_us < counter->last_us || elapsed_us > counter->max_gap_us)
        return false;
    if (value < last && counter->range == 0)
        return false;
    *ret_delta = value >= last ? value - last : counter->range - last + value;
    return *ret_delta <= most;
}

bool counter_add(struct counter *counter, uint64_t t_us, uint64_t value)
{
    uint64_t delta, total;

    if (counter->range > 0 && value > counter->range) {
        counter_break(counter);
        return false;
    }
    if (counter->has_last) {
        if (find_delta(counter, t_us, value, &delta) &&
            !__builtin_add_overflow(counter->total, delta, &total))
            counter->total = total;
        else
            counter->breaks++;
    }
    counter->has_last = true;
    counter->last = value;
    counter->last_us = t_us;
    return true;
}

bool counter_find_gap(const struct counter *counter, uint64_t last, uint64_t last_us, uint64_t t_us,
                      uint64_t *ret_gap)
{
    struct counter before = *counter;

    before.last = last;
    before.last_us = last_us;
    return find_delta(&before, t_us, counter->last, ret_gap);
}

const struct counter *counter_copy(const struct counter *counter, struct arena *arena)
{
    struct counter *copy = arena_alloc(arena, sizeof(*copy));

    if (copy)
        *copy = *counter;
    return copy;
}

void counter_break(struct counter *counter)
{
    if (counter->has_last)
        counter->breaks++;
    counter->has_last = false;
}

/* (P + P') x dt, in uW x us = pJ, is twice the area. */
static const uint64_t HALF_PICOJOULES_PER_UJ = 2000000;

void integrator_add(struct integrator *integrator, uint64_t t_us, uint64_t power_uw)
{
    uint64_t dt_us = t_us - integrator->last_us;
    u128 area = ((u128)integrator->last_power_uw + power_uw) * dt_us + integrator->carry;

    if (integrator->has_last && (t_us < integrator->last_us || dt_us > integrator->stale_us)) {
        integrator->breaks++;
    } else if (integrator->has_last) {
        integrator->energy_uj += (uint64_t)(area / HALF_PICOJOULES_PER_UJ);
        integrator->carry = (uint64_t)(area % HALF_PICOJOULES_PER_UJ);
    }
    integrator->has_last = true;
    integrator->last_us = t_us;
    integrator->last_power_uw = power_uw;
}
