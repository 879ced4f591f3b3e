#include "metrics/history_json.h"

#include <stdlib.h>

#include "core/json.h"

/* The points that are complete, each of `steps` steps: a whole number of them since the epoch. */
struct points {
    const struct history *history;
    uint64_t first, end;
    uint64_t steps;
    uint64_t booked_until_us, measured_until_us;
};

static struct points find_points(const struct history *history,
                                 const struct history_json_options *options)
{
    struct points points = {
        .history = history,
        .steps = MIN((MAX(options->interval_us, (uint64_t)1) - 1) / HISTORY_STEP_US + 1,
                     (uint64_t)HISTORY_STEPS),
        .booked_until_us = options->booked_until_us,
        .measured_until_us = options->measured_until_us,
    };
    uint64_t oldest = history->end - MIN(history->end, (uint64_t)HISTORY_STEPS);
    /* The first step and the last may have only a part of their time. */
    uint64_t begin = MAX(history->first + 1, oldest);

    if (history->latest_us == 0)
        return points;
    points.first = (begin + points.steps - 1) / points.steps;
    points.end = MAX((history->end - 1) / points.steps, points.first);
    return points;
}

static uint64_t sum_steps(const struct points *points, uint64_t point, const history_steps steps)
{
    uint64_t energy_uj = 0;

    for (uint64_t i = 0; i < points->steps; i++)
        energy_uj += steps[(point * points->steps + i) % HISTORY_STEPS];
    return energy_uj;
}

/* Is all of it there, and was anything? */
static bool is_known(const struct points *points, uint64_t point, const bool *is_known_at,
                     uint64_t until_us)
{
    bool any = false;

    for (uint64_t i = 0; i < points->steps; i++)
        any |= is_known_at[(point * points->steps + i) % HISTORY_STEPS];
    return any && (point + 1) * points->steps * HISTORY_STEP_US <= until_us;
}

static void put_watts(struct buffer *out, const struct points *points, const history_steps steps,
                      bool is_measured)
{
    const struct history *history = points->history;
    uint64_t per_mw_uj = points->steps * HISTORY_STEP_US / 1000;

    buffer_char(out, '[');
    for (uint64_t point = points->first; point < points->end; point++) {
        if (point > points->first)
            buffer_char(out, ',');
        if (is_measured ? is_known(points, point, history->is_measured, points->measured_until_us)
                        : is_known(points, point, history->is_booked, points->booked_until_us))
            buffer_fixed(
                out, (int64_t)((sum_steps(points, point, steps) + per_mw_uj / 2) / per_mw_uj), 3);
        else
            buffer_str(out, "null");
    }
    buffer_char(out, ']');
}

static bool is_shown(const struct history_row *row, enum expose expose)
{
    return !row->is_hidden && expose_has(expose, row->kind);
}

static int by_energy(const void *a, const void *b)
{
    const struct history_rank *x = a, *y = b;

    if (x->energy_uj != y->energy_uj)
        return x->energy_uj > y->energy_uj ? -1 : 1;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static void put_series(struct buffer *out, const struct points *points, enum expose expose)
{
    const struct history *history = points->history;
    struct history_rank ranks[HISTORY_ROWS] = {0};

    for (size_t i = 0; i < history->row_count; i++)
        ranks[i] = history->ranks[i];
    qsort(ranks, history->row_count, sizeof(*ranks), by_energy);
    buffer_char(out, '[');
    for (size_t i = 0; i < history->row_count; i++) {
        const struct history_row *row = ranks[i].row;

        if (!is_shown(row, expose))
            continue;
        json_element(out);
        buffer_char(out, '{');
        json_member(out, "kind", workload_words[row->kind]);
        json_member(out, "id", row->id);
        if (row->name[0])
            json_member(out, "name", row->name);
        if (row->namespace[0])
            json_member(out, "namespace", row->namespace);
        json_key(out, "watts");
        put_watts(out, points, row->steps, false);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
}

/* All that has no series. */
static void put_others(struct buffer *out, const struct points *points, enum expose expose)
{
    const struct history *history = points->history;
    history_steps others;

    for (size_t at = 0; at < HISTORY_STEPS; at++)
        others[at] = history->others[at];
    for (size_t i = 0; i < history->row_count; i++)
        for (size_t at = 0; at < HISTORY_STEPS && !is_shown(history->ranks[i].row, expose); at++)
            others[at] += history->ranks[i].row->steps[at];
    put_watts(out, points, others, false);
}

void history_json(const struct history *history, const struct history_json_options *options,
                  struct buffer *out)
{
    const struct points points = find_points(history, options);

    buffer_char(out, '{');
    json_member_u64(out, "api", 1);
    json_member_u64(out, "interval_seconds", points.steps * HISTORY_STEP_US / USEC_PER_SEC);
    json_member_u64(out, "start_time",
                    points.first * points.steps * HISTORY_STEP_US / USEC_PER_SEC);
    json_member_u64(out, "count", points.end - points.first);
    json_key(out, "series");
    put_series(out, &points, options->expose);
    json_key(out, "others");
    put_others(out, &points, options->expose);
    json_key(out, "unowned");
    buffer_char(out, '{');
    for (size_t owner = 0; owner < UNOWNED_COUNT; owner++) {
        json_key(out, unowned_words[owner]);
        put_watts(out, &points, history->unowned[owner], false);
    }
    buffer_char(out, '}');
    json_key(out, "booked");
    put_watts(out, &points, history->booked, false);
    json_key(out, "measured");
    put_watts(out, &points, history->measured, true);
    buffer_char(out, '}');
}
