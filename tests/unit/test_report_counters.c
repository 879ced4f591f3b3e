/* report/pages and counters: what of a counter is an increase, drawn as a row over windows. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "report/collect.h"
#include "report/counters.h"

enum { STEP_S = 60, FROM_S = 1700000000 };

/*
 * One character for each window, from the day before the period (-1), the window before it (0) on:
 * of a page '#' seen, 's' seen, with a state file, '.' not seen; of a row its value as a digit.
 */
struct drawing {
    const char *about;
    const char *page;
    const char *starts; /* the number of the process' start; NULL: it is always 0, long ago */
    const char *meter;  /* NULL: like the row */
    const char *row;
    double increase, late;
};

static struct answer *make_answer(const char *values, char nothing, double unit, double offset)
{
    static struct answer_label labels[] = {
        {"instance", "n1"}, {"meter", "gpu"}, {"kind", "slurm"}, {"id", "1"}};
    static struct answer_sample samples[64];
    static struct answer_series series;
    static struct answer answer;
    size_t count = 0;

    for (size_t i = 0; values[i]; i++)
        if (values[i] != nothing && values[i] != '.')
            samples[count++] = (struct answer_sample){
                FROM_S + ((double)i - 1) * STEP_S,
                values[i] >= '0' && values[i] <= '9' ? offset + (values[i] - '0') * unit : 1};
    series = (struct answer_series){labels, ARRAY_SIZE(labels), 0, count};
    answer = (struct answer){
        .series = &series, .series_count = 1, .samples = samples, .sample_count = count};
    return &answer;
}

static void take_page(struct pages *pages, const struct drawing *drawing)
{
    char seen[64], *c;

    pages->from_s = FROM_S;
    pages->step_s = STEP_S;
    assert_int_equal(pages_take_seen(pages, make_answer(drawing->page, '.', 1, 0)), 0);
    assert_int_equal(pages_take_states(pages, make_answer(drawing->page, '#', 1, 0)), 0);
    snprintf(seen, sizeof(seen), "%s", drawing->page);
    for (c = seen; *c; c++)
        *c = *c == '.' ? '.' : '0';
    /* Starts are 1000 s apart, of which the first is before the period. */
    assert_int_equal(pages_take_starts(pages, make_answer(drawing->starts ? drawing->starts : seen,
                                                          '.', 1000, FROM_S - 500)),
                     0);
    assert_int_equal(
        pages_take_meters(pages,
                          make_answer(drawing->meter ? drawing->meter : drawing->row, '.', 1, 0)),
        0);
}

static void add_row(const struct pages *pages, const char *values, double *ret_increase,
                    double *ret_late)
{
    const struct answer *answer = make_answer(values, '.', 1, 0);
    struct counters counters = {0};
    bool is_new, is_late;
    struct page *page = pages_find(pages, &answer->series[0]);
    struct counter_row *row;

    assert_non_null(page);
    row = counters_row(&counters, page, &answer->series[0], &is_new);
    assert_true(is_new);
    *ret_increase = *ret_late = 0;
    for (size_t i = 0; i < answer->sample_count; i++) {
        int32_t window = pages_window_of(pages, answer->samples[i].t_s);
        double value = answer->samples[i].value, increase;

        increase = counter_increase(
            pages, row, &(struct counter_look){.window = window, .value = value}, &is_late);
        if (window > 0)
            *ret_increase += increase;
        if (window > 0 && is_late)
            *ret_late += value;
    }
    counters_done(&counters);
}

