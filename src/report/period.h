/* What a report is about: days of the local time zone, also those of 23 and 25 hours. Pure, but for
 * the C library's time zone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/span.h"

enum { PERIOD_TITLE_BYTES = 64, PERIOD_PARTS_MAX = 400, PERIOD_DAYS_MAX = 3700 };

struct period {
    int64_t from_s, to_s; /* since the epoch; the end does not belong to it */
    bool is_running;      /* it ends now */
};

/* "today", "yesterday", "this-month", "last-month", "2026-10-01" or "2026-10-01..2026-10-31", with
 * both days. What is in the future is cut off. 0, or -EINVAL with a text. */
int period_parse(struct span text, int64_t now_s, struct period *ret, struct error *err);

/* "2026-10-01 00:00 to 2026-11-01 00:00 CET" */
void period_title(const struct period *period, char text[PERIOD_TITLE_BYTES]);

/* "2026-10-01 14:05" */
void period_moment(int64_t t_s, char text[PERIOD_TITLE_BYTES]);

/* Hours, days or months, whichever makes a chart. */
enum period_unit { PERIOD_HOURS, PERIOD_DAYS, PERIOD_MONTHS };

struct period_parts {
    enum period_unit unit;
    size_t count;
    int64_t edges_s[PERIOD_PARTS_MAX + 1]; /* a part ends where the next begins */
};

void period_divide(const struct period *period, struct period_parts *ret);

/* The part to which an interval belongs that ends at `t_s`, in (from, to]. */
size_t period_part_of(const struct period_parts *parts, int64_t t_s);

/* "14:00", "2026-10-01", "2026-10" */
void period_part_title(const struct period_parts *parts, size_t index,
                       char text[PERIOD_TITLE_BYTES]);
