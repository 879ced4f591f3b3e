/* The forms of a report. Each appends to a buffer; check buffer_failed. Pure. */
#pragma once

#include "report/report_words.h"

/* What the forms say of how they came to be. */
struct report_source {
    const char *address; /* of the server */
    const char *version; /* of this program */
    int64_t now_s;
};

/* A table for a terminal. */
void report_text(const struct collected *collected, const struct report_source *source,
                 struct buffer *out);

/* RFC 4180, with one line for each row, for spreadsheets: names that begin as a formula get a quote
 * before them. */
void report_csv(const struct collected *collected, struct buffer *out);

void report_json(const struct collected *collected, const struct report_source *source,
                 struct buffer *out);

/* One page that asks for nothing. */
void report_html(const struct collected *collected, const struct report_source *source,
                 struct buffer *out);
