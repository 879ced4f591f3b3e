#include "app/price_config.h"

#include <errno.h>
#include <stdio.h>

#include "emissions/factor.h"
#include "emissions/owid.h"

enum { UG_PER_MG = 1000 };

static struct price_factor price_of(const struct emission_factor *factor)
{
    struct price_factor price = {
        .known = true,
        .ug_per_kwh = factor->mg_per_kwh * UG_PER_MG,
        .signal = factor->signal,
        .basis = factor->basis,
    };

    snprintf(price.provider, sizeof(price.provider), "%s", factor->provider);
    snprintf(price.zone, sizeof(price.zone), "%s", factor->zone);
    return price;
}

static int read_factor(const struct options *options, struct price_factor *ret_factor,
                       struct error *err)
{
    const char *zone = options->emissions_zone ? options->emissions_zone : "";
    struct emission_factor factor = factor_world();
    struct error why;

    if (options_is_given(options, "emissions.factor")) {
        *ret_factor = (struct price_factor){
            .known = true,
            .ug_per_kwh = options->emissions_factor_ug,
            .provider = "constant",
        };
        snprintf(ret_factor->zone, sizeof(ret_factor->zone), "%s", zone);
        return 0;
    }
    if (zone[0] && owid_of_country(zone, &factor, &why) < 0)
        return error_set(
            err, -EINVAL,
            "--emissions.zone: no factor is known for '%.80s'; give a country as FR or "
            "FRA, or the factor itself with --emissions.factor, or neither for the "
            "world's average",
            zone);
    *ret_factor = price_of(&factor);
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
