#include "sources/resctrl/resctrl_counter.h"

#include "core/macros.h"

typedef unsigned __int128 u128;

/* No memory behind one L3 cache moves as much: an MI300A's has 5.3 TB/s. */
static const uint64_t BYTES_PER_SECOND_MAX = (uint64_t)8 * 1000 * 1000 * 1000 * 1000;

static bool is_plausible(uint64_t bytes, uint64_t elapsed_us)
{
    return (u128)bytes * USEC_PER_SEC <= (u128)BYTES_PER_SECOND_MAX * elapsed_us;
}

enum resctrl_step resctrl_counter_take(struct resctrl_counter *counter, uint64_t t_us,
                                       uint64_t value, uint64_t *ret_bytes)
{
    struct resctrl_counter before = *counter;

    if (before.has_last && value < before.last && !before.was_lower) {
        counter->was_lower = true;
        return RESCTRL_LOWER;
    }
    *counter = (struct resctrl_counter){.has_last = true, .last = value, .last_us = t_us};
    if (!before.has_last)
        return RESCTRL_FIRST;
    if (value < before.last)
        return RESCTRL_LOWER;
    if (!is_plausible(value - before.last, t_us - before.last_us))
        return RESCTRL_ABSURD;
    *ret_bytes = value - before.last;
    return RESCTRL_KNOWN;
}
