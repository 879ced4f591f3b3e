/* A tariff: the price of a kWh by month, day of the week and local time. A period over midnight
 * belongs to the day on which it begins. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { TARIFF_PERIODS_MAX = 64, TARIFF_DAY_MINUTES = 24 * 60 };

struct tariff_period {
    uint64_t micro_per_kwh;
    unsigned months;                 /* bits, as struct tm counts them: January is the lowest */
    unsigned days;                   /* likewise: Sunday is the lowest */
    unsigned from_minute, to_minute; /* of the day; to before from: over midnight. Never the same */
};

struct tariff {
    char currency[4];       /* ISO 4217 */
    char zone[64];          /* as time_zone_use() takes it; "": the machine's own */
    uint64_t micro_per_kwh; /* outside of the periods; like theirs at most PRICE_COST_MAX */
    struct tariff_period periods[TARIFF_PERIODS_MAX]; /* the first match counts */
    size_t period_count;
};

/* Ignores the year and the seconds. */
uint64_t tariff_price_at(const struct tariff *tariff, const struct tm *local);
