/* The price of energy as the options tell it: --emissions-enabled, --emissions.*, --cost.*, --pue.
 */
#pragma once

#include "app/options.h"
#include "model/price.h"

/* -EINVAL: a zone whose factor nobody knows. */
int price_config_read(const struct options *options, struct price *ret_price, struct error *err);
