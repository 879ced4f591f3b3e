/* attribution/history: every microjoule is in the step of its time, whoever comes and goes and
 * whatever the clock does. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "attribution/history.h"
#include "core/json_reader.h"
#include "metrics/history_json.h"

#define STEP HISTORY_STEP_US
#define T0   ((uint64_t)1785000000 * USEC_PER_SEC) /* a whole step */

enum { CAP_BYTES = 4 << 20 };

/* A fixed sequence (Knuth's MMIX generator). */
static uint64_t next(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*seed >> 20) % below;
}

static struct history *begin(uint64_t t_us)
{
    struct history *history = history_new();

    assert_non_null(history);
    history_advance(history, t_us);
    return history;
}

/* A window of one pod alone. */
static void book_pod(struct history *history, const char *id, uint64_t energy_uj, uint64_t start_us,
                     uint64_t end_us)
{
    history_book(history, energy_uj, start_us, end_us);
    history_book_workload(history, WORKLOAD_POD, id, energy_uj);
}

static uint64_t at(const history_steps steps, uint64_t t_us)
{
    return steps[t_us / STEP % HISTORY_STEPS];
}

static const struct history_row *row_of(const struct history *history, const char *id)
{
    for (size_t i = 0; i < history->row_count; i++)
        if (strcmp(history->ranks[i].row->id, id) == 0)
            return history->ranks[i].row;
    return NULL;
}

/* In every step; returns the sum over all of them. */
static uint64_t check_balance(const struct history *history)
{
    uint64_t total_uj = 0;

    for (size_t s = 0; s < HISTORY_STEPS; s++) {
        uint64_t parts_uj = history->others[s];

        for (size_t owner = 0; owner < UNOWNED_COUNT; owner++)
            parts_uj += history->unowned[owner][s];
        for (size_t i = 0; i < history->row_count; i++)
            parts_uj += history->ranks[i].row->steps[s];
        assert_int_equal(parts_uj, history->booked[s]);
        total_uj += parts_uj;
    }
    for (size_t i = 0; i < history->row_count; i++) {
        uint64_t row_uj = 0;

        for (size_t s = 0; s < HISTORY_STEPS; s++)
            row_uj += history->ranks[i].row->steps[s];
        assert_int_equal(row_uj, history->ranks[i].energy_uj);
    }
    return total_uj;
}

static void energy_is_placed_when_it_was_used_however_late_it_is_booked(void **state)
{
    struct history *history = begin(T0);

    (void)state;
    history_advance(history, T0 + 60 * USEC_PER_SEC);
    book_pod(history, "a", 10000000, T0 + 4 * USEC_PER_SEC, T0 + 14 * USEC_PER_SEC);
    assert_int_equal(at(row_of(history, "a")->steps, T0), 1000000);
    assert_int_equal(at(row_of(history, "a")->steps, T0 + STEP), 5000000);
    assert_int_equal(at(row_of(history, "a")->steps, T0 + 2 * STEP), 4000000);
    assert_int_equal(at(history->booked, T0 + STEP), 5000000);
    assert_int_equal(check_balance(history), 10000000);
    history_free(history);
}

static void windows_of_any_length_with_any_parts_balance_in_every_step(void **state)
{
    struct history *history = begin(T0);
    uint64_t seed = 1, booked_uj = 0, t = T0;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        uint64_t start_us = t, parts = next(&seed, 5), energy_uj = 0, part_uj[5];

        t += 1 + next(&seed, 2 * USEC_PER_SEC);
        history_advance(history, t);
        for (uint64_t p = 0; p < parts; p++)
            energy_uj += part_uj[p] = next(&seed, 700000007);
        history_book(history, energy_uj, start_us, t);
        for (uint64_t p = 0; p < parts; p++) {
            char id[32];

            snprintf(id, sizeof(id), "%u", (unsigned)next(&seed, 400));
            if (p == 0)
                history_book_unowned(history, (enum unowned)next(&seed, UNOWNED_COUNT), part_uj[p]);
            else
                history_book_workload(history, WORKLOAD_UNIT, id, part_uj[p]);
        }
        booked_uj += energy_uj;
        if (i % 100 == 0 && t < T0 + 3590 * USEC_PER_SEC)
            assert_int_equal(check_balance(history), booked_uj);
    }
    (void)check_balance(history);
    assert_int_equal(history->row_count, HISTORY_ROWS);
    history_free(history);
}

