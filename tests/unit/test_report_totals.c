/* report/totals: what is added up, and what no row has. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "report/report_output.h"

static const struct period day = {1700000000, 1700086400, false};

static void add(struct totals *totals, enum totals_account account, const char *name,
                enum totals_quantity quantity, double amount, const char *currency)
{
    totals_add(totals, totals_find(totals, account, name, ""),
               &(struct totals_increase){quantity, amount, "gpu", currency, day.from_s + 7200, 2});
}

static void what_no_row_has_is_the_difference_to_the_meters(void **state)
{
    struct totals totals;

    (void)state;
    assert_int_equal(totals_init(&totals, &day), 0);
    add(&totals, TOTALS_METER, "n1", TOTALS_ENERGY, 100, "");
    add(&totals, TOTALS_METER, "n1", TOTALS_GRAMS, 10, "");
    add(&totals, TOTALS_METER, "n1", TOTALS_COST, 5, "EUR");
    add(&totals, TOTALS_WORKLOAD, "alice", TOTALS_ENERGY, 60, "");
    add(&totals, TOTALS_WORKLOAD, "alice", TOTALS_UNCERTAINTY, 3, "");
    add(&totals, TOTALS_WORKLOAD, "alice", TOTALS_GRAMS, 6, "");
    add(&totals, TOTALS_WORKLOAD, "alice", TOTALS_COST, 3, "EUR");
    add(&totals, TOTALS_UNOWNED, "idle", TOTALS_ENERGY, 30, "");
    totals_finish(&totals, true);
    assert_true(totals.all.joules == 100 && totals.unseen.joules == 10);
    assert_true(totals.unseen.meter_joules[0] == 10 && totals.unseen.part_joules[1] == 10);
    assert_true(totals.unseen.grams == 4 && totals.unseen.cost[0] == 2);
    assert_true(totals.all.uncertainty_joules == 3 && totals.unseen.uncertainty_joules == 0);
    totals_done(&totals);
}

static void the_rounding_of_sums_is_nothing_unseen(void **state)
{
    struct totals totals;

    (void)state;
    assert_int_equal(totals_init(&totals, &day), 0);
    for (int i = 0; i < 1000; i++)
        add(&totals, TOTALS_WORKLOAD, "alice", TOTALS_ENERGY, 1e6 / 3, "");
    add(&totals, TOTALS_METER, "n1", TOTALS_ENERGY, 1e9 / 3, "");
    totals_finish(&totals, true);
    assert_true(totals.unseen.joules == 0);
    totals_done(&totals);
}

static void currencies_are_not_mixed(void **state)
{
    static const char *const currencies[] = {"EUR", "USD", "CHF", "SEK", "NOK", "EUR"};
    struct totals totals;
    char text[WORDS_BYTES];

    (void)state;
    assert_int_equal(totals_init(&totals, &day), 0);
    for (size_t i = 0; i < ARRAY_SIZE(currencies); i++)
        add(&totals, TOTALS_WORKLOAD, "alice", TOTALS_COST, 1234.5, currencies[i]);
    totals_finish(&totals, false);
    words_cost(&totals, &totals.all, text);
    assert_string_equal(text, "2,469.00 EUR + 1,234.50 USD + 1,234.50 CHF + 1,234.50 SEK");
    assert_true(totals.unknown_currency == 1234.5);
    totals_done(&totals);
}

static void figures_have_as_many_digits_as_say_something(void **state)
{
    static const struct {
        double joules;
        const char *text;
    } cases[] = {{0, "0.000"},
                 {1, "<0.001"},
                 {3600, "0.001"},
                 {3.6e6 * 12.345, "12.35"},
                 {3.6e6 * 1234567.8, "1,234,567.8"},
                 {-3.6e6, "-1.000"},
                 {3.6e6 * 999.994, "999.99"}};
    static const struct {
        double grams;
        const char *text;
    } weights[] = {{0, "0.00 g"}, {480, "480 g"}, {12345, "12.3 kg"}, {1.24e6, "1.24 t"}};
    char text[FIGURE_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        words_kwh(cases[i].joules, text);
        assert_string_equal(text, cases[i].text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(weights); i++) {
        words_grams(weights[i].grams, text);
        assert_string_equal(text, weights[i].text);
    }
    words_duration(90061, text);
    assert_string_equal(text, "1 d 1 h");
    words_duration(7320, text);
    assert_string_equal(text, "2 h 2 min");
}

static void hostile_names_are_text_in_every_form(void **state)
{
    static const char name[] = "<img src=x onerror=alert(1)>\"'&\xff\x1b[31m\n=1+1";
    static const struct report_source source = {"http://x", "1", 1700090000};
    struct collected collected = {.period = day, .step_s = 60, .windows = 1440};
    struct buffer out;

    (void)state;
    assert_int_equal(totals_init(&collected.totals, &day), 0);
    add(&collected.totals, TOTALS_METER, "n1", TOTALS_ENERGY, 2, "");
    add(&collected.totals, TOTALS_WORKLOAD, name, TOTALS_ENERGY, 2, "");
    totals_finish(&collected.totals, true);
    buffer_init(&out, 1 << 20);
    report_html(&collected, &source, &out);
    assert_false(buffer_failed(&out));
    assert_null(memmem(out.data, out.len, "<img", 4));
    assert_null(memchr(out.data, '\x1b', out.len));
    assert_non_null(memmem(out.data, out.len, "&#60;img src=x onerror=alert(1)&#62;", 36));
    buffer_done(&out);
    buffer_init(&out, 1 << 20);
    report_text(&collected, &source, &out);
    assert_null(memchr(out.data, '\x1b', out.len));
    buffer_done(&out);
    buffer_init(&out, 1 << 20);
    report_csv(&collected, &out);
    assert_non_null(memmem(out.data, out.len, "alert(1)>\"\"'&", 13));
    buffer_done(&out);
    totals_done(&collected.totals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_row_has_is_the_difference_to_the_meters),
        cmocka_unit_test(the_rounding_of_sums_is_nothing_unseen),
        cmocka_unit_test(currencies_are_not_mixed),
        cmocka_unit_test(figures_have_as_many_digits_as_say_something),
        cmocka_unit_test(hostile_names_are_text_in_every_form),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
