/* What the pipeline and the sources take from the options. The emission factor is in
 * emissions_config.h. */
#pragma once

#include "attribution/pipeline.h"
#include "config/options.h"
#include "model/price.h"
#include "model/price.h"
#include "sources/source.h"

/* `keep_everything`: no retention, for `replay` and `record`. */
struct pipeline_options pipeline_config_options(const struct options *options,
                                                bool keep_everything);

/* --cost.* and --pue. */
void pipeline_config_price(const struct options *options, struct price *ret_price);

/* --emissions.embodied; none without emissions. */
struct embodied_rates pipeline_config_embodied(const struct options *options);

/* --collector.NAME */
void source_switches_read(const struct options *options, struct source_switches *ret_switches);
bool source_switches_is_on(const struct options *options, const char *source);

/* --model.* */
void source_switches_read_model(const struct options *options, struct source_estimate *ret_model);

/* "rapl, hwmon": those that are off. NULL: none. */
const char *source_switches_list_off(const struct source_switches *switches, char *text,
                                     size_t size_bytes);