static void an_hour_later_it_is_forgotten_with_its_row(void **state)
{
    struct history *history = begin(T0);

    (void)state;
    book_pod(history, "a", 1000, T0, T0 + 1);
    history_advance(history, T0 + (HISTORY_STEPS - 1) * STEP);
    book_pod(history, "b", 3000, T0 + STEP, T0 + 2 * STEP);
    assert_int_equal(check_balance(history), 4000);
    history_advance(history, T0 + HISTORY_STEPS * STEP);
    assert_null(row_of(history, "a"));
    assert_int_equal(check_balance(history), 3000);
    book_pod(history, "late", 500, T0, T0 + STEP); /* older than all that is here */
    assert_null(row_of(history, "late"));
    book_pod(history, "late", 1000, T0, T0 + 2 * STEP); /* half of it is */
    assert_int_equal(check_balance(history), 3500);
    history_free(history);
}

static void a_workload_that_comes_back_has_one_row(void **state)
{
    struct history *history = begin(T0);

    (void)state;
    book_pod(history, "a", 1000, T0, T0 + 1);
    history_advance(history, T0 + 100 * STEP);
    book_pod(history, "a", 1000, T0 + 100 * STEP, T0 + 100 * STEP + 1);
    history_book(history, 500, T0 + 100 * STEP, T0 + 100 * STEP + 1);
    history_book_workload(history, WORKLOAD_UNIT, "a", 500); /* another kind */
    assert_int_equal(history->row_count, 2);
    assert_int_equal(at(row_of(history, "a")->steps, T0), 1000);
    assert_int_equal(check_balance(history), 2500);
    history_free(history);
}

static void a_sleep_is_one_long_window(void **state)
{
    struct history *history = begin(T0);

    (void)state;
    book_pod(history, "a", 1000, T0, T0 + 1);
    history_advance(history, T0 + 600 * USEC_PER_SEC);
    history_book(history, 600000000, T0, T0 + 600 * USEC_PER_SEC);
    history_book_unowned(history, UNOWNED_GAP, 600000000);
    assert_int_equal(at(history->unowned[UNOWNED_GAP], T0 + 300 * USEC_PER_SEC), 5000000);
    assert_int_equal(check_balance(history), 600001000);
    /* A week: what is left is the last hour of it. */
    history_advance(history, T0 + 604800 * USEC_PER_SEC);
    history_book(history, 604200000000, T0 + 600 * USEC_PER_SEC, T0 + 604800 * USEC_PER_SEC);
    history_book_unowned(history, UNOWNED_GAP, 604200000000);
    assert_int_equal(check_balance(history), (HISTORY_STEPS - 1) * 5000000ULL);
    history_free(history);
}

static void what_is_of_the_future_is_dropped_when_the_clock_is_set_back(void **state)
{
    struct history *history = begin(T0);

    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        history_advance(history, T0 + (i + 1) * STEP);
        book_pod(history, i < 50 ? "a" : "b", 1000, T0 + i * STEP, T0 + (i + 1) * STEP);
    }
    history_advance(history, T0 + 90 * STEP); /* less than a minute: somebody was late */
    assert_int_equal(check_balance(history), 100000);
    history_advance(history, T0 + 20 * STEP);
    assert_int_equal(check_balance(history), 21000);
    assert_null(row_of(history, "b"));
    book_pod(history, "late", 1000, T0 + 100 * STEP, T0 + 101 * STEP); /* of the time that was */
    assert_null(row_of(history, "late"));
    history_advance(history, T0 + 22 * STEP);
    book_pod(history, "c", 1000, T0 + 21 * STEP, T0 + 22 * STEP);
    assert_int_equal(check_balance(history), 22000);
    history_advance(history, T0 - 100000 * STEP); /* days */
    assert_int_equal(check_balance(history), 0);
    book_pod(history, "d", 1000, T0 - 100000 * STEP, T0 - 100000 * STEP + 1);
    assert_int_equal(check_balance(history), 1000);
    history_free(history);
}

