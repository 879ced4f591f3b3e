#include "emissions/factor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"

static const uint64_t BILLION = 1000000000;

bool factor_is_zone(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-_.";
    size_t len = strlen(text);

    return len > 0 && len < FACTOR_ZONE_BYTES && strspn(text, allowed) == len;
}

/* rate * numerator / denominator in mg, by way of the decimal that was parsed to the double: at
 * this size a double determines nine digits after the point. */
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

struct price_factor factor_yearly(const char *provider, struct span zone, uint64_t mg_per_kwh)
{
    struct price_factor factor = {
        .known = true,
        .ug_per_kwh = mg_per_kwh * 1000,
        .signal = PRICE_AVERAGE,
        .basis = PRICE_LIFECYCLE,
    };

    snprintf(factor.provider, sizeof(factor.provider), "%s", provider);
    snprintf(factor.zone, sizeof(factor.zone), "%.*s", (int)zone.len, zone.data);
    return factor;
}

struct price_factor factor_world(void)
{
    return factor_yearly("global", span_of("world"), 473007);
}
