#include "top/view.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "top/quantity.h"
#include "top/view_private.h"

enum {
    TEXT_BYTES = 512,
    PRINTED_HEADER_ROWS = 40,
    PRINTED_COLUMNS_MIN = 80,
    BEHIND_S = 3, /* less is no news */
    HISTORY_COLUMNS = 30,
};

void view_write(struct view_pen *pen, enum screen_style style, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    pen->column += screen_put(pen->screen, pen->row, pen->column, SIZE_MAX, style, text);
}

/* --- header --- */

static void draw_title(const struct top *top, struct screen *screen)
{
    const struct node_document *document = top->document;
    struct view_pen pen = {screen, 0, 0};
    char right[96], every[64];
    size_t width;

    screen_fill_style(screen, 0, 0, screen->columns, STYLE_TITLE);
    view_write(&pen, STYLE_TITLE, " wattribute  %s", document ? document->node : "");
    if (document)
        view_write(&pen, STYLE_TITLE, "  %zu workload%s", document->workload_count,
                   PLURAL_S(document->workload_count));
    snprintf(every, sizeof(every), "%severy %g s ", top->is_own ? "no daemon: measured here, " : "",
             top->interval_s);
    snprintf(right, sizeof(right), "  %s",
             top->is_frozen        ? "FROZEN "
             : top->interval_s > 0 ? every
                                   : "");
    width = strlen(right);
    if (screen->columns > pen.column + width)
        screen_put_right(screen, 0, 0, screen->columns, STYLE_TITLE, right);
    else if (top->is_frozen)
        screen_put_right(screen, 0, 0, screen->columns, STYLE_TITLE, " FROZEN ");
}

static size_t draw_band(struct screen *screen, size_t row, const char *text)
{
    screen_fill_style(screen, row, 0, screen->columns, STYLE_BAND);
    screen_put(screen, row, 1, SIZE_MAX, STYLE_BAND, text);
    return row + 1;
}

static double watts_of_workloads(const struct node_document *document)
{
    double sum = 0;

    for (size_t i = 0; i < document->workload_count; i++)
        if (!isnan(document->workloads[i].watts))
            sum += document->workloads[i].watts;
    return sum;
}

/* The watts of the last documents, up to the end of the row. */
static void draw_history(const struct top *top, struct view_pen *pen)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t end = pen->screen->columns, begin = pen->column + 2;
    size_t room = end > begin + 1 ? MIN(end - begin - 1, (size_t)HISTORY_COLUMNS) : 0;
    size_t count = MIN(top->history_count, room);
    const double *watts = top->history + top->history_count - count;
    double most = 0;

    if (!pen->screen->is_utf8 || top->interval_s == 0 || top->history_count < 2)
        return;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, watts[i]);
    for (size_t i = 0; i < count && most > 0; i++) {
        long level = watts[i] > 0 ? lround(watts[i] / most * 7) : 0;

        screen_put(pen->screen, pen->row, begin + i, 1, STYLE_BAR, levels[MIN(MAX(level, 0), 7)]);
    }
}

/* "412.3 W = 398.1 workloads + 12.1 idle + 2.1 unattributed": every watt has one owner. */
static size_t draw_balance(const struct top *top, struct screen *screen, size_t row)
{
    const struct node_document *document = top->document;
    struct view_pen pen = {screen, row, 1};
    char text[QUANTITY_BYTES];
    double behind_s;

    quantity_watts(document->watts, text);
    if (!text[0]) {
        view_write(&pen, STYLE_WARNING, "no meter has been read yet");
        return row + 1;
    }
    view_write(&pen, STYLE_BOLD, "%s W", text);
    quantity_watts(watts_of_workloads(document), text);
    view_write(&pen, STYLE_PLAIN, " = %s workloads", text);
    for (unsigned i = 0; i < NODE_UNOWNED_COUNT; i++) {
        double watts = node_document_unowned_watts(document, i);

        quantity_watts(watts, text);
        if (watts >= 0.05 || i == NODE_IDLE)
            view_write(&pen, STYLE_PLAIN, " + %s %s", text, node_unowned_words[i]);
    }
    quantity_watts(node_document_measured_watts(document), text);
    if (text[0])
        view_write(&pen, STYLE_DIM, "  measured %s", text);
    behind_s = node_document_seconds_behind(document);
    if (behind_s >= BEHIND_S)
        view_write(&pen, STYLE_DIM, "  %.0f s behind", behind_s);
    draw_history(top, &pen);
    return row + 1;
}

