/* The table of workloads: which columns fit, and a row. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "core/macros.h"
#include "top/quantity.h"
#include "top/view_private.h"

enum {
    NAME_BYTES = 512,
    NAME_WIDTH_MAX = 48, /* on the screen */
    NAME_WIDTH_PRINTED = 200,
    NAME_WIDTH_MIN = 12,
    BAR_WIDTH_MAX = 32,
    RANK_LAST = 10,
};

/* In the order of the screen. */
enum column {
    COLUMN_KIND,
    COLUMN_NAME,
    COLUMN_WATTS,
    COLUMN_BAR,
    COLUMN_SHARE,
    COLUMN_ENERGY,
    COLUMN_UNCERTAINTY,
    COLUMN_GPU_MEMORY,
    COLUMN_CPU,
    COLUMN_MEMORY,
    COLUMN_GRAMS,
    COLUMN_COST,
    COLUMN_COUNT,
};

static_assert((int)COLUMN_COUNT == (int)VIEW_COLUMNS_MAX, "one width for each column");

static const struct {
    const char *title;
    size_t width;          /* the least */
    enum top_column order; /* TOP_COLUMN_COUNT: none */
    unsigned rank;         /* the lowest get the room there is; 0: always shown */
} columns[COLUMN_COUNT] = {
    [COLUMN_KIND] = {"KIND", 9, TOP_COLUMN_COUNT, 7},
    [COLUMN_NAME] = {"WORKLOAD", 0, TOP_NAME, 0},
    [COLUMN_WATTS] = {"WATTS", 8, TOP_WATTS, 0},
    [COLUMN_BAR] = {"", 6, TOP_COLUMN_COUNT, 6},
    [COLUMN_SHARE] = {"SHARE", 6, TOP_COLUMN_COUNT, 2},
    [COLUMN_ENERGY] = {"ENERGY", 8, TOP_ENERGY, 1},
    [COLUMN_UNCERTAINTY] = {"+-", 6, TOP_UNCERTAINTY, 3},
    [COLUMN_GPU_MEMORY] = {"GPU MEM", 8, TOP_GPU_MEMORY, 4},
    [COLUMN_CPU] = {"CPU", 5, TOP_CPU, 5},
    [COLUMN_MEMORY] = {"MEMORY", 8, TOP_MEMORY, 10},
    [COLUMN_GRAMS] = {"CO2", 7, TOP_GRAMS, 8},
    [COLUMN_COST] = {"COST", 7, TOP_COST, 9},
};

static size_t widest_name(const struct top *top, const struct screen *screen)
{
    size_t widest = screen_text_width(screen, columns[COLUMN_NAME].title);
    char name[NAME_BYTES];

    for (size_t i = 0; i < top->row_count; i++) {
        top_name(top->rows[i], name, sizeof(name));
        widest = MAX(widest, screen_text_width(screen, name));
    }
    return widest;
}

size_t view_layout_width(const struct view_layout *layout)
{
    size_t width = 0;

    for (size_t i = 0; i < COLUMN_COUNT; i++)
        width += layout->widths[i] > 0 ? layout->widths[i] + (width > 0) : 0;
    return width;
}

/* The width that the column has at least; 0: nobody has a value in it. */
static size_t least_width(const struct top *top, enum column column)
{
    enum top_column order = columns[column].order;

    return order == TOP_COLUMN_COUNT || top_has_column(top, order) ? columns[column].width : 0;
}

/* Adds what there is room for, the most important first. */
static void add_columns(const struct top *top, size_t width, struct view_layout *layout)
{
    for (unsigned rank = 1; rank <= RANK_LAST; rank++)
        for (size_t i = 0; i < COLUMN_COUNT; i++) {
            if (columns[i].rank != rank || layout->widths[i] > 0)
                continue;
            layout->widths[i] = least_width(top, (enum column)i);
            if (view_layout_width(layout) > width)
                layout->widths[i] = 0;
        }
}

void view_layout(const struct top *top, const struct screen *screen, size_t width,
                 struct view_layout *ret_layout)
{
    size_t wanted = widest_name(top, screen), left;
    struct view_layout layout = {0};

