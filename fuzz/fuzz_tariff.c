/* The file of a tariff: any bytes give one or an error with a text; one that was read has a price
 * at any minute, and it is one of its own. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "config/tariff_config.h"
#include "model/price.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_of(const struct tariff *tariff, uint64_t micro)
{
    if (micro == tariff->micro_per_kwh)
        return true;
    for (size_t i = 0; i < tariff->period_count; i++)
        if (micro == tariff->periods[i].micro_per_kwh)
            return true;
    return false;
}

static void check(const struct tariff *tariff)
{
    if (!price_is_currency(tariff->currency) || tariff->zone[0] == '/' || strchr(tariff->zone, '.'))
        abort();
    for (size_t i = 0; i < tariff->period_count; i++)
        if (tariff->periods[i].months == 0 || tariff->periods[i].days == 0 ||
            tariff->periods[i].from_minute == tariff->periods[i].to_minute ||
            tariff->periods[i].from_minute >= TARIFF_DAY_MINUTES ||
            tariff->periods[i].to_minute > TARIFF_DAY_MINUTES)
            abort();
    for (int minute = 0; minute < TARIFF_DAY_MINUTES; minute += 7) {
        struct tm local = {.tm_mon = minute % 12,
                           .tm_mday = 1 + minute % 2,
                           .tm_wday = minute % 5,
                           .tm_hour = minute / 60,
                           .tm_min = minute % 60};
        uint64_t micro = tariff_price_at(tariff, &local);

        if (micro > (uint64_t)PRICE_COST_MAX * 1000000 || !is_of(tariff, micro))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tariff tariff;
    struct error err = {{0}};
    int r =
        tariff_config_parse((struct span){(const char *)data, size}, "fuzz.yaml", &tariff, &err);

    if (r < 0 && err.text[0] == '\0')
        abort(); /* an error without a text helps nobody */
    if (r == 0)
        check(&tariff);
    return 0;
}
