/* The options of sources: the switches --collector.NAME, and the flags --model.*. */
#pragma once

#include "config/options.h"
#include "sources/source.h"

void source_switches_read(const struct options *options, struct source_switches *ret_switches);
bool source_switches_is_on(const struct options *options, const char *source);

void source_switches_read_model(const struct options *options, struct source_estimate *ret_model);

/* "rapl, hwmon": those that are off. NULL: none. */
const char *source_switches_list_off(const struct source_switches *switches, char *text,
                                     size_t size_bytes);
