#include "attribution/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/map.h"

/* Samples of several sources come in any order, and one that hung may be late by this. */
static const uint64_t LATE_US = 60 * USEC_PER_SEC;

struct history *history_new(void)
{
    return calloc(1, sizeof(struct history));
}

void history_free(struct history *history)
{
    if (!history)
        return;
    for (size_t i = 0; i < history->row_count; i++)
        free(history->ranks[i].row);
    free(history);
}

static void close_row(struct history *history, size_t index)
{
    free(history->ranks[index].row);
    history->ranks[index] = history->ranks[--history->row_count];
}

/* Empties the place of a step, for another one. */
static void clear_step(struct history *history, uint64_t step)
{
    size_t at = step % HISTORY_STEPS;

    history->booked[at] = history->measured[at] = history->others[at] = 0;
    history->is_booked[at] = history->is_measured[at] = false;
    for (size_t owner = 0; owner < UNOWNED_COUNT; owner++)
        history->unowned[owner][at] = 0;
    for (size_t i = history->row_count; i-- > 0;) {
        struct history_rank *rank = &history->ranks[i];

        rank->energy_uj -= rank->row->steps[at];
        rank->row->steps[at] = 0;
        if (rank->energy_uj == 0)
            close_row(history, i);
    }
}

/* Ranks follow the last hour. */
static void fade(struct history *history)
{
    for (size_t i = 0; i < history->row_count; i++)
        history->ranks[i].before_uj -= history->ranks[i].before_uj / HISTORY_STEPS;
    for (size_t i = 0; i < history->candidate_count; i++)
        history->candidates[i].before_uj -= history->candidates[i].before_uj / HISTORY_STEPS;
    history->has_replaced = false;
}

/* Drops what is later than this step. */
static void go_back(struct history *history, uint64_t step)
{
    uint64_t count = MIN(history->end - (step + 1), (uint64_t)HISTORY_STEPS);

    for (uint64_t i = 1; i <= count; i++)
        clear_step(history, history->end - i);
    history->end = step + 1;
    history->first = MIN(history->first, step);
}

static void go_on(struct history *history, uint64_t step)
{
    uint64_t count = MIN(step + 1 - history->end, (uint64_t)HISTORY_STEPS);

    for (uint64_t i = 0; i < count; i++)
        clear_step(history, step - i);
    history->end = step + 1;
    fade(history);
}

void history_advance(struct history *history, uint64_t t_us)
{
    uint64_t step = t_us / HISTORY_STEP_US;

    if (!history)
        return;
    if (history->latest_us == 0) {
        history->first = step;
        history->end = step + 1;
    } else if (t_us + LATE_US < history->latest_us) {
        go_back(history, step);
        history->latest_us = t_us;
    } else if (step >= history->end) {
        go_on(history, step);
    }
    history->latest_us = MAX(history->latest_us, t_us);
}

/* The part of the energy until then. */
static uint64_t part_until(uint64_t energy_uj, const struct history_stretch *of, uint64_t t_us)
{
    if (t_us >= of->end_us)
        return energy_uj;
    return t_us <= of->start_us ? 0
                                : (uint64_t)((unsigned __int128)energy_uj * (t_us - of->start_us) /
                                             (of->end_us - of->start_us));
}

/* Divides the energy among the steps by time. Each part has what is between the end of the one
 * before it and its own: rounded off like that, all parts together are the whole in every step.
 * `is_known` may be NULL. Returns how much of it is in the history. */
static uint64_t spread(struct history *history, history_steps steps, bool *is_known,
                       const struct history_stretch *over, uint64_t before_uj, uint64_t energy_uj)
{
    uint64_t oldest = history->end - MIN(history->end, (uint64_t)HISTORY_STEPS);
    uint64_t first = MAX(over->start_us / HISTORY_STEP_US, oldest);
    uint64_t last = (over->end_us - (over->end_us > over->start_us)) / HISTORY_STEP_US;
    uint64_t begin_us = first * HISTORY_STEP_US, spread_uj = 0, done_uj;

    if (history->latest_us == 0 || first >= history->end || last < first)
        return 0;
    done_uj =
        part_until(before_uj + energy_uj, over, begin_us) - part_until(before_uj, over, begin_us);
    for (uint64_t step = first; step <= last && step < history->end; step++) {
        uint64_t end_us = (step + 1) * HISTORY_STEP_US;
        uint64_t until_uj =
            part_until(before_uj + energy_uj, over, end_us) - part_until(before_uj, over, end_us);

        steps[step % HISTORY_STEPS] += until_uj - done_uj;
        spread_uj += until_uj - done_uj;
        done_uj = until_uj;
        if (is_known)
            is_known[step % HISTORY_STEPS] = true;
    }
    history->first = MIN(history->first, first);
    return spread_uj;
}

void history_book(struct history *history, uint64_t energy_uj, uint64_t start_us, uint64_t end_us)
{
    if (!history)
        return;
    history->window.of = (struct history_stretch){MIN(start_us, end_us), end_us};
    history->window.energy_uj = 0;
    (void)spread(history, history->booked, history->is_booked, &history->window.of, 0, energy_uj);
}

