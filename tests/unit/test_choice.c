/* emissions/choice: which factor is in force, and when it expires. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>

#include "core/macros.h"
#include "emissions/choice.h"

#define HOUR (3600 * USEC_PER_SEC)

static const uint64_t NOON_US = UINT64_C(1768478400000000), UP_US = 50 * USEC_PER_SEC;

enum { MAPS, MARGINAL, FRENCH, MIX, COUNTRY, WORLD, LINES };

static struct choice make(void)
{
    const struct price_factor country = {.known = true,
                                         .ug_per_kwh = 44179000,
                                         .provider = "owid",
                                         .zone = "FRA",
                                         .signal = PRICE_AVERAGE,
                                         .basis = PRICE_LIFECYCLE};
    const struct price_factor global = factor_world();
    struct choice choice = {0};

    choice_add_live(&choice, &electricity_maps_provider, "FR", PRICE_LIFECYCLE, HOUR / 4);
    choice_add_live(&choice, &watttime_provider, "FR", PRICE_DIRECT, HOUR / 12);
    choice_add_live(&choice, &rte_provider, "FR", PRICE_DIRECT, HOUR);
    choice_add_live(&choice, &entsoe_provider, "FR", PRICE_LIFECYCLE, HOUR / 2);
    choice_add_table(&choice, &country);
    choice_add_table(&choice, &global);
    assert_int_equal(choice.count, LINES);
    choice_prefer(&choice, MAPS);
    return choice;
}

static struct choice_now after(uint64_t us)
{
    return (struct choice_now){NOON_US + us, UP_US + us};
}

static struct choice_now noon(void)
{
    return after(0);
}

/* A value of this age, received now. */
static void receive(struct choice_entry *line, uint64_t mg, uint64_t age_us)
{
    choice_update(line, &(struct emission_factor){.mg_per_kwh = mg, .time_us = NOON_US - age_us},
                  UP_US);
}

static void before_the_first_answer_the_countrys_table_counts(void **state)
{
    struct choice choice = make();

    (void)state;
    assert_int_equal(choice_in_force(&choice, noon()), COUNTRY);
    assert_false(choice_is_usable(&choice.lines[MAPS], noon()));
    assert_string_equal(choice.lines[MAPS].factor.provider, "electricity_maps");
    assert_string_equal(choice.lines[MAPS].factor.zone, "FR");
    assert_int_equal(choice.lines[MARGINAL].factor.signal, PRICE_MARGINAL);
}

static void the_first_in_order_that_is_known_counts(void **state)
{
    struct choice choice = make();

    (void)state;
    receive(&choice.lines[MIX], 60000, HOUR);
    assert_int_equal(choice_in_force(&choice, noon()), MIX);
    receive(&choice.lines[FRENCH], 23000, 0);
    assert_int_equal(choice_in_force(&choice, noon()), FRENCH);
    receive(&choice.lines[MAPS], 41500, 0);
    assert_int_equal(choice_in_force(&choice, noon()), MAPS);
    assert_int_equal(choice.lines[MAPS].factor.ug_per_kwh, 41500000);
}

static void a_marginal_figure_never_stands_in_for_an_average_one(void **state)
{
    struct choice choice = make();

    (void)state;
    receive(&choice.lines[MARGINAL], 413858, 0);
    assert_int_equal(choice_in_force(&choice, noon()), COUNTRY);
    assert_true(choice_is_usable(&choice.lines[MARGINAL], noon()));
}

static void the_marginal_one_counts_if_it_is_preferred_and_then_only_tables_stand_in(void **state)
{
    struct choice choice = make();

    (void)state;
    choice_prefer(&choice, MARGINAL);
    assert_string_equal(choice.lines[0].factor.provider, "watttime");
    assert_string_equal(choice.lines[1].factor.provider, "electricity_maps");
    assert_string_equal(choice.lines[2].factor.provider, "rte");
    receive(&choice.lines[1], 41000, 0);
    assert_int_equal(choice_in_force(&choice, noon()), COUNTRY);
    receive(&choice.lines[0], 413858, 0);
    assert_int_equal(choice_in_force(&choice, noon()), 0);
    /* And back: a line that was excluded may count again. */
    choice_prefer(&choice, 1);
    assert_int_equal(choice_in_force(&choice, noon()), 0);
    assert_string_equal(choice.lines[0].factor.provider, "electricity_maps");
}

