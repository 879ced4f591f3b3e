/* The questions of a collection, in PromQL and in time. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/array.h"
#include "core/macros.h"
#include "report/collect_private.h"

enum {
    DAY_S = 86400,
    ANSWER_BUDGET = 300000, /* samples to ask for at once */
    CHUNKS_MIN = 8,
    TASKS_MAX = 4 << 20,
};

static void put_escaped(struct buffer *out, char c)
{
    if (c == '\n')
        buffer_str(out, "\\n");
    else if (c == '"' || c == '\\')
        buffer_char(out, '\\'), buffer_char(out, c);
    else
        buffer_char(out, c);
}

void collect_put_quoted(struct buffer *out, const char *value)
{
    buffer_char(out, '"');
    for (; *value; value++)
        put_escaped(out, *value);
    buffer_char(out, '"');
}

static void put_pattern(struct buffer *out, const char *value)
{
    for (; *value; value++) {
        if (strchr("\\.+*?()|[]{}^$", *value))
            put_escaped(out, '\\');
        put_escaped(out, *value);
    }
}

const char *collect_keep_text(struct collection *c, struct buffer *text)
{
    const char *kept = buffer_failed(text) ? NULL : arena_copy(&c->texts, text->data, text->len);

    buffer_done(text);
    return kept;
}

void collect_put_workloads(const struct collection *c, struct buffer *out)
{
    const struct collect_options *options = c->options;
    const char *slash = options->pod ? strrchr(options->pod, '/') : NULL;

    if (options->job) {
        buffer_str(out, "kind=~\"slurm|lsf|pbs\",id=");
        collect_put_quoted(out, options->job);
    } else if (options->pod) {
        buffer_str(out, "kind=\"pod\",name=");
        collect_put_quoted(out, slash ? slash + 1 : options->pod);
    } else {
        buffer_str(out, "kind!=\"retired\"");
    }
}

/* last_over_time(NAME{...}[RANGEs]) */
void collect_put_last(const struct collection *c, struct buffer *out, const char *name,
                      bool is_workload, int64_t range_s)
{
    char range[40];

    buffer_str(out, "last_over_time(");
    buffer_str(out, c->options->is_recorded ? "report:" : "");
    buffer_str(out, name);
    buffer_char(out, '{');
    if (is_workload)
        collect_put_workloads(c, out);
    if (is_workload && c->targets[0])
        buffer_char(out, ',');
    buffer_str(out, c->targets);
    snprintf(range, sizeof(range), "}[%" PRId64 "s])", range_s);
    buffer_str(out, range);
}

static const char *make_text(struct collection *c, unsigned ask, int64_t range_s)
{
    static const char *const names[] = {
        [ASK_SEEN] = "wattribute_build_info",
        [ASK_STATES] = "wattribute_state_up",
        [ASK_STARTS] = "process_start_time_seconds",
        [ASK_METERS] = "wattribute_meter_energy_joules_total",
        [ASK_NAMES] = "wattribute_workload_info",
        [ASK_DEVICES] = "wattribute_gpu_info",
    };
    const struct counter_kind *kind =
        ask >= ASK_FIRST_COUNTER ? &counter_kinds[ask - ASK_FIRST_COUNTER] : NULL;
    bool is_workload = ask == ASK_NAMES || (kind && kind->account == TOTALS_WORKLOAD);
    bool is_sum = ask == ASK_METERS || kind;
    struct buffer text;

    buffer_init(&text, COLLECT_TEXT_BYTES);
    if (is_sum)
        buffer_str(&text, "sum without (tier, method) (");
    collect_put_last(c, &text, kind ? kind->name : names[ask], is_workload, range_s);
    if (is_sum)
        buffer_char(&text, ')');
    if (ask == ASK_STARTS) {
        buffer_str(&text, " and on (job, instance) ");
        collect_put_last(c, &text, names[ASK_SEEN], false, range_s);
    }
    return collect_keep_text(c, &text);
}

