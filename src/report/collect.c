#include "report/collect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "report/collect_private.h"

enum {
    TEXTS_BYTES = 64 << 20,
    HOUR_S = 3600,
    PROBES = 24,            /* moments at which rows are counted */
    ROWS_BUDGET = 10000000, /* samples of a counter, by which the step is chosen */
};

static int take_count(void *context, const struct fetch_task *task, const struct answer *answer)
{
    struct collection *c = context;

    (void)task;
    for (size_t i = 0; i < answer->sample_count; i++)
        c->rows = MAX(c->rows, answer->samples[i].value);
    return 0;
}

static int count_rows(struct collection *c, struct error *err)
{
    const struct fetch_consumer consumer = {.take = take_count, .context = c};
    const struct period *period = &c->options->period;
    int64_t step_s = MAX((period->to_s - period->from_s) / PROBES, (int64_t)60);
    struct buffer text;
    struct fetch_task task = {
        NULL, period->from_s + step_s / 2, period->to_s, step_s, ASK_COUNT, ASK_COUNT};

    buffer_init(&text, COLLECT_TEXT_BYTES);
    buffer_str(&text, "count(sum without (tier, method) (");
    collect_put_last(c, &text, "wattribute_workload_energy_joules_total", true, 300);
    buffer_str(&text, "))");
    task.text = collect_keep_text(c, &text);
    if (!task.text)
        return error_set(err, -ENOMEM, "out of memory");
    return fetch_all(c->options->server, &task, 1, 1, &consumer, &c->out->progress, err);
}

static int take_hosts(void *context, const struct fetch_task *task, const struct answer *answer)
{
    struct collection *c = context;

    (void)task;
    for (size_t i = 0; i < answer->series_count; i++) {
        const struct answer_series *series = &answer->series[i];
        const struct answer_sample *samples = answer->samples + series->first_sample;
        const char *host = answer_label(series, "instance");
        size_t known = 0;

        if (series->sample_count == 0)
            continue;
        c->first_s = MIN(c->first_s, samples[0].t_s);
        c->last_s = MAX(c->last_s, samples[series->sample_count - 1].t_s);
        while (known < c->host_count && strcmp(c->hosts[known], host) != 0)
            known++;
        if (known < c->host_count || c->host_count == COLLECT_HOSTS_MAX)
            continue;
        c->hosts[c->host_count] = arena_copy(&c->texts, host, strlen(host));
        if (!c->hosts[c->host_count++])
            return -ENOMEM;
    }
    return 0;
}

/* On which nodes, and when: so a life takes little time, however large the fleet is. */
static int find_life(struct collection *c, struct error *err)
{
    const struct fetch_consumer consumer = {.take = take_hosts, .context = c};
    struct period *period = &c->out->period;
    struct fetch_task task = {NULL, 0, 0, HOUR_S, ASK_COUNT, ASK_COUNT};
    struct buffer text;
    int r;

    /* On whole hours, so that what --resume keeps is of use in the next minute, too. */
    if (period->is_running)
        period->from_s -= period->from_s % HOUR_S;
    task.from_s = period->from_s + HOUR_S;
    task.to_s = period->from_s + (period->to_s - period->from_s + HOUR_S - 1) / HOUR_S * HOUR_S;
    c->first_s = INFINITY;
    c->last_s = 0;
    buffer_init(&text, COLLECT_TEXT_BYTES);
    buffer_str(&text, "sum by (instance) (");
    collect_put_last(c, &text, "wattribute_workload_energy_joules_total", true, HOUR_S);
    buffer_char(&text, ')');
    task.text = collect_keep_text(c, &text);
    if (!task.text)
        return error_set(err, -ENOMEM, "out of memory");
    r = fetch_all(c->options->server, &task, 1, 1, &consumer, &c->out->progress, err);
    if (r < 0)
        return r;
    if (c->host_count == 0)
        return error_set(err, -ENODATA, "%s '%.200s' is not there in this period",
                         c->options->job ? "the job" : "the pod",
                         c->options->job ? c->options->job : c->options->pod);
    period->from_s = MAX(period->from_s, (int64_t)c->first_s - (int64_t)2 * HOUR_S);
    if (period->to_s > (int64_t)c->last_s + HOUR_S) {
        period->to_s = (int64_t)c->last_s + HOUR_S;
        period->is_running = false;
    }
    c->rows = 16.0 * (double)c->host_count;
    return collect_set_targets(c) < 0 ? error_set(err, -ENOMEM, "out of memory") : 0;
}