static void the_figure_of_another_country_is_shown_and_never_stands_in(void **state)
{
    const struct price_factor global = factor_world();
    struct choice choice = {0};

    (void)state;
    choice_add_live(&choice, &rte_provider, "FR", PRICE_DIRECT, HOUR);
    choice_add_live(&choice, &uk_carbon_intensity_provider, "13", PRICE_DIRECT, HOUR);
    choice_add_live(&choice, &electricity_maps_provider, "FRA", PRICE_DIRECT, HOUR);
    choice_add_live(&choice, &entsoe_provider, "10YGB----------A", PRICE_LIFECYCLE, HOUR);
    choice_add_table(&choice, &global);
    choice_prefer(&choice, 0);
    receive(&choice.lines[1], 181000, 0);
    assert_true(choice_is_usable(&choice.lines[1], noon()));
    assert_int_equal(choice_in_force(&choice, noon()), 4);
    receive(&choice.lines[3], 180000, 0); /* of an unknown country */
    assert_int_equal(choice_in_force(&choice, noon()), 3);
    receive(&choice.lines[2], 41000, 0); /* France by its other code */
    assert_int_equal(choice_in_force(&choice, noon()), 2);
    /* Preferring London excludes the French ones. */
    choice_prefer(&choice, 1);
    assert_int_equal(choice_in_force(&choice, noon()), 0);
    assert_int_equal(choice_in_force(&choice, after(24 * HOUR)), 4);
    assert_false(choice.lines[1].may_count || choice.lines[2].may_count);
    assert_true(choice.lines[3].may_count);
}

static void a_constant_stands_in_unless_its_signal_differs(void **state)
{
    static const struct {
        enum price_signal signal;
        bool stands_in;
    } cases[] = {{PRICE_SIGNAL_UNSTATED, true}, {PRICE_AVERAGE, true}, {PRICE_MARGINAL, false}};
    const struct price_factor global = factor_world();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct price_factor constant = {
            .known = true, .ug_per_kwh = 50, .provider = "constant", .signal = cases[i].signal};
        struct choice choice = {0};

        choice_add_live(&choice, &rte_provider, "FR", PRICE_DIRECT, HOUR);
        choice_add_constant(&choice, &constant);
        choice_add_table(&choice, &global);
        choice_prefer(&choice, 0);
        assert_int_equal(choice_in_force(&choice, noon()), cases[i].stands_in ? 1 : 2);
        choice_prefer(&choice, 1);
        assert_int_equal(choice_in_force(&choice, noon()), 0);
        assert_int_equal(choice.lines[0].factor.ug_per_kwh, 50);
    }
}

static void a_failed_poll_keeps_the_last_good_figure(void **state)
{
    struct choice choice = make();
    struct choice_entry *maps = &choice.lines[MAPS];

    (void)state;
    choice_fail(maps);
    assert_int_equal(maps->errors, 1);
    assert_false(maps->is_up);
    receive(maps, 41000, 0);
    assert_true(maps->is_up);
    choice_fail(maps);
    assert_int_equal(maps->errors, 2);
    assert_false(maps->is_up);
    assert_int_equal(choice_in_force(&choice, noon()), MAPS);
    assert_int_equal(maps->factor.ug_per_kwh, 41000000);
}

static void a_figure_is_stale_after_two_hours_or_three_intervals_and_unused_after_a_day(
    void **state)
{
    static const struct {
        int line;
        uint64_t stale_us;
    } cases[] = {
        {MAPS, 2 * HOUR},
        {MARGINAL, 2 * HOUR},
        {FRENCH, 3 * HOUR}, /* polled every hour */
        {MIX, 8 * HOUR},    /* its newest hour is hours old at best */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct choice choice = make();
        const struct choice_entry *line = &choice.lines[cases[i].line];

        receive(&choice.lines[cases[i].line], 41000, 0);
        assert_false(choice_is_stale(line, after(cases[i].stale_us - 1)));
        assert_true(choice_is_stale(line, after(cases[i].stale_us)));
        assert_true(choice_is_usable(line, after(24 * HOUR - 1)));
        assert_false(choice_is_usable(line, after(24 * HOUR)));
        assert_int_equal(choice_age_us(line, after(5)), 5);
    }
}

