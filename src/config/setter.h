/*
 * Setters: one value checked and stored, one function per kind of value. The table of options names
 * them; what they need to know (member, limits, words) stands beside them there.
 */
#pragma once

#include <stddef.h>

#include "config/options.h"

/* What fits into a sockaddr_un. */
enum { SETTER_SOCKET_PATH_MAX = 107 };

/* A word that an option takes. */
struct setter_word {
    const char *text; /* NULL ends a list */
    unsigned value;
};

options_setter setter_duration;
options_setter setter_count;
options_setter setter_decimal; /* in millionths, as are its limits */
options_setter setter_word;
options_setter setter_switch;
options_setter setter_text;
options_setter setter_socket_path;
options_setter setter_listen_address;
options_setter setter_list; /* a struct options_list */
options_setter setter_metric_prefix;
options_setter setter_metrics_path;
options_setter setter_compat;
options_setter setter_currency;
options_setter setter_embodied; /* METER=GRAMS, in millionths as `max` is */

/* What the setter of that kind allows, for people. */
options_describer setter_describe_durations;
options_describer setter_describe_counts;
options_describer setter_describe_decimals;
options_describer setter_describe_words;
