/* One workload: what it used, of which meters, on which GPUs, by which processes. */
#include <math.h>
#include <stdio.h>

#include "core/macros.h"
#include "top/quantity.h"
#include "top/view_private.h"

/* Lines, of which a part is on the screen. */
struct lines {
    struct screen *screen;
    size_t row, end;
    size_t first; /* the line in `row` */
    size_t count;
};

/* The place of the next line; beyond the screen if it is not shown. */
static struct view_pen next_line(struct lines *lines)
{
    size_t line = lines->count++;
    bool is_shown = line >= lines->first && lines->row + (line - lines->first) < lines->end;

    return (struct view_pen){lines->screen,
                             is_shown ? lines->row + (line - lines->first) : SIZE_MAX, 1};
}

/* Nothing if there is no value. */
static void put_text(struct lines *lines, const char *name, const char *value)
{
    struct view_pen pen;

    if (value[0] == '\0')
        return;
    pen = next_line(lines);
    screen_put(lines->screen, pen.row, pen.column, 13, STYLE_DIM, name);
    screen_put(lines->screen, pen.row, 15, SIZE_MAX, STYLE_PLAIN, value);
}

static void put_heading(struct lines *lines, const char *text)
{
    struct view_pen pen = next_line(lines);

    pen = next_line(lines); /* one stays empty */
    screen_fill_style(lines->screen, pen.row, 0, lines->screen->columns, STYLE_HEADING);
    view_write(&pen, STYLE_HEADING, "%s", text);
}