static void the_next_one_stands_in_when_the_first_is_too_old(void **state)
{
    struct choice choice = make();

    (void)state;
    receive(&choice.lines[MAPS], 41000, 0);
    choice_update(&choice.lines[FRENCH],
                  &(struct emission_factor){.mg_per_kwh = 23000, .time_us = NOON_US + 23 * HOUR},
                  UP_US + 23 * HOUR);
    assert_int_equal(choice_in_force(&choice, after(24 * HOUR - 1)), MAPS);
    assert_int_equal(choice_in_force(&choice, after(24 * HOUR)), FRENCH);
    assert_int_equal(choice_in_force(&choice, after(47 * HOUR)), COUNTRY);
}

static void a_fresh_answer_with_an_old_value_is_as_old_as_the_value(void **state)
{
    struct choice choice = make();

    (void)state;
    receive(&choice.lines[MAPS], 41000, 5 * HOUR);
    assert_int_equal(choice_age_us(&choice.lines[MAPS], noon()), 5 * HOUR);
    assert_true(choice_is_stale(&choice.lines[MAPS], noon()));
}

static void a_value_that_goes_back_in_time_is_a_failure(void **state)
{
    struct choice choice = make();
    struct choice_entry *maps = &choice.lines[MAPS];

    (void)state;
    receive(maps, 41000, 0);
    receive(maps, 42000, HOUR); /* a correction may be a little older */
    assert_int_equal(maps->factor.ug_per_kwh, 42000000);
    receive(maps, 41000, 0);
    receive(maps, 99000, HOUR + 1);
    assert_int_equal(maps->factor.ug_per_kwh, 41000000);
    assert_int_equal(maps->time_us, NOON_US);
    assert_int_equal(maps->errors, 1);
    assert_false(maps->is_up);
    /* After a day, any value is accepted. */
    assert_false(choice_update(maps, &(struct emission_factor){.mg_per_kwh = 99000, .time_us = 1},
                               UP_US + 24 * HOUR - 1));
    assert_true(choice_update(maps, &(struct emission_factor){.mg_per_kwh = 99000, .time_us = 1},
                              UP_US + 24 * HOUR));
}

static void an_old_answer_with_a_value_from_the_future_is_as_old_as_the_answer(void **state)
{
    struct choice choice = make();

    (void)state;
    choice_update(&choice.lines[MAPS],
                  &(struct emission_factor){.mg_per_kwh = 41000, .time_us = NOON_US + HOUR}, UP_US);
    assert_int_equal(choice_age_us(&choice.lines[MAPS], noon()), 0);
    /* The real-time clock was set back; the monotonic one goes on. */
    assert_int_equal(
        choice_age_us(&choice.lines[MAPS], (struct choice_now){NOON_US - HOUR, UP_US + 3 * HOUR}),
        3 * HOUR);
}

static void tables_never_age(void **state)
{
    struct choice choice = make();

    (void)state;
    assert_int_equal(choice_age_us(&choice.lines[COUNTRY], after(1000 * 24 * HOUR)), 0);
    assert_false(choice_is_stale(&choice.lines[COUNTRY], after(1000 * 24 * HOUR)));
    assert_int_equal(choice_in_force(&choice, after(1000 * 24 * HOUR)), COUNTRY);
}

static void a_line_that_does_not_fit_is_dropped(void **state)
{
    struct choice choice = {0};

    (void)state;
    for (int i = 0; i < CHOICE_MAX + 3; i++)
        choice_add_live(&choice, &rte_provider, "FR", PRICE_DIRECT, HOUR);
    assert_int_equal(choice.count, CHOICE_MAX);
    choice_add_table(&choice, &(struct price_factor){.known = true});
    assert_int_equal(choice.count, CHOICE_MAX);
    assert_int_equal(choice_find(&choice, span_of("rte")), 0);
    assert_int_equal(choice_find(&choice, span_of("rt")), -ENOENT);
}

