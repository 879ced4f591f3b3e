/* top/top: what keys and documents do to the table. */
#include "top_fixture.h"

#include <math.h>

#include "core/macros.h"

static void start(struct top *top)
{
    top_init(top, 2);
    assert_int_equal(top_show(top, node_at(100, "7")), 0);
}

/* The ids of the rows, in order. */
static void assert_rows(const struct top *top, const char *wanted)
{
    char text[256] = "";

    for (size_t i = 0; i < top->row_count; i++) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, top->rows[i]->id);
    }
    assert_string_equal(text, wanted);
}

static void press_key(struct top *top, unsigned key, size_t times)
{
    for (size_t i = 0; i < times; i++)
        top_press(top, key);
}

static void rows_are_ordered_by_watts_and_those_that_have_ended_come_last(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    assert_rows(&top, "p1 47 c0 1000");
    press(&top, "r");
    assert_rows(&top, "c0 47 p1 1000");
    press(&top, "r");
    assert_rows(&top, "p1 47 c0 1000");
    top_done(&top);
}

static void each_column_with_values_can_order_the_table(void **state)
{
    static const struct {
        enum top_column column;
        const char *rows;
    } orders[] = {
        {TOP_ENERGY, "p1 47 c0 1000"},     {TOP_UNCERTAINTY, "p1 c0 47 1000"},
        {TOP_GPU_MEMORY, "p1 c0 47 1000"}, {TOP_CPU, "c0 p1 47 1000"},
        {TOP_MEMORY, "p1 c0 47 1000"},     {TOP_GRAMS, "p1 c0 47 1000"},
        {TOP_COST, "p1 c0 47 1000"},       {TOP_NAME, "1000 47 p1 c0"},
        {TOP_WATTS, "p1 47 c0 1000"},
    };
    struct top top;

    (void)state;
    start(&top);
    assert_int_equal(top_show(&top, node_at(101, "9")), 0);
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        press(&top, i % 3 == 0 ? "s" : i % 3 == 1 ? ">" : "");
        if (i % 3 == 2)
            top_press(&top, TOP_KEY_RIGHT);
        assert_int_equal(top.order, orders[i].column);
        assert_rows(&top, orders[i].rows);
    }
    press(&top, "<");
    assert_int_equal(top.order, TOP_NAME);
    top_press(&top, TOP_KEY_LEFT);
    assert_int_equal(top.order, TOP_COST);
    top_done(&top);
}

static void a_column_without_values_is_left_out(void **state)
{
    struct top top;

    (void)state;
    top_init(&top, 2);
    assert_int_equal(
        top_show(&top, parse_document("{\"api\":1,\"time\":1,\"workloads\":[{\"kind\":\"user\","
                                      "\"id\":\"1\",\"watts\":2,\"energy_joules\":3}]}")),
        0);
    press(&top, "ss");
    assert_int_equal(top.order, TOP_NAME);
    press(&top, "s");
    assert_int_equal(top.order, TOP_WATTS);
    top_done(&top);
}

static void the_cursor_moves_within_the_rows(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    press(&top, "k");
    assert_int_equal(top.selected, 0);
    press(&top, "jj");
    assert_int_equal(top.selected, 2);
    press_key(&top, TOP_KEY_DOWN, 9);
    assert_int_equal(top.selected, 3);
    press_key(&top, TOP_KEY_UP, 1);
    assert_int_equal(top.selected, 2);
    top.page = 2;
    press_key(&top, TOP_KEY_PAGE_UP, 1);
    assert_int_equal(top.selected, 0);
    press_key(&top, TOP_KEY_PAGE_DOWN, 1);
    assert_int_equal(top.selected, 2);
    press_key(&top, TOP_KEY_END, 1);
    assert_int_equal(top.selected, 3);
    press_key(&top, TOP_KEY_HOME, 1);
    assert_int_equal(top.selected, 0);
    top_done(&top);
}

static void the_cursor_stays_on_its_workload_when_the_order_changes(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    press(&top, "j");
    assert_string_equal(top_selected(&top)->id, "47");
    press(&top, "<"); /* by name */
    assert_string_equal(top_selected(&top)->id, "47");
    assert_int_equal(top_show(&top, node_at(102, "8")), 0);
    assert_string_equal(top_selected(&top)->id, "47");
    top_press(&top, TOP_KEY_HOME); /* on whoever is first */
    press(&top, "r");
    assert_int_equal(top.selected, 0);
    top_done(&top);
}

