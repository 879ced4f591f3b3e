/* The pipeline as the options want it, and what energy costs by --cost.* and --pue. The emission
 * factor is chosen elsewhere (emissions_config.h). */
#pragma once

#include "attribution/pipeline.h"
#include "config/options.h"
#include "model/price.h"

/* With everything kept (`replay`), or with retention (`serve`). */
struct pipeline_options pipeline_config_options(const struct options *options,
                                                bool keep_everything);

void pipeline_config_price(const struct options *options, struct price *ret_price);

/* --emissions.embodied; without emissions none are known. */
struct embodied_rates pipeline_config_embodied(const struct options *options);