static void the_largest_have_rows_however_many_there_are(void **state)
{
    enum { MANY = 5000 };
    struct history *history = begin(T0);
    uint64_t booked_uj = 0, t = T0;
    char id[32];

    (void)state;
    for (int step = 0; step < 200; step++, t += STEP) {
        history_advance(history, t + STEP);
        for (int i = 0; i < MANY / 100; i++) { /* each comes once, with a little */
            snprintf(id, sizeof(id), "little-%d", step * 50 + i);
            book_pod(history, id, 1000, t, t + STEP);
            booked_uj += 1000;
        }
        if (step >= 20) { /* long after all rows are taken */
            book_pod(history, "large", 400000, t, t + STEP);
            booked_uj += 400000;
        }
        assert_int_equal(check_balance(history), booked_uj);
    }
    assert_int_equal(history->row_count, HISTORY_ROWS);
    assert_non_null(row_of(history, "large"));
    /* All but what it used in the few steps before it was found. */
    assert_true(at(row_of(history, "large")->steps, T0 + 30 * STEP) == 400000);
    history_free(history);
}

static void it_takes_at_most_a_mebibyte(void **state)
{
    (void)state;
    assert_true(sizeof(struct history) + HISTORY_ROWS * sizeof(struct history_row) <= 1 << 20);
    assert_true(sizeof(struct history) < 64 * 1024); /* without workloads */
}

/* From here on: the document. */

static struct json *read_document(const struct history *history,
                                  const struct history_json_options *options)
{
    struct json *document;
    struct buffer out;

    buffer_init(&out, CAP_BYTES);
    history_json(history, options, &out);
    assert_false(buffer_failed(&out));
    assert_int_equal(json_read((struct span){out.data, out.len}, &document), 0);
    buffer_done(&out);
    return document;
}

/* -1: null. */
static double watts(const struct json *array, size_t point)
{
    double value;

    assert_true(point < json_length(array));
    return json_double(json_at(array, point), &value) ? value : -1;
}

/* 20 s at 10 W of a pod and 2 W idle, then 40 s of which the last 20 s are pending. */
static struct history *some_minute(void)
{
    struct history *history = begin(T0 - 2 * STEP);

    history_advance(history, T0 + 60 * USEC_PER_SEC);
    history_measure(history, 720000000, T0, T0 + 60 * USEC_PER_SEC, false);
    for (uint64_t t = T0; t < T0 + 40 * USEC_PER_SEC; t += USEC_PER_SEC) {
        history_book(history, 12000000, t, t + USEC_PER_SEC);
        history_book_workload(history, WORKLOAD_POD, "a", 10000000);
        history_book_unowned(history, UNOWNED_IDLE, 2000000);
    }
    return history;
}

static void pending_points_are_null_and_so_are_those_before_it_all_began(void **state)
{
    struct history *history = some_minute();
    const struct history_json_options options = {.booked_until_us = T0 + 40 * USEC_PER_SEC,
                                                 .measured_until_us = T0 + 60 * USEC_PER_SEC};
    struct json *document = read_document(history, &options);
    const struct json *series = json_at(json_get(document, "series"), 0);
    int64_t start, count, interval;

    (void)state;
    assert_true(json_int64(json_get(document, "start_time"), &start));
    assert_true(json_int64(json_get(document, "count"), &count));
    assert_true(json_int64(json_get(document, "interval_seconds"), &interval));
    assert_int_equal(start, T0 / USEC_PER_SEC - 5);
    assert_int_equal(count, 13);
    assert_int_equal(interval, 5);
    for (size_t i = 0; i < 13; i++) {
        bool is_booked = i >= 1 && i < 9;

        assert_true(watts(json_get(document, "booked"), i) == (is_booked ? 12 : -1));
        assert_true(watts(json_get(series, "watts"), i) == (is_booked ? 10 : -1));
        assert_true(watts(json_get(json_get(document, "unowned"), "idle"), i) ==
                    (is_booked ? 2 : -1));
        assert_true(watts(json_get(document, "others"), i) == (is_booked ? 0 : -1));
        assert_true(watts(json_get(document, "measured"), i) == (i >= 1 ? 12 : -1));
    }
    assert_string_equal(json_text(json_get(series, "id")), "a");
    json_free(document);
    history_free(history);
}