static void a_filter_lets_through_what_contains_it_in_any_case(void **state)
{
    static const struct {
        const char *filter, *rows;
    } cases[] = {
        {"TRAIN", "p1"}, {"ml/", "p1"}, {"slurm", "47"},   {"relax", "47"},  {"ann", "p1"},
        {"xyz", ""},     {"c0", "c0"},  {"train:7", "p1"}, {"1000", "1000"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct top top;

        start(&top);
        press(&top, "/");
        press(&top, cases[i].filter);
        assert_rows(&top, cases[i].rows);
        top_press(&top, TOP_KEY_ENTER);
        assert_false(top.is_typing || top.is_open);
        assert_rows(&top, cases[i].rows);
        top_press(&top, TOP_KEY_ESCAPE);
        assert_rows(&top, "p1 47 c0 1000");
        top_done(&top);
    }
}

static void the_filter_is_typed_letter_by_letter(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    press(&top, "/qhs r"); /* no commands now */
    assert_string_equal(top.filter, "qhs r");
    assert_false(top.is_done || top.is_helping);
    press_key(&top, TOP_KEY_ERASE, 2);
    assert_string_equal(top.filter, "qhs");
    top_press(&top, 'U' & 0x1f);
    assert_string_equal(top.filter, "");
    press_key(&top, TOP_KEY_ERASE, 1);
    top_press(&top, 0xfc);
    top_press(&top, 0x6f22);
    top_press(&top, 0x1f600);
    top_press(&top, 0xd800);
    top_press(&top, 3);
    assert_string_equal(top.filter, "ü漢😀");
    press_key(&top, TOP_KEY_ERASE, 1);
    assert_string_equal(top.filter, "ü漢");
    press_key(&top, 'x', 1000);
    assert_true(strlen(top.filter) < sizeof(top.filter));
    top_press(&top, TOP_KEY_ESCAPE);
    assert_string_equal(top.filter, "");
    assert_false(top.is_typing);
    top_done(&top);
}

static void enter_opens_a_workload_and_closes_it(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    press(&top, "\r");
    assert_true(top.is_open);
    top.detail_count = 30;
    top.page = 10;
    press(&top, "jjj");
    assert_int_equal(top.detail_first, 3);
    assert_int_equal(top.selected, 0);
    top_press(&top, TOP_KEY_END);
    assert_int_equal(top.detail_first, 20);
    press(&top, "j");
    top_press(&top, TOP_KEY_PAGE_DOWN);
    assert_int_equal(top.detail_first, 20);
    top_press(&top, TOP_KEY_PAGE_UP);
    assert_int_equal(top.detail_first, 10);
    top_press(&top, TOP_KEY_HOME);
    press(&top, "k");
    assert_int_equal(top.detail_first, 0);
    assert_int_equal(top_show(&top, node_at(101, "8")), 0);
    assert_true(top.is_open);
    top_press(&top, TOP_KEY_ESCAPE);
    assert_false(top.is_open);
    press(&top, "\r\r");
    assert_false(top.is_open);
    top_done(&top);
}

static void an_open_workload_that_goes_gives_way_to_the_table(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    press(&top, "\r");
    assert_int_equal(top_show(&top, parse_document("{\"api\":1,\"time\":101}")), 0);
    assert_false(top.is_open);
    assert_null(top_selected(&top));
    press(&top, "\rjkGg");
    assert_false(top.is_open);
    assert_int_equal(top.selected, 0);
    top_done(&top);
}

static void frozen_figures_stay_until_they_are_released(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    press(&top, " ");
    assert_int_equal(top_show(&top, node_at(105, "8")), 0);
    assert_true(top.document->time == 100);
    press(&top, "s"); /* keys go on */
    assert_int_equal(top.order, TOP_ENERGY);
    press(&top, " ");
    assert_int_equal(top_show(&top, node_at(106, "9")), 0);
    assert_true(top.document->time == 106);
    top_done(&top);
}

static void help_covers_the_screen_until_a_key(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    press(&top, "\rhq");
    assert_true(top.is_open && !top.is_done && !top.is_helping);
    press(&top, "?");
    assert_true(top.is_helping);
    press(&top, "xq");
    assert_true(top.is_done);
    top_done(&top);
}

static void keys_before_the_first_document_do_no_harm(void **state)
{
    struct top top;

    (void)state;
    top_init(&top, 2);
    for (unsigned key = 1; key < 256; key++)
        if (key != 'q' && key != 'Q')
            top_press(&top, key);
    for (unsigned key = TOP_KEY_UP; key <= TOP_KEY_END + 5; key++)
        top_press(&top, key);
    top_press(&top, TOP_KEY_ESCAPE);
    assert_false(top.is_done);
    top_done(&top);
}

static void the_history_keeps_the_last_watts(void **state)
{
    struct top top;

    (void)state;
    start(&top);
    assert_int_equal(top.history_count, 1);
    assert_int_equal(top_show(&top, node_at(100, "7")), 0); /* the same one again */
    assert_int_equal(top.history_count, 1);
    for (int i = 1; i < 2 * TOP_HISTORY_MAX; i++)
        assert_int_equal(top_show(&top, node_at(100 + i, "7")), 0);
    assert_int_equal(top.history_count, TOP_HISTORY_MAX);
    assert_true(top.history[TOP_HISTORY_MAX - 1] == 300);
    top_done(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_ordered_by_watts_and_those_that_have_ended_come_last),
        cmocka_unit_test(each_column_with_values_can_order_the_table),
        cmocka_unit_test(a_column_without_values_is_left_out),
        cmocka_unit_test(the_cursor_moves_within_the_rows),
        cmocka_unit_test(the_cursor_stays_on_its_workload_when_the_order_changes),
        cmocka_unit_test(a_filter_lets_through_what_contains_it_in_any_case),
        cmocka_unit_test(the_filter_is_typed_letter_by_letter),
        cmocka_unit_test(enter_opens_a_workload_and_closes_it),
        cmocka_unit_test(an_open_workload_that_goes_gives_way_to_the_table),
        cmocka_unit_test(frozen_figures_stay_until_they_are_released),
        cmocka_unit_test(help_covers_the_screen_until_a_key),
        cmocka_unit_test(keys_before_the_first_document_do_no_harm),
        cmocka_unit_test(the_history_keeps_the_last_watts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
