#include "config/price_config.h"

#include <stdio.h>

void price_config_read(const struct options *options, struct price *ret_price)
{
    struct price price = {.pue_millionths = options->pue_millionths};

    if (options_is_given(options, "cost.price")) {
        price.cost = (struct price_cost){.known = true, .micro_per_kwh = options->cost_price_micro};
        snprintf(price.cost.currency, sizeof(price.cost.currency), "%s", options->cost_currency);
    }
    *ret_price = price;
}

struct embodied_rates price_config_embodied(const struct options *options)
{
    return options->emissions_enabled ? options->emissions_embodied : (struct embodied_rates){0};
}
