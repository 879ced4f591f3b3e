/* The options of the pipeline, and the price of energy by --cost.* and --pue. The emission factor
 * is in emissions_config.h. */
#pragma once

#include "attribution/pipeline.h"
#include "config/options.h"
#include "model/embodied.h"
#include "model/price.h"

/* `keep_everything`: no retention, for `replay` and `record`. */
struct pipeline_options pipeline_config_options(const struct options *options,
                                                bool keep_everything);

void pipeline_config_price(const struct options *options, struct price *ret_price);

/* --emissions.embodied; none without emissions. */
struct embodied_rates pipeline_config_embodied(const struct options *options);
