#include "model/price.h"

#include <time.h>

const char *const price_signal_words[PRICE_SIGNALS] = {"unstated", "average", "marginal"};
const char *const price_basis_words[PRICE_BASES] = {"unstated", "lifecycle", "direct"};

static bool is_on(const struct tariff_period *period, int month, int weekday)
{
    return period->months >> month & 1 && period->days >> weekday & 1;
}

static bool holds(const struct tariff_period *period, const struct tm *local)
{
    unsigned minute = (unsigned)(local->tm_hour * 60 + local->tm_min);
    int month_yesterday = local->tm_mday > 1 ? local->tm_mon : (local->tm_mon + 11) % 12;
    bool is_today = is_on(period, local->tm_mon, local->tm_wday);
    bool was_yesterday = is_on(period, month_yesterday, (local->tm_wday + 6) % 7);

    if (period->from_minute < period->to_minute)
        return is_today && minute >= period->from_minute && minute < period->to_minute;
    return (is_today && minute >= period->from_minute) ||
           (was_yesterday && minute < period->to_minute);
}

uint64_t tariff_price_at(const struct tariff *tariff, const struct tm *local)
{
    for (size_t i = 0; i < tariff->period_count; i++)
        if (holds(&tariff->periods[i], local))
            return tariff->periods[i].micro_per_kwh;
    return tariff->micro_per_kwh;
}
