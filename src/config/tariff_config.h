/* The file of --cost.tariff-file: YAML, see docs/emissions.md. */
#pragma once

#include "core/error.h"
#include "core/span.h"
#include "model/price.h"

/* Errors begin with FILE:LINE:COLUMN where there is one. */
int tariff_config_parse(struct span text, const char *file_name, struct tariff *ret_tariff,
                        struct error *err);
int tariff_config_load(const char *path, struct tariff *ret_tariff, struct error *err);
