/* What the options say of sources: the switches --collector.NAME, one for each of the table but the
 * replay and the model, which are asked for by flags of their own, and that model. */
#pragma once

#include "config/options.h"
#include "sources/estimate/estimate.h"
#include "sources/switches.h"

void source_switches_read(const struct options *options, struct source_switches *ret_switches);

void source_switches_read_model(const struct options *options, struct source_estimate *ret_model);

/* "rapl, hwmon": those that are off. NULL: none is. */
const char *source_switches_list_off(const struct source_switches *switches, char *text,
                                     size_t size_bytes);
