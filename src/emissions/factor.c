#include "emissions/factor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

enum { UG_PER_MG = 1000 };

static const uint64_t BILLION = 1000000000;

bool factor_is_plausible(const struct emission_factor *factor)
{
    return factor->mg_per_kwh <= FACTOR_MAX_MG;
}

bool factor_is_zone(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.";
    size_t len = strlen(text);

    return len > 0 && len < FACTOR_ZONE_BYTES && strspn(text, allowed) == len;
}

/* rate * numerator / denominator in mg, by way of the decimal that the double was: a double of this
 * size is nearer to its nine digits than to any others. */
static int convert(double rate, uint64_t numerator, uint64_t denominator, uint64_t *ret_mg)
{
    double rate_max = (double)FACTOR_MAX_MG * (double)denominator / (double)numerator;
    uint64_t billionths, mg;

    if (!(rate >= 0) || !(rate <= rate_max + 1))
        return -ERANGE;
    billionths = (uint64_t)(rate * (double)BILLION + 0.5);
    denominator *= BILLION;
    mg = (uint64_t)(((unsigned __int128)billionths * numerator + denominator / 2) / denominator);
    if (mg > FACTOR_MAX_MG)
        return -ERANGE;
    *ret_mg = mg;
    return 0;
}

int factor_from_grams(double grams_per_kwh, uint64_t *ret_mg)
{
    return convert(grams_per_kwh, 1000, 1, ret_mg);
}

/* A pound is 0.45359237 kg by definition. */
int factor_from_pounds(double pounds_per_mwh, uint64_t *ret_mg)
{
    return convert(pounds_per_mwh, 45359237, 100000, ret_mg);
}

int factor_parse_grams(struct span text, uint64_t *ret_mg)
{
    uint64_t millionths;
    int r = parse_millionths(text, &millionths);

    if (r < 0)
        return r;
    if (millionths > FACTOR_MAX_MG * (uint64_t)1000)
        return -ERANGE;
    *ret_mg = (millionths + 500) / 1000;
    return 0;
}

uint64_t factor_ug(const struct emission_factor *factor)
{
    return factor->mg_per_kwh * UG_PER_MG;
}

struct price_factor factor_price(const struct emission_factor *factor)
{
    struct price_factor price = {
        .known = true,
        .ug_per_kwh = factor_ug(factor),
        .signal = factor->signal,
        .basis = factor->basis,
    };

    snprintf(price.provider, sizeof(price.provider), "%s", factor->provider);
    snprintf(price.zone, sizeof(price.zone), "%s", factor->zone);
    return price;
}

struct emission_factor factor_world(void)
{
    return (struct emission_factor){
        .provider = "global",
        .zone = "world",
        .signal = PRICE_AVERAGE,
        .basis = PRICE_LIFECYCLE,
        .mg_per_kwh = 473007,
    };
}
