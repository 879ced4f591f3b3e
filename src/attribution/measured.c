#include "attribution/measured.h"

#include "core/macros.h"
#include "model/counter.h"

/* A counter that stands still is between two of its ticks, or for so long without power. */
static const uint64_t STILL_US = 5 * USEC_PER_SEC;

/* A BMC is polled every 10 s, and may be late; others are read at least every few seconds. */
static const uint64_t SILENT_US = 20 * USEC_PER_SEC, NODE_SILENT_US = 60 * USEC_PER_SEC;

static bool is_plausible(uint64_t energy_uj, uint64_t elapsed_us)
{
    return (unsigned __int128)energy_uj * USEC_PER_SEC <=
           (unsigned __int128)PLAUSIBLE_POWER_MAX_UW * (elapsed_us + USEC_PER_SEC);
}

void measured_take(struct measured *measured, uint64_t t_us, uint64_t counter_uj, uint64_t breaks,
                   bool is_modelled, struct history *history)
{
    uint64_t energy_uj = counter_uj - measured->counter_uj, elapsed_us = t_us - measured->read_us;
    bool is_next = measured->read_us > 0 && breaks == measured->breaks &&
                   t_us >= measured->read_us && (int64_t)energy_uj >= 0 &&
                   is_plausible(energy_uj, elapsed_us);

    if (is_next && energy_uj == 0 && elapsed_us < STILL_US)
        return;
    if (is_next) {
        if (measured->since_us == 0)
            measured->since_us = measured->read_us;
        ledger_power_add(&measured->power, energy_uj, measured->read_us, t_us);
        history_measure(history, energy_uj, measured->read_us, t_us, is_modelled);
    }
    if (t_us < measured->power.until_us) { /* the clock was set back */
        measured->since_us = t_us - MIN(measured->power.until_us - measured->since_us, t_us - 1);
        measured->power.until_us = t_us;
    }
    measured->counter_uj = counter_uj;
    measured->read_us = t_us;
    measured->breaks = breaks;
    measured->is_modelled = is_modelled;
}

bool measured_is_silent(const struct measured *measured, enum meter_kind kind, uint64_t now_us)
{
    uint64_t limit_us = kind == METER_NODE_OVERHEAD ? NODE_SILENT_US : SILENT_US;

    return measured->read_us == 0 || measured->read_us + limit_us < now_us;
}

double measured_power_mw(const struct measured *measured)
{
    return measured->since_us == 0
               ? -1
               : ledger_power_since(measured->power.power_mw, measured->since_us,
                                    measured->power.until_us);
}
