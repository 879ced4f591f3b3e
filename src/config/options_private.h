/* What the files of options share. */
#pragma once

#include "config/options.h"

/* As it is written: a row is a flag, or stands for those of another table (`expand`). */
extern const struct options_flag options_rows[];
extern const size_t options_row_count;

bool options_expand_sources(size_t index, struct options_flag *ret_flag);
bool options_expand_runtimes(size_t index, struct options_flag *ret_flag);

options_describer options_describe_providers;
options_describer options_describe_keys;