static void an_increase_is_what_was_booked_in_the_period(void **state)
{
    static const struct drawing drawings[] = {
        /*                                           -101234567890123 */
        {"it was there before", "ss######", NULL, NULL, "22335778", 6, 0},
        {"what it had before does not count", "ssssssss", NULL, NULL, "55555555", 0, 0},
        {"born in the period", "ssssssss", NULL, "11111111", "...24444", 4, 0},
        {"born in the first window", "ssssssss", NULL, "11111111", "..344444", 4, 0},
        {"born before the period", "ssssssss", NULL, "11111111", ".3344444", 1, 0},
        {"seen once", "ssssssss", NULL, "11111111", "....6...", 6, 0},
        {"born while its node was not scraped", "ssss..ss", NULL, "1111..11", "......79", 9, 0},
        {"a gap in which counters went on", "ssss..ss", NULL, NULL, "1123..78", 7, 0},
        {"the node was away at the beginning", "s....sss", NULL, NULL, "2....568", 6, 0},
        {"a restart with a state file", "ssssssss", "00001111", NULL, "11234567", 6, 0},
        {"a restart without, that a fall shows", "########", "00001111", NULL, "11561347",
         5 + 6 + 1, 0},
        {"a restart without, that hides in a gap", "####..##", "0000..11", NULL, "1122..57", 1 + 7,
         0},
        {"a new boot with a state file", "ssss..ss", "0000..11", "4444..11", "2222..57", 7, 0},
        {"a restart and a row that is born then", "########", "00001111", "55551111", ".....256", 6,
         0},
        {"it fell alone: it ended and came back", "ssssssss", NULL, "11111111", "11551233", 4 + 3,
         0},
        {"a node that is new", "...#####", "...11111", NULL, "...23345", 5, 0},
        {"a node that is late", "...#####", "...00000", NULL, "...23345", 3, 2},
        {"a node that is late, with a state file", "...sssss", "...11111", NULL, "...23345", 3, 2},
        {"born on a late node", "...#####", "...00000", "...11111", ".....345", 5, 0},
        {"a node that is lost", "ssssss..", NULL, NULL, "112345..", 4, 0},
        {"a short absence of the row is none", "ssssssss", NULL, "11111111", "112..567", 6, 0},
        {"a long absence: retired, and a new life", "ssssssssssssssss", NULL, "1111111111111111",
         "123...........45", 2 - 1 + 1 - 0 + 5 - 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(drawings); i++) {
        struct pages pages = {0};
        double increase, late;

        take_page(&pages, &drawings[i]);
        add_row(&pages, drawings[i].row, &increase, &late);
        if (increase != drawings[i].increase || late != drawings[i].late)
            fail_msg("%s: %g and %g late, not %g and %g", drawings[i].about, increase, late,
                     drawings[i].increase, drawings[i].late);
        pages_done(&pages);
    }
}

/* Of a window in which the page began anew, with the value of a row at the end of each book. */
static void a_value_from_before_a_restart_is_not_counted_again(void **state)
{
    static const struct {
        const char *about;
        double before, after; /* 0: none */
        double value, increase, next_increase;
    } cases[] = {
        {"it ended with the old books, and did not come back", 60, 0, 60, 10, 0},
        {"it came back in the next window", 60, 0, 60, 10, 3},
        {"it came back in the same one", 60, 4, 4, 10 + 4, 3},
        {"it came back with more", 60, 70, 70, 10 + 70, 3},
        {"tiers of both books were mixed", 60, 4, 64, 10 + 4, 3},
        {"it was not seen in the old books of this window", 0, 4, 4, 4, 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct drawing drawing = {NULL, "########", NULL, "11111111", "........", 0, 0};
        struct counter_row before = {.last = cases[i].before}, after = {.last = cases[i].after};
        struct counter_look look = {.window = 3, .value = cases[i].value, .is_split = true};
        struct pages pages = {0};
        struct counters counters = {0};
        const struct answer *answer = make_answer("1", '.', 1, 0);
        struct counter_row *row;
        bool flag;
        double increase;

        take_page(&pages, &drawing);
        answer = make_answer("1", '.', 1, 0);
        row = counters_row(&counters, pages_find(&pages, answer->series), answer->series, &flag);
        row->last = 50;
        row->window = 2;
        look.before = cases[i].before > 0 ? &before : NULL;
        look.after = cases[i].after > 0 ? &after : NULL;
        increase = counter_increase(&pages, row, &look, &flag);
        if (increase != cases[i].increase)
            fail_msg("%s: %g", cases[i].about, increase);
        look = (struct counter_look){.window = 4, .value = cases[i].after + 3};
        increase = counter_increase(&pages, row, &look, &flag);
        if (cases[i].next_increase > 0 && increase != cases[i].next_increase)
            fail_msg("%s: then %g", cases[i].about, increase);
        counters_done(&counters);
        pages_done(&pages);
    }
}

static struct answer *make_meters(struct answer_series *series, size_t count,
                                  struct answer_sample *samples)
{
    static struct answer answer;

    answer = (struct answer){.series = series, .series_count = count, .samples = samples};
    return &answer;
}

static void a_meter_that_comes_late_is_no_second_restart(void **state)
{
    static struct answer_label gpu[] = {{"instance", "n1"}, {"meter", "gpu"}},
                               package[] = {{"instance", "n1"}, {"meter", "package"}};
    static struct answer_sample samples[] = {
        {FROM_S + STEP_S, 50}, {FROM_S + 2 * STEP_S, 5}, {FROM_S + 3 * STEP_S, 6},
        {FROM_S + STEP_S, 50}, {FROM_S + 9 * STEP_S, 5},
    };
    struct answer_series series[] = {{gpu, 2, 0, 3}, {package, 2, 3, 2}};
    const struct drawing drawing = {NULL, "############", "000111111111", "", "", 0, 0};
    struct pages pages = {0};
    struct page *page;

    (void)state;
    take_page(&pages, &drawing);
    assert_int_equal(pages_take_meters(&pages, make_meters(series, 2, samples)), 0);
    page = pages_find(&pages, &series[0]);
    assert_int_equal(page->restarts.count, 1);
    assert_int_equal(page->restarts.items[0].from, 2);
    assert_int_equal(page->restarts.items[0].to, 2);
    pages_done(&pages);
}

static void a_gpu_that_leaves_its_page_is_no_restart(void **state)
{
    static struct answer_label first[] = {{"instance", "n1"}, {"meter", "gpu"}, {"meter_id", "a"}},
                               second[] = {{"instance", "n1"}, {"meter", "gpu"}, {"meter_id", "b"}};
    static struct answer_sample samples[] = {{FROM_S + STEP_S, 50},
                                             {FROM_S + 2 * STEP_S, 60},
                                             {FROM_S + STEP_S, 5},
                                             {FROM_S + 2 * STEP_S, 6}};
    struct answer_series series[] = {{first, 3, 0, 2}, {second, 3, 2, 2}};
    const struct drawing drawing = {NULL, "ssssssss", NULL, "", "", 0, 0};
    struct pages pages = {0};

    (void)state;
    take_page(&pages, &drawing);
    assert_int_equal(pages_take_meters(&pages, make_meters(series, 2, samples)), 0);
    assert_int_equal(pages_find(&pages, &series[0])->restarts.count, 0);
    pages_done(&pages);
}

static void the_rounding_of_a_sum_is_no_fall(void **state)
{
    struct pages pages = {0};
    struct counters counters = {0};
    const struct drawing drawing = {NULL, "ssssssss", NULL, "11111111", "........", 0, 0};
    const struct answer *answer;
    struct counter_row *row;
    bool flag;

    (void)state;
    take_page(&pages, &drawing);
    answer = make_answer("1", '.', 1, 0);
    row = counters_row(&counters, pages_find(&pages, answer->series), answer->series, &flag);
    row->last = 36000000.1;
    row->window = 2;
    assert_true(counter_increase(&pages, row,
                                 &(struct counter_look){.window = 3, .value = 36000000.099999994},
                                 &flag) == 0);
    assert_false(counter_fell(36000000.1, 36000000.099999994));
    assert_true(counter_fell(36000000.1, 36000000.0));
    assert_true(counter_fell(1, 0));
    counters_done(&counters);
    pages_done(&pages);
}

static void a_row_is_the_same_whatever_pod_the_exporter_runs_in(void **state)
{
    static struct answer_label old[] = {{"instance", "n1"},
                                        {"kind", "slurm"},
                                        {"id", "77"},
                                        {"pod", "wattribute-a"},
                                        {"namespace", "x"}},
                               new[] = {{"instance", "n1"},
                                        {"kind", "slurm"},
                                        {"id", "77"},
                                        {"pod", "wattribute-b"},
                                        {"namespace", "y"}};
    struct answer_series one = {old, 5, 0, 0}, other = {new, 5, 0, 0};
    const struct drawing drawing = {NULL, "ssssssss", NULL, "", "", 0, 0};
    struct pages pages = {0};
    struct counters counters = {0};
    struct page *page;
    bool is_new;

    (void)state;
    take_page(&pages, &drawing);
    page = pages_find(&pages, &one);
    assert_ptr_equal(page, pages_find(&pages, &other));
    assert_ptr_equal(counters_row(&counters, page, &one, &is_new),
                     counters_row(&counters, page, &other, &is_new));
    assert_false(is_new);
    counters_done(&counters);
    pages_done(&pages);
}

/* A target beside n1, whose job is w. */
static void what_is_scraped_twice_or_of_one_name_is_told(void **state)
{
    static const struct {
        const char *instance, *job;
        double start_s;
        const char *gpu;
        size_t twice;
        const char *title;
    } cases[] = {
        {"n1", "other", 7, "GPU-1", 1, "n1 (job other)"},
        {"10.0.0.1", "w", 7, "GPU-1234567", 1, "10.0.0.1"},
        {"10.0.0.1", "w", 7, "0", 0, "10.0.0.1"}, /* started at the same time, elsewhere */
        {"n1", "other", 8, "0", 0, "n1 (job other)"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct answer_label one[] = {
            {"instance", "n1"}, {"job", "w"}, {"meter", "gpu"}, {"meter_id", "GPU-1234567"}};
        struct answer_label other[] = {{"instance", cases[i].instance},
                                       {"job", cases[i].job},
                                       {"meter", "gpu"},
                                       {"meter_id", cases[i].gpu}};
        struct answer_sample samples[] = {{FROM_S, 7}, {FROM_S, cases[i].start_s}};
        struct answer_series series[] = {{one, 4, 0, 1}, {other, 4, 1, 1}};
        struct answer answer = {.series = series, .series_count = 2, .samples = samples};
        struct collected collected = {.period = {FROM_S, FROM_S + STEP_S, false},
                                      .step_s = STEP_S,
                                      .windows = 1,
                                      .pages = {.from_s = FROM_S, .step_s = STEP_S}};

        assert_int_equal(pages_take_seen(&collected.pages, &answer), 0);
        assert_int_equal(pages_take_starts(&collected.pages, &answer), 0);
        assert_int_equal(pages_take_meters(&collected.pages, &answer), 0);
        assert_int_equal(pages_make_titles(&collected.pages), 0);
        assert_string_equal(pages_find(&collected.pages, &series[1])->title, cases[i].title);
        assert_int_equal(collected_find_missing(&collected), 0);
        assert_int_equal(collected.twice, cases[i].twice);
        collected_done(&collected);
    }
}

/* Two reports on one half each have what one on the whole has. */
static void periods_that_follow_each_other_add_up(void **state)
{
    static const char whole[] = "1123567789", meter[] = "1111111111";
    struct drawing drawing = {NULL, "ssssssssss", NULL, meter, whole, 0, 0};
    double sum = 0, increase, late;

    (void)state;
    for (int half = 0; half < 2; half++) {
        struct pages pages = {0};
        char row[16] = "";

        snprintf(row, sizeof(row), "%.6s", whole + 4 * half);
        drawing.page = "ssssss";
        drawing.meter = "111111";
        take_page(&pages, &drawing);
        add_row(&pages, row, &increase, &late);
        sum += increase;
        pages_done(&pages);
    }
    assert_true(sum == 8);
}

static void pages_are_found_by_the_labels_of_their_targets(void **state)
{
    static struct answer_label with_rows[] = {
        {"pod", "train-0"}, {"instance", "n1"}, {"exported_namespace", "x"}, {"cluster", "a"}};
    static struct answer_label other[] = {{"instance", "n1"}, {"cluster", "b"}};
    static struct answer_label target[] = {
        {"cluster", "a"}, {"instance", "n1"}, {"version", "1"}, {"namespace", "monitoring"}};
    struct answer_sample sample = {FROM_S, 1};
    struct answer_series series = {target, ARRAY_SIZE(target), 0, 1};
    struct answer answer = {
        .series = &series, .series_count = 1, .samples = &sample, .sample_count = 1};
    struct answer_series row = {with_rows, ARRAY_SIZE(with_rows), 0, 1};
    struct answer_series stranger = {other, ARRAY_SIZE(other), 0, 1};
    struct pages pages = {.from_s = FROM_S, .step_s = STEP_S};
    struct page *page;

    (void)state;
    assert_int_equal(pages_take_seen(&pages, &answer), 0);
    page = pages_find(&pages, &row);
    assert_non_null(page);
    assert_true(page->has_namespace);
    assert_null(pages_find(&pages, &stranger));
    assert_string_equal(page->title, "n1");
    pages_done(&pages);
}

static void what_is_missing_is_late_a_gap_or_lost(void **state)
{
    static const struct {
        const char *page, *starts;
        struct missing wanted[3];
        size_t count;
    } cases[] = {
        {"ssssssssssssssssssss", NULL, {{0}}, 0},
        {"sss...sssssssssssssss", NULL, {{0}}, 0}, /* too short to tell */
        {"ss.......sssssssssss", NULL, {{.kind = MISSING_GAP, .from_s = 0, .to_s = 7}}, 1},
        {"s........sssssssssss", NULL, {{.kind = MISSING_GAP, .to_s = 7, .is_older = true}}, 1},
        {".........sssssssssss", NULL, {{.kind = MISSING_LATE, .from_s = 0, .to_s = 7}}, 1},
        {"#####..........#####",
         "00000..........11111",
         {{.kind = MISSING_GAP,
           .from_s = 3,
           .to_s = 13,
           .has_restarted = true,
           .has_new_start = true}},
         1},
        {"sssss..........sssss",
         "00000..........11111",
         {{.kind = MISSING_GAP, .from_s = 3, .to_s = 13, .has_new_start = true}},
         1},
        {"sssssssss...........", NULL, {{.kind = MISSING_LOST, .from_s = 7, .to_s = 18}}, 1},
        {"ss..................", NULL, {{.kind = MISSING_LOST, .from_s = 0, .to_s = 18}}, 1},
        {".......sss.......s..", NULL, {{.kind = MISSING_GAP, .from_s = 8, .to_s = 15}}, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct drawing drawing = {NULL, cases[i].page, cases[i].starts, "", "", 0, 0};
        struct collected collected = {
            .period = {FROM_S, FROM_S + 18 * STEP_S, false}, .step_s = STEP_S, .windows = 18};

        take_page(&collected.pages, &drawing);
        assert_int_equal(collected_find_missing(&collected), 0);
        if (collected.missing_count != cases[i].count)
            fail_msg("%s: %zu missing", cases[i].page, collected.missing_count);
        for (size_t j = 0; j < cases[i].count; j++) {
            const struct missing *found = &collected.missing[j], *wanted = &cases[i].wanted[j];

            if (found->kind != wanted->kind || found->has_restarted != wanted->has_restarted ||
                found->is_older != wanted->is_older ||
                found->has_new_start != wanted->has_new_start ||
                found->from_s != FROM_S + wanted->from_s * STEP_S ||
                found->to_s != FROM_S + wanted->to_s * STEP_S)
                fail_msg("%s: kind %d from %lld to %lld", cases[i].page, (int)found->kind,
                         (long long)(found->from_s - FROM_S) / STEP_S,
                         (long long)(found->to_s - FROM_S) / STEP_S);
        }
        collected_done(&collected);
    }
}

static void the_step_grows_with_the_rows_and_divides_the_period(void **state)
{
    static const int64_t DAY_S = 86400;
    struct period month = {0, 30 * DAY_S, false}, odd = {0, DAY_S + 1800, false};
    struct period running = {0, DAY_S + 77, true};

    (void)state;
    assert_int_equal(collect_choose_step(&month, 120), 60);
    assert_int_equal(collect_choose_step(&month, 1000), 300);
    assert_int_equal(collect_choose_step(&month, 18000), 3600);
    assert_int_equal(collect_choose_step(&month, 1e9), 3600);
    assert_int_equal(collect_choose_step(&odd, 1e9), 1800);
    assert_int_equal(collect_choose_step(&running, 1e9), 3600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_increase_is_what_was_booked_in_the_period),
        cmocka_unit_test(a_value_from_before_a_restart_is_not_counted_again),
        cmocka_unit_test(a_meter_that_comes_late_is_no_second_restart),
        cmocka_unit_test(a_gpu_that_leaves_its_page_is_no_restart),
        cmocka_unit_test(the_rounding_of_a_sum_is_no_fall),
        cmocka_unit_test(a_row_is_the_same_whatever_pod_the_exporter_runs_in),
        cmocka_unit_test(what_is_scraped_twice_or_of_one_name_is_told),
        cmocka_unit_test(periods_that_follow_each_other_add_up),
        cmocka_unit_test(pages_are_found_by_the_labels_of_their_targets),
        cmocka_unit_test(what_is_missing_is_late_a_gap_or_lost),
        cmocka_unit_test(the_step_grows_with_the_rows_and_divides_the_period),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