static void put_names(struct lines *lines, const struct document_workload *workload)
{
    const char *const texts[][2] = {
        {"id", workload->id},
        {"namespace", workload->namespace},
        {"pod", workload->pod},
        {"container", workload->container},
        {"image", workload->image},
        {"user", workload->user},
        {"account", workload->account},
        {"job", workload->job_id},
        {"job name", workload->job_name},
        {"unverified", workload->unverified},
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        put_text(lines, texts[i][0], texts[i][1]);
}

static void put_figures(struct lines *lines, const struct top *top,
                        const struct document_workload *workload)
{
    char text[256], a[QUANTITY_BYTES], b[QUANTITY_BYTES], c[QUANTITY_BYTES];
    const char *plus_minus = lines->screen->is_utf8 ? "±" : "+-";

    quantity_watts(workload->watts, a);
    quantity_percent(workload->watts, top->document->watts, b);
    snprintf(text, sizeof(text), "%s W%s%s%s", a, b[0] ? ", " : "", b, b[0] ? " of the node" : "");
    put_text(lines, "power", a[0] ? text : "none: it has ended");
    quantity_si(workload->energy_joules, "J", a);
    quantity_si(workload->uncertainty_joules, "J", b);
    quantity_percent(workload->uncertainty_joules, workload->energy_joules, c);
    snprintf(text, sizeof(text), "%s%s%s%s%s%s%s%s%s", a, b[0] ? " " : "", b[0] ? plus_minus : "",
             b[0] ? " " : "", b, c[0] ? " (" : "", c, c[0] ? ")" : "", "");
    put_text(lines, "energy", a[0] ? text : "");
    quantity_si(workload->emissions_grams, "g", a);
    put_text(lines, "emissions", a);
    quantity_cost(workload->cost, a);
    snprintf(text, sizeof(text), "%s %s", a, top->document->currency);
    put_text(lines, "cost", a[0] ? text : "");
    quantity_cores(workload->cpu_cores, a);
    quantity_si(workload->cpu_seconds, "s", b);
    snprintf(text, sizeof(text), "%s%s%s%s", a, a[0] ? " busy now, " : "", b, " in all");
    put_text(lines, "CPUs", b[0] ? text : "");
    quantity_bytes(workload->memory_bytes, a);
    put_text(lines, "memory", a);
    quantity_bytes(workload->gpu_memory_bytes, a);
    put_text(lines, "GPU memory", a);
}

static void put_meters(struct lines *lines, const struct top *top,
                       const struct document_workload *workload)
{
    if (workload->share_count > 0)
        put_heading(lines, "   WATTS   ENERGY     +-  CONFIDENCE  METER");
    for (size_t i = 0; i < workload->share_count; i++) {
        const struct document_share *share = &workload->shares[i];
        const struct document_meter *meter = &top->document->meters[share->meter];
        struct view_pen pen = next_line(lines);
        char text[QUANTITY_BYTES];

        quantity_watts(share->watts, text);
        screen_put_right(pen.screen, pen.row, 1, 8, STYLE_BOLD, text);
        quantity_si(share->energy_joules, "J", text);
        screen_put_right(pen.screen, pen.row, 10, 8, STYLE_PLAIN, text);
        quantity_percent(share->uncertainty_joules, share->energy_joules, text);
        screen_put_right(pen.screen, pen.row, 19, 6, STYLE_PLAIN, text);
        quantity_percent(share->confidence, 1, text);
        screen_put_right(pen.screen, pen.row, 27, 10, STYLE_PLAIN, text);
        pen.column = 39;
        view_write(&pen, STYLE_PLAIN, "%s %s%s", meter->meter, meter->id,
                   meter->is_modelled ? " (estimated)" : "");
    }
}

static void put_allocations(struct lines *lines, const struct document_workload *workload)
{
    if (workload->allocation_count > 0)
        put_heading(lines, "GPUS THAT IT WAS GIVEN");
    for (size_t i = 0; i < workload->allocation_count; i++) {
        const struct document_allocation *allocation = &workload->allocations[i];
        struct view_pen pen = next_line(lines);

        if (isnan(allocation->gpu))
            view_write(&pen, STYLE_PLAIN, "a GPU");
        else
            view_write(&pen, STYLE_PLAIN, "GPU %.0f", allocation->gpu);
        if (!isnan(allocation->gpu_instance))
            view_write(&pen, STYLE_PLAIN, " instance %.0f", allocation->gpu_instance);
        if (allocation->source[0])
            view_write(&pen, STYLE_PLAIN, "  by %s", allocation->source);
        if (allocation->is_unverified)
            view_write(&pen, STYLE_WARNING, ", unverified");
        view_write(&pen, STYLE_DIM, "  %s", allocation->uuid);
    }
}

static void put_processes(struct lines *lines, const struct document_workload *workload)
{
    if (workload->process_count > 0)
        put_heading(lines, "     PID  GPU   ENERGY     +-   GPU MEM  PROCESS");
    for (size_t i = 0; i < workload->process_count; i++) {
        const struct document_process *process = &workload->processes[i];
        struct view_pen pen = next_line(lines);
        char text[QUANTITY_BYTES] = "";

        if (!isnan(process->pid))
            snprintf(text, sizeof(text), "%.0f", process->pid);
        screen_put_right(pen.screen, pen.row, 1, 8, STYLE_PLAIN, text);
        text[0] = '\0';
        if (!isnan(process->gpu))
            snprintf(text, sizeof(text), "%.0f", process->gpu);
        screen_put_right(pen.screen, pen.row, 10, 4, STYLE_PLAIN, text);
        quantity_si(process->energy_joules, "J", text);
        screen_put_right(pen.screen, pen.row, 15, 8, STYLE_BOLD, text);
        quantity_percent(process->uncertainty_joules, process->energy_joules, text);
        screen_put_right(pen.screen, pen.row, 24, 6, STYLE_PLAIN, text);
        quantity_bytes(process->gpu_memory_bytes, text);
        screen_put_right(pen.screen, pen.row, 32, 8, STYLE_PLAIN, text);
        screen_put(pen.screen, pen.row, 42, SIZE_MAX, STYLE_PLAIN, process->name);
    }
}

static void put_all(struct lines *lines, const struct top *top,
                    const struct document_workload *workload)
{
    char name[512];
    struct view_pen pen = next_line(lines);

    top_name(workload, name, sizeof(name));
    view_write(&pen, STYLE_DIM, "%s ", workload->kind);
    view_write(&pen, STYLE_BOLD, "%s", name);
    put_figures(lines, top, workload);
    put_names(lines, workload);
    put_meters(lines, top, workload);
    put_allocations(lines, workload);
    put_processes(lines, workload);
}

void view_draw_details(struct top *top, struct screen *screen, size_t row, size_t end)
{
    const struct document_workload *workload = top_selected(top);
    struct lines counted = {.screen = screen, .row = row, .end = row};
    struct lines lines = {.screen = screen, .row = row, .end = end};

    put_all(&counted, top, workload);
    top->detail_count = counted.count;
    top->page = end > row ? end - row : 1;
    if (top->detail_first + top->page > counted.count)
        top->detail_first = counted.count > top->page ? counted.count - top->page : 0;
    lines.first = top->detail_first;
    put_all(&lines, top, workload);
}