static void draw_gpu(const struct document_gpu *gpu, struct screen *screen, size_t row)
{
    struct view_pen pen = {screen, row, 1};
    char used[QUANTITY_BYTES], total[QUANTITY_BYTES], sharing[64];

    view_write(&pen, STYLE_NAME, "GPU %.0f", gpu->gpu);
    pen.column = 8;
    pen.column += screen_put(screen, row, pen.column, 22, STYLE_PLAIN, gpu->name);
    pen.column = MAX(pen.column, (size_t)20);
    quantity_watts(gpu->watts, used);
    if (used[0])
        view_write(&pen, STYLE_BOLD, "  %s W", used);
    if (!isnan(gpu->utilisation_percent))
        view_write(&pen, STYLE_PLAIN, "  %.0f%% busy", gpu->utilisation_percent);
    quantity_bytes(gpu->memory_used_bytes, used);
    quantity_bytes(gpu->memory_total_bytes, total);
    if (used[0])
        view_write(&pen, STYLE_PLAIN, "  %s%s%s", used, total[0] ? " of " : "", total);
    if (!isnan(gpu->temperature_celsius))
        view_write(&pen, STYLE_PLAIN, screen->is_utf8 ? "  %.0f °C" : "  %.0f C",
                   gpu->temperature_celsius);
    snprintf(sharing, sizeof(sharing), "%s", gpu->sharing);
    for (char *p = sharing; (p = strchr(p, '_'));)
        *p = ' ';
    if (sharing[0])
        view_write(&pen, STYLE_DIM, "  %s", sharing);
    if (gpu->instance_count > 0)
        view_write(&pen, STYLE_DIM, "  %zu instance%s", gpu->instance_count,
                   PLURAL_S(gpu->instance_count));
}

static size_t draw_gpus(const struct node_document *document, struct screen *screen, size_t row)
{
    size_t shown = MIN(document->gpu_count, MAX(screen->rows / 6, (size_t)1));
    struct view_pen pen = {screen, row + shown, 8};

    for (size_t i = 0; i < shown; i++)
        draw_gpu(&document->gpus[i], screen, row + i);
    if (shown == document->gpu_count)
        return row + shown;
    view_write(&pen, STYLE_DIM, "and %zu more", document->gpu_count - shown);
    return row + shown + 1;
}

/* Those of GPUs have lines of their own. */
static size_t draw_meters(const struct node_document *document, struct screen *screen, size_t row)
{
    struct view_pen pen = {screen, row, 8};
    size_t count = 0;

    for (size_t i = 0; i < document->meter_count; i++) {
        const struct document_meter *meter = &document->meters[i];
        char watts[QUANTITY_BYTES];

        if (!isnan(meter->gpu) || isnan(meter->watts))
            continue;
        if (count++ == 0)
            screen_put(screen, row, 1, 7, STYLE_NAME, "Meters");
        quantity_watts(meter->watts, watts);
        view_write(&pen, STYLE_PLAIN, "%s%s %s%s%s%s", pen.column > 8 ? "  " : "", meter->meter,
                   meter->id, meter->id[0] ? " " : "", watts, " W");
        if (meter->is_modelled)
            view_write(&pen, STYLE_DIM, " estimated");
    }
    return row + (count > 0);
}

static size_t draw_sources(const struct node_document *document, struct screen *screen, size_t row)
{
    struct view_pen pen = {screen, row, 1};
    size_t count = 0;

    for (size_t i = 0; i < document->source_count; i++) {
        if (document->sources[i].is_up)
            continue;
        if (count++ == 0)
            view_write(&pen, STYLE_WARNING, "Down:  ");
        view_write(&pen, STYLE_WARNING, "%s%s", count > 1 ? ", " : "", document->sources[i].name);
    }
    return row + (count > 0);
}

size_t view_draw_header(const struct top *top, struct screen *screen)
{
    const struct node_document *document = top->document;
    size_t row = 1;

    draw_title(top, screen);
    if (top->trouble[0])
        row = draw_band(screen, row, top->trouble);
    if (!document)
        return row;
    if (document->is_replay)
        row = draw_band(screen, row, "REPLAY of a recorded trace: these are not this node's watts");
    row = draw_balance(top, screen, row);
    row = draw_gpus(document, screen, row);
    row = draw_meters(document, screen, row);
    return draw_sources(document, screen, row);
}

/* --- table, help and keys --- */

static void draw_table(struct top *top, struct screen *screen, size_t row, size_t end)
{
    struct view_layout layout;

    if (row >= end)
        return;
    view_layout(top, screen, screen->columns, &layout);
    view_draw_heading(top, &layout, screen, row++);
    top->page = end > row ? end - row : 1;
    if (top->selected < top->first)
        top->first = top->selected;
    if (top->selected >= top->first + top->page)
        top->first = top->selected - top->page + 1;
    if (top->first + top->page > top->row_count)
        top->first = top->row_count > top->page ? top->row_count - top->page : 0;
    for (size_t i = top->first; i < top->row_count && row < end; i++, row++) {
        view_draw_workload(top, &layout, top->rows[i], screen, row);
        if (i == top->selected)
            screen_fill_style(screen, row, 0, screen->columns, STYLE_SELECTED);
    }
    if (top->row_count == 0)
        screen_put(screen, row, 1, SIZE_MAX, STYLE_DIM,
                   !top->document   ? "waiting for the first figures"
                   : top->filter[0] ? "no workload matches the filter"
                                    : "no workload has drawn anything yet");
}

