/* The file of --config.file: a flat YAML mapping of flag names, without dashes, to values. */
#pragma once

#include "config/options.h"
#include "core/error.h"
#include "core/span.h"

/* Sets the options in the order of the text. Messages begin with FILE:LINE:COLUMN. After a failure
 * the options before it are set. */
int config_parse(struct span text, const char *file_name, struct options *options,
                 struct error *err);

/* Reads the file (may block as long as the file does), at most 1 MiB, and parses it. */
int config_load(const char *path, struct options *options, struct error *err);
