/* What all forms of a report say in words and figures. Pure. */
#pragma once

#include <stdio.h>

#include "core/buffer.h"
#include "report/collect.h"

enum { WORDS_BYTES = 512, FIGURE_BYTES = 48 };

void words_put(struct buffer *out, const char *format, ...) PRINTF(2, 3);

/* "1,234.567": kWh, with as many decimals as say something. */
void words_kwh(double joules, char text[FIGURE_BYTES]);
/* "12.3 kg", "480 g", "1.24 t" */
void words_grams(double grams, char text[FIGURE_BYTES]);
/* "12.34 EUR", "12.34 EUR + 3.00 USD"; "" for none. */
void words_cost(const struct totals *totals, const struct total *total, char text[WORDS_BYTES]);
/* "3 d 4 h", "12 min" */
void words_duration(int64_t seconds, char text[FIGURE_BYTES]);

/* "last-month by user", "Slurm job 4711": the subject, without the period. May be of anybody. */
void words_subject(const struct collected *collected, char text[WORDS_BYTES]);

/* "(no namespace)" in place of "". */
const char *words_name(const struct collected *collected, const struct total *total);

/* Sentences about what is missing and what to know, one after the other; index from 0. False: there
 * are no more. Names in it may be anybody's. */
bool words_finding(const struct collected *collected, size_t index, char text[WORDS_BYTES]);

/* What nobody owns, with the energy that was not seen as the last; free() it. The title of one is
 * words_reason. */
struct total **words_unowned(const struct collected *collected, size_t *ret_count);
const char *words_reason(const struct total *total);

bool words_is_life(const struct collected *collected);

/* "from 2025-10-11 14:54 to 2025-10-12 08:20: 17 h 26 min on 1 node", of a life. False: it used
 * nothing. */
bool words_life(const struct collected *collected, char text[WORDS_BYTES]);