static void draw_help(struct screen *screen, size_t row, size_t end)
{
    static const char *const lines[][2] = {
        {"up down j k", "select a workload (also PgUp, PgDn, Home, End, g, G)"},
        {"Enter", "open it: meters, GPUs, processes; Enter or Esc closes it"},
        {"s > <", "order by the next column, or the one before (also left, right)"},
        {"r", "reverse the order"},
        {"/", "show only what contains a text; Esc clears it"},
        {"Space", "freeze the figures, and go on"},
        {"h ?", "this help"},
        {"q", "quit"},
        {"", ""},
        {"WATTS", "booked now; all workloads and what nobody owns add up to the node's"},
        {"behind", "shared energy waits for better estimates: --attribution-delay of the daemon"},
        {"+-", "what nine of ten figures of energy are off by at most"},
        {"CPU", "processors that it keeps busy"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(lines) && row < end; i++, row++) {
        screen_put(screen, row, 2, 13, STYLE_BOLD, lines[i][0]);
        screen_put(screen, row, 16, SIZE_MAX, STYLE_PLAIN, lines[i][1]);
    }
}

static void draw_keys(const struct top *top, struct view_pen *pen)
{
    static const char *const in_table[][2] = {
        {"Enter", "open"},   {"s", "sort"}, {"r", "reverse"}, {"/", "filter"},
        {"Space", "freeze"}, {"h", "help"}, {"q", "quit"},
    };
    static const char *const in_details[][2] = {
        {"Esc", "back"}, {"j k", "scroll"}, {"Space", "freeze"}, {"h", "help"}, {"q", "quit"}};
    const char *const(*keys)[2] = top->is_open ? in_details : in_table;
    size_t count = top->is_open ? ARRAY_SIZE(in_details) : ARRAY_SIZE(in_table);

    if (top->is_helping) {
        view_write(pen, STYLE_DIM, "any key closes this");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        view_write(pen, STYLE_BOLD, "%s", keys[i][0]);
        view_write(pen, STYLE_DIM, " %s   ", keys[i][1]);
    }
}

static void draw_footer(const struct top *top, struct screen *screen, size_t row)
{
    struct view_pen pen = {screen, row, 1};

    if (top->is_typing) {
        view_write(&pen, STYLE_BOLD, "Filter: ");
        view_write(&pen, STYLE_PLAIN, "%s", top->filter);
        view_write(&pen, STYLE_SELECTED, " ");
        return;
    }
    if (top->filter[0] && !top->is_open)
        view_write(&pen, STYLE_WARNING, "\"%s\": %zu of %zu   ", top->filter, top->row_count,
                   top->document ? top->document->workload_count : 0);
    draw_keys(top, &pen);
}

void view_draw(struct top *top, struct screen *screen)
{
    size_t end = screen->rows > 1 ? screen->rows - 1 : screen->rows, row;

    screen_clear(screen);
    row = view_draw_header(top, screen);
    if (top->is_helping)
        draw_help(screen, row, end);
    else if (top->is_open && top_selected(top))
        view_draw_details(top, screen, row, end);
    else
        draw_table(top, screen, row, end);
    /* On a screen this low the header may have come so far. */
    if (end < screen->rows) {
        for (size_t i = 0; i < screen->columns; i++)
            screen_put(screen, end, i, 1, STYLE_PLAIN, " ");
        draw_footer(top, screen, end);
    }
}

int view_print(const struct top *top, size_t columns, bool is_utf8, struct buffer *out)
{
    struct screen screen = {.is_utf8 = is_utf8};
    struct view_layout layout;
    size_t width, rows;
    int r;

    view_layout(top, &screen, columns, &layout);
    width = MAX(view_layout_width(&layout), MAX(columns, (size_t)PRINTED_COLUMNS_MIN));
    r = screen_resize(&screen, PRINTED_HEADER_ROWS, width);
    if (r < 0)
        return r;
    rows = view_draw_header(top, &screen);
    view_draw_heading(top, &layout, &screen, rows);
    screen.rows = rows + 1; /* the rest of the memory stays */
    screen_print(&screen, out);
    screen.rows = 1;
    for (size_t i = 0; i < top->row_count; i++) {
        screen_clear(&screen);
        view_draw_workload(top, &layout, top->rows[i], &screen, 0);
        screen_print(&screen, out);
    }
    screen_done(&screen);
    return buffer_failed(out) ? -ENOMEM : 0;
}