static void it_is_as_coarse_as_the_page(void **state)
{
    struct history *history = some_minute();
    const struct history_json_options options = {.interval_us = 12 * USEC_PER_SEC,
                                                 .booked_until_us = T0 + 40 * USEC_PER_SEC,
                                                 .measured_until_us = T0 + 60 * USEC_PER_SEC};
    struct json *document = read_document(history, &options);
    int64_t start, interval;

    (void)state;
    assert_true(json_int64(json_get(document, "interval_seconds"), &interval));
    assert_int_equal(interval, 15);
    assert_true(json_int64(json_get(document, "start_time"), &start));
    assert_int_equal(start, T0 / USEC_PER_SEC); /* T0 is a multiple of 15 s, too */
    assert_int_equal(json_length(json_get(document, "booked")), 4);
    assert_true(watts(json_get(document, "booked"), 0) == 12);
    assert_true(watts(json_get(document, "booked"), 1) == 12);
    assert_true(watts(json_get(document, "booked"), 2) == -1); /* a part of it is pending */
    assert_true(watts(json_get(document, "measured"), 3) == 12);
    json_free(document);
    history_free(history);
}

static void what_is_hidden_is_among_the_others(void **state)
{
    struct history *history = some_minute();
    struct history_json_options options = {.booked_until_us = T0 + 40 * USEC_PER_SEC};
    struct json *document;

    (void)state;
    history->ranks[0].row->is_hidden = true;
    document = read_document(history, &options);
    assert_int_equal(json_length(json_get(document, "series")), 0);
    assert_true(watts(json_get(document, "others"), 3) == 10);
    json_free(document);
    history->ranks[0].row->is_hidden = false;
    history->ranks[0].row->kind = WORKLOAD_UNIT;
    options.expose = EXPOSE_PODS;
    document = read_document(history, &options);
    assert_int_equal(json_length(json_get(document, "series")), 0);
    assert_true(watts(json_get(document, "others"), 3) == 10);
    json_free(document);
    history_free(history);
}

static void before_anything_was_read_it_is_empty(void **state)
{
    struct history *history = history_new();
    const struct history_json_options options = {0};
    struct json *document;

    (void)state;
    assert_non_null(history);
    book_pod(history, "a", 1000, T0, T0 + 1);
    document = read_document(history, &options);
    assert_int_equal(json_length(json_get(document, "booked")), 0);
    assert_int_equal(json_length(json_get(document, "series")), 0);
    json_free(document);
    history_free(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_is_placed_when_it_was_used_however_late_it_is_booked),
        cmocka_unit_test(windows_of_any_length_with_any_parts_balance_in_every_step),
        cmocka_unit_test(an_hour_later_it_is_forgotten_with_its_row),
        cmocka_unit_test(a_workload_that_comes_back_has_one_row),
        cmocka_unit_test(a_sleep_is_one_long_window),
        cmocka_unit_test(what_is_of_the_future_is_dropped_when_the_clock_is_set_back),
        cmocka_unit_test(the_largest_have_rows_however_many_there_are),
        cmocka_unit_test(it_takes_at_most_a_mebibyte),
        cmocka_unit_test(pending_points_are_null_and_so_are_those_before_it_all_began),
        cmocka_unit_test(it_is_as_coarse_as_the_page),
        cmocka_unit_test(what_is_hidden_is_among_the_others),
        cmocka_unit_test(before_anything_was_read_it_is_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
