/*
 * Types of flags: each function checks one value and stores it. The table of flags names them, with
 * what they need: member, limits, words.
 */
#pragma once

#include "config/options.h"

/* What fits into a sockaddr_un. */
enum { OPTION_TYPE_SOCKET_PATH_MAX = 107 };

/* How a kind of number is written. */
struct option_type_number {
    int (*parse)(struct span text, uint64_t *ret_value);
    uint64_t unit;           /* 0: it is a duration */
    const char *noun, *hint; /* for messages */
};
extern const struct option_type_number option_type_duration, option_type_count;
extern const struct option_type_number option_type_decimal; /* in millionths, as are its limits */

options_setter option_type_number;
options_setter option_type_word;
options_setter option_type_switch;
options_setter option_type_text;
options_setter option_type_absolute_path;
options_setter option_type_list; /* a struct options_list */
options_setter option_type_metric_prefix;
options_setter option_type_metrics_path;
options_setter option_type_compat;
options_setter option_type_currency;
options_setter option_type_gpu_idle; /* [GPU=]WATTS, in millionths as `max` is */
options_setter option_type_embodied; /* METER=GRAMS, in millionths as `max` is */

options_describer option_type_describe_range;
options_describer option_type_describe_words;
