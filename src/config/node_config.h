/* What the pipeline and the sources take from the options. The emission factor is in
 * emissions_config.h. */
#pragma once

#include "attribution/pipeline.h"
#include "config/options.h"
#include "model/price.h"
#include "sources/source.h"

/* `keep_everything`: no retention, for `replay` and `record`. */
struct pipeline_options node_config_pipeline(const struct options *options, bool keep_everything);

/* --cost.* and --pue. */
void node_config_price(const struct options *options, struct price *ret_price);

/* --emissions.embodied; none without emissions. */
struct embodied_rates node_config_embodied(const struct options *options);

/* --collector.NAME */
void node_config_switches(const struct options *options, struct source_switches *ret_switches);
bool node_config_is_on(const struct options *options, const char *source);

/* --model.* */
void node_config_model(const struct options *options, struct source_estimate *ret_model);

/* "rapl, hwmon": those that are off. NULL: none. */
const char *node_config_list_off(const struct source_switches *switches, char *text,
                                 size_t size_bytes);
