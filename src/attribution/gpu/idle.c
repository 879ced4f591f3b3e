#include "attribution/gpu/idle.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

enum { QUANTILE_DIVISOR = 10, QUIET_DIVISOR = 50 };

/* How far a resting board may be above its idle level, as a part of it: it warms up. */
enum { IDLE_MARGIN_PART = 8 };

static int ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void idle_learn(struct idle_levels *levels, bool context, uint64_t energy_uj, uint64_t duration_us)
{
    struct idle_level *level = context ? &levels->with_context : &levels->without_context;
    uint32_t sorted[IDLE_MEMORY];
    uint64_t power_mw;

    if (duration_us == 0 || levels->is_fixed)
        return;
    power_mw = (uint64_t)((unsigned __int128)energy_uj * 1000 / duration_us);
    level->seen_mw[level->next] = (uint32_t)MIN(power_mw, (uint64_t)UINT32_MAX);
    level->next = (level->next + 1) % IDLE_MEMORY;
    level->count = MIN(level->count + 1, (size_t)IDLE_MEMORY);

    memcpy(sorted, level->seen_mw, level->count * sizeof(sorted[0]));
    qsort(sorted, level->count, sizeof(sorted[0]), ascending);
    level->level_mw = sorted[(level->count - 1) / QUANTILE_DIVISOR];
}

static uint64_t energy_at(uint64_t power_mw, uint64_t duration_us)
{
    return (uint64_t)((unsigned __int128)power_mw * duration_us / 1000);
}

/* A board never seen with a context has only the floor. */
uint64_t idle_level_mw(const struct idle_levels *levels, bool context)
{
    if (levels->is_fixed)
        return levels->fixed_mw;
    return context ? MAX(levels->with_context.level_mw, levels->without_context.level_mw)
                   : levels->without_context.level_mw;
}

struct idle_part idle_split(const struct idle_levels *levels, bool context, uint64_t energy_uj,
                            uint64_t duration_us)
{
    uint64_t floor_mw = idle_level_mw(levels, false);
    uint64_t level_mw = idle_level_mw(levels, context);
    struct idle_part part;

    /* A board never seen without a context has only the floor. */
    if (floor_mw == 0)
        floor_mw = level_mw;
    part.floor_uj = MIN(energy_at(floor_mw, duration_us), energy_uj);
    part.step_uj = MIN(energy_at(level_mw, duration_us), energy_uj) - part.floor_uj;
    return part;
}

bool idle_is_exceeded(const struct idle_levels *levels, uint64_t energy_uj, uint64_t duration_us)
{
    uint64_t floor_mw = idle_level_mw(levels, false);
    uint64_t level_mw = levels->is_fixed ? floor_mw : levels->with_context.level_mw;
    uint64_t most_mw = level_mw > 0 ? level_mw + level_mw / IDLE_MARGIN_PART : 2 * floor_mw;

    return most_mw > 0 && energy_uj > energy_at(most_mw, duration_us);
}

uint64_t idle_floor(struct idle_levels *levels, uint64_t busy_us, uint64_t capacity_us,
                    uint64_t energy_uj, uint64_t duration_us)
{
    if (busy_us <= capacity_us / QUIET_DIVISOR)
        idle_learn(levels, false, energy_uj, duration_us);
    return idle_split(levels, false, energy_uj, duration_us).floor_uj;
}
