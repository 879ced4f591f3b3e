/* Parts of the view. */
#pragma once

#include "top/view.h"

/* A place that moves right as it is written to. */
struct view_pen {
    struct screen *screen;
    size_t row, column;
};

/* Writes to the end of the screen, or of `width` columns. */
void view_write(struct view_pen *pen, enum screen_style style, const char *format, ...)
    PRINTF(3, 4);

/* Title, bands, balance, GPUs, meters and sources. Returns the row below. */
size_t view_draw_header(const struct top *top, struct screen *screen);

/* Which columns are shown, and how wide. */
enum { VIEW_COLUMNS_MAX = 12 };

struct view_layout {
    size_t widths[VIEW_COLUMNS_MAX]; /* 0: it is not shown */
};

/* For so many columns; 0: all that has values, as wide as it needs, without bars. */
void view_layout(const struct top *top, const struct screen *screen, size_t columns,
                 struct view_layout *ret_layout);
size_t view_layout_width(const struct view_layout *layout);
void view_draw_heading(const struct top *top, const struct view_layout *layout,
                       struct screen *screen, size_t row);
void view_draw_workload(const struct top *top, const struct view_layout *layout,
                        const struct document_workload *workload, struct screen *screen,
                        size_t row);

/* The selected workload from `row` to above `end`. */
void view_draw_details(struct top *top, struct screen *screen, size_t row, size_t end);