/* Of the window that is being booked. */
static uint64_t spread_part(struct history *history, history_steps steps, uint64_t energy_uj)
{
    uint64_t before_uj = history->window.energy_uj;

    history->window.energy_uj += energy_uj;
    return spread(history, steps, NULL, &history->window.of, before_uj, energy_uj);
}

void history_measure(struct history *history, uint64_t energy_uj, uint64_t start_us,
                     uint64_t end_us, bool is_modelled)
{
    const struct history_stretch of = {MIN(start_us, end_us), end_us};

    if (history)
        (void)spread(history, history->measured, is_modelled ? NULL : history->is_measured, &of, 0,
                     energy_uj);
}

void history_book_unowned(struct history *history, enum unowned owner, uint64_t energy_uj)
{
    if (history)
        (void)spread_part(history, history->unowned[owner], energy_uj);
}

static struct history_rank *find_rank(struct history_rank *ranks, size_t count, uint64_t hash)
{
    for (size_t i = 0; i < count; i++)
        if (ranks[i].hash == hash)
            return &ranks[i];
    return NULL;
}

static uint64_t weight_of(const struct history_rank *rank)
{
    return rank->energy_uj + rank->before_uj;
}

/* There is at least one. */
static struct history_rank *find_least(struct history_rank *ranks, size_t count)
{
    struct history_rank *least = ranks;

    for (size_t i = 1; i < count; i++)
        if (weight_of(&ranks[i]) < weight_of(least))
            least = &ranks[i];
    return least;
}

static bool is_greatest(const struct history *history, const struct history_rank *candidate)
{
    for (size_t i = 0; i < history->candidate_count; i++)
        if (weight_of(&history->candidates[i]) > weight_of(candidate))
            return false;
    return true;
}

/* Counts a workload without a row. Where there is no room, it takes over the least, with its count:
 * so whoever uses much is not missed, however many there are. */
static struct history_rank *count_candidate(struct history *history, uint64_t hash,
                                            uint64_t energy_uj)
{
    struct history_rank *candidate = find_rank(history->candidates, history->candidate_count, hash);

    if (!candidate && history->candidate_count < HISTORY_CANDIDATES)
        candidate = &history->candidates[history->candidate_count++];
    else if (!candidate)
        candidate = find_least(history->candidates, history->candidate_count);
    candidate->hash = hash;
    candidate->before_uj += energy_uj;
    return candidate;
}

/* NULL: out of memory. */
static struct history_row *new_row(enum workload_kind kind, const char *id)
{
    struct history_row *row = calloc(1, sizeof(*row));

    if (!row)
        return NULL;
    row->kind = kind;
    snprintf(row->id, sizeof(row->id), "%s", id);
    return row;
}

/* The greatest without a row takes that of the least, who is one of the others then; once in a
 * step. What it used before stays with the others. */
static struct history_rank *replace_least(struct history *history, struct history_rank *candidate,
                                          enum workload_kind kind, const char *id)
{
    struct history_rank *least = find_least(history->ranks, history->row_count);
    struct history_rank out = {.hash = least->hash, .before_uj = weight_of(least)};
    struct history_row *row;

    if (history->has_replaced || candidate->before_uj <= out.before_uj ||
        !is_greatest(history, candidate) || !(row = new_row(kind, id)))
        return NULL;
    for (size_t i = 0; i < HISTORY_STEPS; i++)
        history->others[i] += least->row->steps[i];
    free(least->row);
    *least = (struct history_rank){candidate->hash, 0, candidate->before_uj, row};
    *candidate = out;
    history->has_replaced = true;
    return least;
}

/* NULL: it is one of the others. */
static struct history_rank *open_rank(struct history *history, enum workload_kind kind,
                                      const char *id, uint64_t energy_uj)
{
    uint64_t hash = map_hash_u64(map_hash_bytes(span_of(id)) + kind);
    struct history_rank *rank = find_rank(history->ranks, history->row_count, hash);
    struct history_row *row;

    if (rank)
        return rank;
    if (history->row_count == HISTORY_ROWS)
        return replace_least(history, count_candidate(history, hash, energy_uj), kind, id);
    row = new_row(kind, id);
    if (!row)
        return NULL;
    rank = &history->ranks[history->row_count++];
    *rank = (struct history_rank){.hash = hash, .row = row};
    return rank;
}

void history_book_workload(struct history *history, enum workload_kind kind, const char *id,
                           uint64_t energy_uj)
{
    struct history_rank *rank;

    if (!history || history->latest_us == 0 || energy_uj == 0)
        return;
    rank = open_rank(history, kind, id, energy_uj);
    if (!rank) {
        (void)spread_part(history, history->others, energy_uj);
        return;
    }
    rank->energy_uj += spread_part(history, rank->row->steps, energy_uj);
    if (rank->energy_uj == 0) /* all of it is of a time that is not here */
        close_row(history, (size_t)(rank - history->ranks));
}
