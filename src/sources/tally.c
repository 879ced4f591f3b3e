#include "sources/tally.h"

#include "sources/plausible.h"

static bool is_plausible(const struct tally *tally, uint64_t t_us, uint64_t counter_uj)
{
    if (t_us < tally->last_us || counter_uj < tally->last_counter_uj)
        return false;
    return (unsigned __int128)(counter_uj - tally->last_counter_uj) * 1000000 <=
           (unsigned __int128)(t_us - tally->last_us) * PLAUSIBLE_POWER_MAX_UW;
}

void tally_add(struct tally *tally, uint64_t t_us, uint64_t counter_uj)
{
    if (tally->has_last) {
        if (tally->restarted || !is_plausible(tally, t_us, counter_uj))
            tally->breaks++;
        else
            tally->energy_uj += counter_uj - tally->last_counter_uj;
    }
    tally->has_last = true;
    tally->restarted = false;
    tally->last_us = t_us;
    tally->last_counter_uj = counter_uj;
}

void tally_restart(struct tally *tally)
{
    tally->restarted = true;
}