int64_t collect_choose_step(const struct period *period, double rows)
{
    static const int64_t steps_s[] = {60, 300, 900, 1800, 3600};
    int64_t length_s = period->to_s - period->from_s, chosen_s = steps_s[0];

    for (size_t i = 0; i < ARRAY_SIZE(steps_s); i++) {
        if (!period->is_running && length_s % steps_s[i] != 0)
            break;
        chosen_s = steps_s[i];
        if (rows * (double)length_s <= (double)ROWS_BUDGET * (double)chosen_s)
            break;
    }
    return chosen_s;
}

static int set_step(struct collection *c, struct error *err)
{
    struct collected *out = c->out;
    struct period *period = &out->period;
    int64_t length_s;

    out->step_s =
        c->options->step_s > 0 ? c->options->step_s : collect_choose_step(period, c->rows);
    length_s = period->to_s - period->from_s;
    /* What a window does not fill yet is in the next report. */
    if (period->is_running || collect_is_life(c))
        length_s -= length_s % out->step_s;
    if (length_s % out->step_s != 0)
        return error_set(err, -EINVAL, "--resolution: the period is no multiple of it");
    if (length_s == 0)
        return error_set(err, -ENODATA, "the period has just begun: there is nothing yet");
    period->to_s = period->from_s + length_s;
    out->windows = (int32_t)(length_s / out->step_s);
    out->pages.from_s = period->from_s;
    out->pages.step_s = out->step_s;
    return 0;
}

static int plan(struct collection *c, struct error *err)
{
    const struct collect_options *options = c->options;
    int r;

    c->out->period = options->period;
    c->out->by = options->by;
    c->out->job = options->job;
    c->out->pod = options->pod;
    if (collect_set_targets(c) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    r = collect_is_life(c) ? find_life(c, err) : count_rows(c, err);
    if (r == 0)
        r = set_step(c, err);
    if (r == 0 && (totals_init(&c->out->totals, &c->out->period) < 0 || collect_add_tasks(c) < 0))
        r = error_set(err, -ENOMEM, "out of memory");
    return r;
}

static bool show(void *context, const struct fetch_progress *progress)
{
    const struct collection *c = context;
    const struct fetch_consumer *display = c->options->display;

    return !display || display->show(display->context, progress);
}

static int run_tasks(struct collection *c, size_t from, size_t to, struct error *err)
{
    const struct fetch_consumer consumer = {
        .take = collect_take_answer, .show = show, .context = c};

    return fetch_all(c->options->server, c->tasks + from, to - from, c->options->parallel,
                     &consumer, &c->out->progress, err);
}

/* First the pages: by them it is known of which restarts to ask more. */
static int run(struct collection *c, struct error *err)
{
    size_t counters = c->task_count, pages = 0;
    int r;

    c->out->progress.done = 0;
    c->out->progress.count = c->task_count;
    while (pages < counters && c->tasks[pages].index < ASK_NAMES)
        pages++;
    r = run_tasks(c, 0, pages, err);
    if (r == 0 && (pages_make_titles(&c->out->pages) < 0 || collect_add_restart_tasks(c) < 0))
        r = error_set(err, -ENOMEM, "out of memory");
    c->out->progress.count = c->task_count;
    if (r == 0)
        r = run_tasks(c, counters, c->task_count, err);
    return r < 0 ? r : run_tasks(c, pages, counters, err);
}

int collect(const struct collect_options *options, struct collected *ret, struct error *err)
{
    struct collection c = {.options = options, .out = ret};
    int r;

    *ret = (struct collected){0};
    names_init(&ret->names);
    arena_init(&c.texts, TEXTS_BYTES);
    r = plan(&c, err);
    if (r == 0)
        r = run(&c, err);
    if (r == 0 && ret->pages.table.count == 0)
        r = error_set(err, -ENODATA, "%.300s has no wattribute in this period; see docs/report.md",
                      server_address(options->server));
    if (r == 0) {
        totals_finish(&ret->totals, !collect_is_life(&c));
        if (collected_find_missing(ret) < 0)
            r = error_set(err, -ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < ARRAY_SIZE(c.counters); i++) {
        counters_done(&c.counters[i]);
        counters_done(&c.before[i]);
        counters_done(&c.after[i]);
    }
    free(c.tasks);
    arena_done(&c.texts);
    return r;
}
