/* The file of --cost.tariff-file: YAML, see docs/emissions.md. */
#pragma once

#include "core/error.h"
#include "core/span.h"
#include "model/price.h"

/* Errors begin with FILE:LINE:COLUMN where there is one. */
int tariff_config_parse(struct span text, const char *file_name, struct tariff *ret_tariff,
                        struct error *err);
int tariff_config_load(const char *path, struct tariff *ret_tariff, struct error *err);

/*
 * Sets the time zone of the process, for localtime_r(); everything else is in UTC. "": keep the
 * machine's own, which TZ may set. Call it before any thread starts: the environment changes.
 * -ENOENT: the zone is unknown here, for which glibc would silently use UTC.
 */
int tariff_config_use_zone(const char *name, struct error *err);
