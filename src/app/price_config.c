#include "app/price_config.h"

#include <errno.h>
#include <stdio.h>

/* All countries in 2024: Ember and the Energy Institute, processed by Our World in Data. */
static const struct price_factor world = {
    .known = true,
    .ug_per_kwh = 473007000,
    .provider = "global",
    .zone = "world",
    .signal = PRICE_AVERAGE,
    .basis = PRICE_LIFECYCLE,
};

static int read_factor(const struct options *options, struct price_factor *ret_factor,
                       struct error *err)
{
    const char *zone = options->emissions_zone ? options->emissions_zone : "";

    if (options_is_given(options, "emissions.factor")) {
        *ret_factor = (struct price_factor){
            .known = true,
            .ug_per_kwh = options->emissions_factor_ug,
            .provider = "constant",
        };
        snprintf(ret_factor->zone, sizeof(ret_factor->zone), "%s", zone);
        return 0;
    }
    if (zone[0])
        return error_set(err, -EINVAL,
                         "--emissions.zone: no factor is known for '%.80s'; give it with "
                         "--emissions.factor, or leave both out for the world's average",
                         zone);
    *ret_factor = world;
    return 0;
}

int price_config_read(const struct options *options, struct price *ret_price, struct error *err)
{
    struct price price = {.pue_millionths = options->pue_millionths};
    int r = options->emissions_enabled ? read_factor(options, &price.factor, err) : 0;

    if (r < 0)
        return r;
    if (options_is_given(options, "cost.price")) {
        price.cost = (struct price_cost){.known = true, .micro_per_kwh = options->cost_price_micro};
        snprintf(price.cost.currency, sizeof(price.cost.currency), "%s", options->cost_currency);
    }
    *ret_price = price;
    return 0;
}
