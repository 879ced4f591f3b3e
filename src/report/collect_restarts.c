/* What rows had after a restart within a window. The last value of that window may be from before
 * the restart, of a row that ended with it or has not come back yet; to take it for new would count
 * it twice. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "report/collect_private.h"

static bool is_plain_name(struct span name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_'))
            return false;
    }
    return name.len > 0;
}

/* The labels of its target, each with a comma before it. */
static void put_page(const struct page *page, struct buffer *out)
{
    for (const char *at = page->key, *middle, *end; *at; at = end + 1) {
        struct span name;
        char value[1024];

        middle = strchr(at, '\x1f');
        end = middle ? strchr(middle, '\x1e') : NULL;
        if (!end)
            return;
        name = (struct span){at, (size_t)(middle - at)};
        if (!is_plain_name(name) || (size_t)(end - middle) > sizeof(value))
            continue;
        snprintf(value, sizeof(value), "%.*s", (int)(end - middle - 1), middle + 1);
        buffer_char(out, ',');
        buffer_bytes(out, name.data, name.len);
        buffer_char(out, '=');
        collect_put_quoted(out, value);
    }
}

/* In the time up to `to_s`. */
static int add_task(struct collection *c, const struct page *page, unsigned ask, int64_t to_s,
                    int64_t range_s)
{
    struct fetch_task task = {NULL, to_s, to_s, c->out->step_s, ask, ask};
    struct buffer text;
    char range[40];

    buffer_init(&text, COLLECT_TEXT_BYTES);
    buffer_str(&text, "last_over_time({__name__=~\"");
    buffer_str(&text, c->options->is_recorded ? "report:" : "");
    buffer_str(&text,
               collect_is_life(c) ? "wattribute_workload" : "wattribute_(workload|meter|unowned)");
    buffer_str(&text, "_(energy|emissions|cost)_.*total\",");
    collect_put_workloads(c, &text);
    put_page(page, &text);
    snprintf(range, sizeof(range), "}[%" PRId64 "s])", MAX(range_s, (int64_t)1));
    buffer_str(&text, range);
    task.text = collect_keep_text(c, &text);
    return collect_add_task(c, &task);
}

int collect_add_restart_tasks(struct collection *c)
{
    const struct pages *pages = &c->out->pages;
    int r = 0;

    for (size_t i = 0; i < pages->table.count; i++) {
        const struct page *page = pages->table.items[i];

        for (size_t j = 0; j < page->start_count && r == 0; j++) {
            int64_t start_s = (int64_t)page->starts[j].start_s, end_s;
            double found_s;

            if (!page_restarted_within(pages, page, page->starts[j].window, &found_s) ||
                found_s != page->starts[j].start_s)
                continue;
            end_s = collected_window_end(c->out, page->starts[j].window);
            r = add_task(c, page, ASK_BEFORE, start_s, start_s - (end_s - c->out->step_s));
            if (r == 0)
                r = add_task(c, page, ASK_AFTER, end_s, end_s - start_s - 1);
        }
    }
    return r;
}

static size_t kind_of(const char *name)
{
    size_t i = 0;

    if (strncmp(name, "report:", strlen("report:")) == 0)
        name += strlen("report:");
    while (i < COUNTER_KINDS && strcmp(counter_kinds[i].name, name) != 0)
        i++;
    return i;
}

int collect_take_restart(struct collection *c, const struct fetch_task *task,
                         const struct answer *answer)
{
    const struct pages *pages = &c->out->pages;
    struct counters *ends = task->index == ASK_BEFORE ? c->before : c->after;
    /* Before it is within the window, after it is at its end. */
    int32_t window =
        (int32_t)((task->to_s - pages->from_s + pages->step_s * 2 - 1) / pages->step_s) - 1;

    for (size_t i = 0; i < answer->series_count; i++) {
        const struct answer_series *series = &answer->series[i];
        const struct page *page = pages_find(pages, series);
        size_t kind = kind_of(answer_label(series, "__name__"));
        struct counter_row *row;

        if (!page || kind == COUNTER_KINDS || series->sample_count == 0)
            continue;
        row = counters_add_end(&ends[kind], page, series, window);
        if (!row)
            return -ENOMEM;
        row->last += answer->samples[series->first_sample].value; /* of all tiers and methods */
    }
    return 0;
}