/* Packs the choice and unpacks it into a new one, this much later. */
static struct choice carry_over(struct choice *choice, uint64_t later_us, struct choice_now then)
{
    struct choice next = make();
    struct coder coder = {0};
    struct buffer packed;

    buffer_init(&packed, 4096);
    choice_code(choice, noon(), 0, &(struct coder){.out = &packed});
    assert_false(buffer_failed(&packed));
    coder.in.rest = (struct span){packed.data, packed.len};
    choice_code(&next, then, later_us, &coder);
    assert_int_equal(unpack_end(&coder.in), 0);
    buffer_done(&packed);
    return next;
}

static void values_survive_a_restart_with_their_age(void **state)
{
    struct choice choice = make(), next;

    (void)state;
    receive(&choice.lines[MAPS], 43210, HOUR / 2);
    next = carry_over(&choice, HOUR, after(HOUR));
    assert_int_equal(next.lines[MAPS].factor.ug_per_kwh, 43210000);
    assert_int_equal(choice_in_force(&next, after(HOUR)), MAPS);
    assert_int_equal(choice_age_us(&next.lines[MAPS], after(HOUR)), 3 * HOUR / 2);
    assert_false(next.lines[MAPS].is_up);
    assert_false(next.lines[FRENCH].factor.known);
    /* Old values expire as if there had been no restart. */
    next = carry_over(&choice, 25 * HOUR, after(25 * HOUR));
    assert_int_equal(choice_in_force(&next, after(25 * HOUR)), COUNTRY);
}

static void values_survive_a_boot(void **state)
{
    const struct choice_now then = {NOON_US + HOUR, 5 * USEC_PER_SEC};
    struct choice choice = make(), next;

    (void)state;
    receive(&choice.lines[MAPS], 43210, HOUR / 2);
    next = carry_over(&choice, HOUR, then);
    assert_int_equal(choice_age_us(&next.lines[MAPS], then), 3 * HOUR / 2);
    assert_int_equal(choice_in_force(&next, then), MAPS);
}

static void values_of_another_zone_do_not_count(void **state)
{
    struct choice choice = make(), next;

    (void)state;
    receive(&choice.lines[MAPS], 43210, 0);
    snprintf(choice.lines[MAPS].factor.zone, sizeof(choice.lines[MAPS].factor.zone), "DE");
    next = carry_over(&choice, 0, noon());
    assert_false(next.lines[MAPS].factor.known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_first_answer_the_countrys_table_counts),
        cmocka_unit_test(the_first_in_order_that_is_known_counts),
        cmocka_unit_test(a_marginal_figure_never_stands_in_for_an_average_one),
        cmocka_unit_test(the_marginal_one_counts_if_it_is_preferred_and_then_only_tables_stand_in),
        cmocka_unit_test(the_figure_of_another_country_is_shown_and_never_stands_in),
        cmocka_unit_test(a_constant_stands_in_unless_its_signal_differs),
        cmocka_unit_test(a_failed_poll_keeps_the_last_good_figure),
        cmocka_unit_test(
            a_figure_is_stale_after_two_hours_or_three_intervals_and_unused_after_a_day),
        cmocka_unit_test(the_next_one_stands_in_when_the_first_is_too_old),
        cmocka_unit_test(a_fresh_answer_with_an_old_value_is_as_old_as_the_value),
        cmocka_unit_test(a_value_that_goes_back_in_time_is_a_failure),
        cmocka_unit_test(an_old_answer_with_a_value_from_the_future_is_as_old_as_the_answer),
        cmocka_unit_test(tables_never_age),
        cmocka_unit_test(values_survive_a_restart_with_their_age),
        cmocka_unit_test(values_survive_a_boot),
        cmocka_unit_test(values_of_another_zone_do_not_count),
        cmocka_unit_test(a_line_that_does_not_fit_is_dropped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