    layout.widths[COLUMN_NAME] = width == 0 ? MIN(wanted, (size_t)NAME_WIDTH_PRINTED)
                                            : MIN(MIN(wanted, (size_t)NAME_WIDTH_MAX),
                                                  MAX(width / 4, (size_t)NAME_WIDTH_MIN));
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        if (i != COLUMN_NAME && (columns[i].rank == 0 || columns[i].order == top->order))
            layout.widths[i] = columns[i].width;
    add_columns(top, width == 0 ? SIZE_MAX : width, &layout);
    if (width == 0)
        layout.widths[COLUMN_BAR] = 0; /* for people */
    left = width - MIN(view_layout_width(&layout), width);
    if (width > 0 && wanted > layout.widths[COLUMN_NAME]) {
        size_t more = MIN(left, MIN(wanted, (size_t)NAME_WIDTH_MAX) - layout.widths[COLUMN_NAME]);

        layout.widths[COLUMN_NAME] += more;
        left -= more;
    }
    if (layout.widths[COLUMN_BAR] > 0)
        layout.widths[COLUMN_BAR] = MIN(layout.widths[COLUMN_BAR] + left, (size_t)BAR_WIDTH_MAX);
    *ret_layout = layout;
}

static const char *column_title(const struct top *top, enum column column,
                                const struct screen *screen)
{
    if (column == COLUMN_COST && top->document && top->document->currency[0])
        return top->document->currency;
    if (column == COLUMN_UNCERTAINTY && screen->is_utf8)
        return "±";
    return columns[column].title;
}

static bool is_text(enum column column)
{
    return column == COLUMN_KIND || column == COLUMN_NAME;
}

void view_draw_heading(const struct top *top, const struct view_layout *layout,
                       struct screen *screen, size_t row)
{
    screen_fill_style(screen, row, 0, screen->columns, STYLE_HEADING);
    for (size_t i = 0, at = 0; i < COLUMN_COUNT; i++) {
        bool is_order = columns[i].order == top->order;
        bool is_upwards = is_order && top->is_reversed != (top->order == TOP_NAME);
        char title[64];

        if (layout->widths[i] == 0)
            continue;
        snprintf(title, sizeof(title), "%s%s", column_title(top, (enum column)i, screen),
                 !is_order         ? ""
                 : screen->is_utf8 ? (is_upwards ? "▲" : "▼")
                                   : (is_upwards ? "^" : "v"));
        if (is_text((enum column)i))
            screen_put(screen, row, at, layout->widths[i], is_order ? STYLE_SORTED : STYLE_HEADING,
                       title);
        else
            screen_put_right(screen, row, at, layout->widths[i],
                             is_order ? STYLE_SORTED : STYLE_HEADING, title);
        at += layout->widths[i] + 1;
    }
}

static void format_value(const struct node_document *document,
                         const struct document_workload *workload, enum column column,
                         char text[QUANTITY_BYTES])
{
    text[0] = '\0';
    switch (column) {
    case COLUMN_WATTS:
        quantity_watts(workload->watts, text);
        break;
    case COLUMN_SHARE:
        quantity_percent(workload->watts, document->watts, text);
        break;
    case COLUMN_ENERGY:
        quantity_si(workload->energy_joules, "J", text);
        break;
    case COLUMN_UNCERTAINTY:
        quantity_percent(workload->uncertainty_joules, workload->energy_joules, text);
        break;
    case COLUMN_GPU_MEMORY:
        quantity_bytes(workload->gpu_memory_bytes, text);
        break;
    case COLUMN_CPU:
        quantity_cores(workload->cpu_cores, text);
        break;
    case COLUMN_MEMORY:
        quantity_bytes(workload->memory_bytes, text);
        break;
    case COLUMN_GRAMS:
        quantity_si(workload->emissions_grams, "g", text);
        break;
    case COLUMN_COST:
        quantity_cost(workload->cost, text);
        break;
    default:
        break;
    }
}

void view_draw_workload(const struct top *top, const struct view_layout *layout,
                        const struct document_workload *workload, struct screen *screen, size_t row)
{
    enum screen_style style = isnan(workload->watts) ? STYLE_DIM : STYLE_PLAIN; /* it has ended */

    for (size_t i = 0, at = 0; i < COLUMN_COUNT; i++) {
        size_t width = layout->widths[i];
        char name[NAME_BYTES], value[QUANTITY_BYTES];

        if (width == 0)
            continue;
        if (i == COLUMN_KIND) {
            screen_put(screen, row, at, width, STYLE_DIM, workload->kind);
        } else if (i == COLUMN_NAME) {
            top_name(workload, name, sizeof(name));
            screen_put(screen, row, at, width, style, name);
        } else if (i == COLUMN_BAR) {
            screen_put_bar(screen, row, at, width, workload->watts / top->document->watts);
        } else {
            format_value(top->document, workload, (enum column)i, value);
            screen_put_right(screen, row, at, width,
                             i == COLUMN_WATTS && style == STYLE_PLAIN ? STYLE_BOLD : style, value);
        }
        at += width + 1;
    }
}
