/* What energy costs as the options tell it: --cost.*, --pue. Its emission factor is chosen
 * elsewhere (emissions_config.h). */
#pragma once

#include "config/options.h"
#include "model/embodied.h"
#include "model/price.h"

void price_config_read(const struct options *options, struct price *ret_price);

/* --emissions.embodied; without emissions none are known. */
struct embodied_rates price_config_embodied(const struct options *options);
