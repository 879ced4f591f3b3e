/*
 * Setters: one value checked and stored, one function per kind of value. The table of options names
 * them; what they need to know (member, limits, words) stands beside them there.
 */
#pragma once

#include <stddef.h>

#include "config/options.h"

/* What fits into a sockaddr_un. */
enum { OPTION_TYPE_SOCKET_PATH_MAX = 107 };

/* A word that an option takes. */
struct option_type_word {
    const char *text; /* NULL ends a list */
    unsigned value;
};

options_setter option_type_duration;
options_setter option_type_count;
options_setter option_type_decimal; /* in millionths, as are its limits */
options_setter option_type_word;
options_setter option_type_switch;
options_setter option_type_text;
options_setter option_type_socket_path;
options_setter option_type_listen_address;
options_setter option_type_list; /* a struct options_list */
options_setter option_type_metric_prefix;
options_setter option_type_metrics_path;
options_setter option_type_compat;
options_setter option_type_currency;
options_setter option_type_embodied; /* METER=GRAMS, in millionths as `max` is */

/* What the setter of that kind allows, for people. */
options_describer option_type_describe_durations;
options_describer option_type_describe_counts;
options_describer option_type_describe_decimals;
options_describer option_type_describe_words;
