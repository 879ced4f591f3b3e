/* The switches --collector.NAME, one for each source of the table but the replay. */
#pragma once

#include "app/options.h"
#include "sources/switches.h"

void collectors_read(const struct options *options, struct source_switches *ret_switches);

/* "rapl, hwmon": those that are off. NULL: none is. */
const char *collectors_list_off(const struct source_switches *switches, char *text,
                                size_t size_bytes);