/* The matchers of --select, and the nodes of a job. */
int collect_set_targets(struct collection *c)
{
    struct buffer text;

    buffer_init(&text, COLLECT_TEXT_BYTES);
    buffer_str(&text, c->options->select);
    if (c->host_count > 0 && c->host_count < COLLECT_HOSTS_MAX) {
        buffer_str(&text, text.len > 0 ? ",instance=~\"" : "instance=~\"");
        for (size_t i = 0; i < c->host_count; i++) {
            buffer_str(&text, i > 0 ? "|" : "");
            put_pattern(&text, c->hosts[i]);
        }
        buffer_char(&text, '"');
    }
    buffer_char(&text, '\0');
    c->targets = collect_keep_text(c, &text);
    return c->targets ? 0 : -ENOMEM;
}

/* --- tasks --- */

int collect_add_task(struct collection *c, const struct fetch_task *task)
{
    if (!task->text || c->task_count >= TASKS_MAX ||
        !array_reserve(&c->tasks, &c->task_capacity, c->task_count, sizeof(*c->tasks)))
        return -ENOMEM;
    c->tasks[c->task_count++] = *task;
    return 0;
}

static int add_task(struct collection *c, unsigned ask, const char *text, int64_t from_s,
                    int64_t to_s, int64_t step_s)
{
    return collect_add_task(c, &(struct fetch_task){text, from_s, to_s, step_s, ask, ask});
}

/* The largest that is not above it: so cuts stay where they are while a period grows. */
static int64_t power_of_two(int64_t points)
{
    int64_t power = 1;

    while (power * 2 <= points)
        power *= 2;
    return power;
}

/* The day before the period, then the windows of the period with the one before. */
static int add_windows(struct collection *c, unsigned ask, double rows)
{
    const struct collected *out = c->out;
    int64_t step_s = out->step_s, from_s = out->period.from_s;
    int64_t points = (int64_t)(ANSWER_BUDGET / MAX(rows, 1.0));
    const char *text = make_text(c, ask, step_s);
    int r = add_task(c, ask, make_text(c, ask, DAY_S), from_s - step_s, from_s - step_s, step_s);

    points = MIN(points, MAX((int64_t)out->windows / CHUNKS_MIN, (int64_t)60));
    points = power_of_two(points);
    for (int64_t w = 0; w <= out->windows && r == 0; w += points)
        r = add_task(c, ask, text, from_s + w * step_s,
                     from_s + MIN(w + points - 1, (int64_t)out->windows) * step_s, step_s);
    return r;
}

/* Once for each day: whatever was told in it. */
static int add_days(struct collection *c, unsigned ask)
{
    const struct collected *out = c->out;
    const char *text = make_text(c, ask, DAY_S);
    int r = 0;

    for (int64_t t_s = out->period.from_s; r == 0; t_s += DAY_S) {
        int64_t at_s = MIN(t_s, out->period.to_s);

        r = add_task(c, ask, text, at_s, at_s, DAY_S);
        if (t_s >= out->period.to_s)
            break;
    }
    return r;
}

int collect_add_tasks(struct collection *c)
{
    /* In this order: states are needed for starts, and all of them for counters. */
    static const unsigned pages[] = {ASK_SEEN, ASK_STATES, ASK_STARTS, ASK_METERS};
    const double page_rows = c->rows / 8;
    int r = 0;

    c->task_count = 0;
    for (size_t i = 0; i < ARRAY_SIZE(pages) && r == 0; i++)
        r = add_windows(c, pages[i], page_rows);
    if (r == 0)
        r = add_days(c, ASK_NAMES);
    if (r == 0 && collect_is_life(c))
        r = add_days(c, ASK_DEVICES);
    for (unsigned i = 0; i < COUNTER_KINDS && r == 0; i++)
        if (counter_kinds[i].account == TOTALS_WORKLOAD || !collect_is_life(c))
            r = add_windows(c, ASK_FIRST_COUNTER + i,
                            counter_kinds[i].account == TOTALS_WORKLOAD ? c->rows : page_rows);
    return r;
}
