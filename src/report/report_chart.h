/* Charts of a report as SVG that stands in its page. Colours are classes of the page's style. Pure.
 */
#pragma once

#include "report/report_output.h"

enum { CHART_GROUPS = 8 }; /* with a colour each: classes c0 to c7 */

/* Text in which HTML finds nothing of its own, whatever the bytes are. */
void chart_put_text(struct buffer *out, const char *text);

/* Columns of the period's parts, stacked by the groups: the largest, the others, and nobody's. */
void chart_parts(const struct collected *collected, struct total *const *groups, size_t count,
                 struct buffer *out);

/* A bar of a row with its uncertainty; `most` has the full width. */
void chart_bar(const struct total *total, double most, const char *colour, struct buffer *out);

/* One bar: what which hardware used. */
void chart_meters(const struct collected *collected, struct buffer *out);

/* When nodes were there: those that were missing, at most 40. */
void chart_nodes(const struct collected *collected, struct buffer *out);
