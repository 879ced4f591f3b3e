/* collector/emissions: the answers of the providers, as the collector takes them. */
#include "log_capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/emissions.h"
#include "core/macros.h"
#include "options_fixture.h"

#define HOUR (3600 * USEC_PER_SEC)

static const uint64_t NOON_US = UINT64_C(1768478400000000);

enum { MAPS, FRENCH }; /* the polls */

struct fixture {
    struct options options;
    struct clock_manual clock;
    struct emissions emissions;
    struct snapshot snapshot;
};

static void set(struct fixture *f, const char *flag, const char *value)
{
    struct error err = {""};

    assert_int_equal(set_flag(&f->options, flag, value, OPTIONS_COMMAND_LINE, &err), 0);
}

static int set_up(void **state)
{
    static struct fixture f;
    struct error err = {""};

    assert_int_equal(options_init(&f.options, &err), 0);
    set(&f, "emissions.providers", "electricity_maps,rte");
    set(&f, "emissions.zone", "FR");
    clock_manual_init(&f.clock, NOON_US);
    assert_int_equal(emissions_init(&f.emissions, &f.options, &f.clock.clock, &err), 0);
    snapshot_init(&f.snapshot);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    snapshot_done(&f->snapshot);
    options_done(&f->options);
    return 0;
}

static void report(struct fixture *f, size_t poll, uint64_t mg)
{
    const struct clock *clock = &f->clock.clock;

    emissions_take_record(&f->emissions, &(struct channel_factor){
                                             .index = (uint32_t)poll,
                                             .mg_per_kwh = mg,
                                             .time_us = clock->realtime_us(clock),
                                             .taken_us = clock->monotonic_us(clock),
                                         });
}

static void report_result(struct fixture *f, size_t poll, int result, const char *why)
{
    struct channel_factor record = {.index = (uint32_t)poll, .result = result};

    snprintf(record.why, sizeof(record.why), "%s", why);
    emissions_take_record(&f->emissions, &record);
}

static void report_failure(struct fixture *f, size_t poll)
{
    report_result(f, poll, -EIO, "no");
}

static const struct snapshot_factor *describe(struct fixture *f)
{
    snapshot_done(&f->snapshot);
    snapshot_init(&f->snapshot);
    assert_int_equal(emissions_describe(&f->emissions, &f->snapshot), 0);
    return f->snapshot.factors;
}

static void the_country_is_in_force_until_somebody_answers(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(f->emissions.in_force.provider, "owid");
    assert_int_equal(f->emissions.in_force.ug_per_kwh, 44179000);
    assert_false(emissions_refresh(&f->emissions));
    report(f, FRENCH, 23000);
    assert_true(emissions_refresh(&f->emissions));
    assert_string_equal(f->emissions.in_force.provider, "rte");
    assert_int_equal(f->emissions.in_force.ug_per_kwh, 23000000);
    assert_int_equal(f->emissions.in_force.basis, PRICE_DIRECT);
    assert_false(emissions_refresh(&f->emissions));
}

static void another_figure_of_the_same_provider_is_a_change(void **state)
{
    struct fixture *f = *state;

    report(f, MAPS, 41000);
    assert_true(emissions_refresh(&f->emissions));
    report(f, MAPS, 41000);
    assert_false(emissions_refresh(&f->emissions));
    report(f, MAPS, 40999);
    assert_true(emissions_refresh(&f->emissions));
    assert_int_equal(f->emissions.in_force.ug_per_kwh, 40999000);
}

static void a_clock_that_was_set_back_has_the_factor_told_once_more(void **state)
{
    struct fixture *f = *state;

    report(f, MAPS, 41000);
    assert_true(emissions_refresh(&f->emissions));
    f->clock.now_us += HOUR;
    assert_false(emissions_refresh(&f->emissions));
    f->clock.now_us -= HOUR; /* not behind its beginning */
    assert_false(emissions_refresh(&f->emissions));
    f->clock.now_us -= 1;
    assert_true(emissions_refresh(&f->emissions));
    assert_int_equal(f->emissions.since_us, f->clock.now_us);
    assert_int_equal(f->emissions.in_force.ug_per_kwh, 41000000);
    assert_false(emissions_refresh(&f->emissions));
}

static void silence_alone_puts_the_next_one_in_force_after_a_day(void **state)
{
    struct fixture *f = *state;

    report(f, MAPS, 41000);
    assert_true(emissions_refresh(&f->emissions));
    f->clock.now_us += 24 * HOUR - 1;
    assert_false(emissions_refresh(&f->emissions));
    f->clock.now_us += 1;
    assert_true(emissions_refresh(&f->emissions));
    assert_string_equal(f->emissions.in_force.provider, "owid");
}

static void the_page_shows_each_factor_and_what_became_of_the_questions(void **state)
{
    struct fixture *f = *state;
    const struct snapshot_factor *rows;

    report(f, FRENCH, 23000);
    report_failure(f, FRENCH);
    report_failure(f, MAPS);
    report_failure(f, MAPS);
    assert_true(emissions_refresh(&f->emissions));
    f->clock.now_us += 2 * HOUR;
    rows = describe(f);
    assert_int_equal(f->snapshot.factor_count, 4);

    assert_string_equal(rows[0].factor.provider, "electricity_maps");
    assert_false(rows[0].factor.known);
    assert_true(rows[0].is_live);
    assert_false(rows[0].is_up);
    assert_int_equal(rows[0].errors, 2);

    assert_string_equal(rows[1].factor.provider, "rte");
    assert_true(rows[1].factor.known);
    assert_true(rows[1].in_force);
    assert_true(rows[1].is_stale);
    assert_false(rows[1].is_up);
    assert_int_equal(rows[1].age_us, 2 * HOUR);
    assert_int_equal(rows[1].errors, 1);

    assert_string_equal(rows[2].factor.zone, "FRA");
    assert_string_equal(rows[3].factor.provider, "global");
    assert_false(rows[3].is_live);
    for (size_t i = 0; i < f->snapshot.factor_count; i++)
        assert_int_equal(rows[i].in_force, i == 1);
}

static void what_is_too_old_is_not_shown_as_known(void **state)
{
    struct fixture *f = *state;

    report(f, MAPS, 41000);
    assert_true(emissions_refresh(&f->emissions));
    f->clock.now_us += 24 * HOUR;
    assert_true(emissions_refresh(&f->emissions));
    assert_false(describe(f)[0].factor.known);
    assert_true(f->snapshot.factors[0].is_up); /* the last word was an answer */
    assert_true(f->snapshot.factors[2].in_force);
}

static int init_anew(struct fixture *f, struct error *err)
{
    return emissions_init(&f->emissions, &f->options, &f->clock.clock, err);
}

static void start_with_factor(struct fixture *f, const char *grams)
{
    struct error err = {""};

    set(f, "emissions.factor", grams);
    assert_int_equal(init_anew(f, &err), 0);
}

static void a_constant_that_is_hardly_any_grids_is_warned_of_once(void **state)
{
    static const char low[] = "msg=\"an emission factor is lower than almost any grid's; is it in "
                              "kg? --emissions.factor must be in grams per kWh\"";
    static const char high[] = "msg=\"an emission factor is higher than almost any grid's\"";
    static const struct {
        const char *grams, *says, *figure;
    } cases[] = {
        {"0.045", low, "provider=constant zone=FR grams_per_kwh=0.045\n"},
        {"0.999999", low, "grams_per_kwh=0.999\n"},
        {"1500.001", high, "provider=constant zone=FR grams_per_kwh=1500.001\n"},
        {"0", NULL, NULL},
        {"1", NULL, NULL},
        {"1500", NULL, NULL},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct capture capture = capture_begin();
        char text[1024];
        const char *warning;

        start_with_factor(f, cases[i].grams);
        emissions_announce(&f->emissions);
        report(f, MAPS, 41000);
        assert_true(emissions_refresh(&f->emissions));
        emissions_announce(&f->emissions);
        capture_end(capture, text, sizeof(text));
        warning = strstr(text, "level=warn");
        assert_int_equal(warning != NULL, cases[i].says != NULL);
        if (!warning)
            continue;
        assert_non_null(strstr(warning, cases[i].says));
        assert_non_null(strstr(warning, cases[i].figure));
        assert_null(strstr(warning + 1, "level=warn"));
    }
}

static void a_constant_is_looked_at_also_where_nobody_is_asked(void **state)
{
    struct fixture *f = *state;
    struct capture capture;
    char text[1024];

    options_done(&f->options);
    assert_int_equal(options_init(&f->options, &(struct error){""}), 0);
    capture = capture_begin();
    start_with_factor(f, "0.3");
    emissions_announce(&f->emissions);
    emissions_announce(&f->emissions);
    capture_end(capture, text, sizeof(text));
    assert_non_null(strstr(text, "is it in kg?"));
    assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n')); /* the only line */
}

static void a_high_answer_is_warned_of_until_it_is_low_again(void **state)
{
    static const uint64_t answers_mg[] = {1500000, 1500001, 1600000, 41000, 1700000};
    struct fixture *f = *state;
    struct capture capture;
    char text[1024];
    const char *second;

    report(f, MAPS, 41000);
    report(f, FRENCH, 23000);
    capture = capture_begin();
    for (size_t i = 0; i < ARRAY_SIZE(answers_mg); i++)
        report(f, MAPS, answers_mg[i]);
    report(f, FRENCH, 1); /* a live figure may be as low as it is */
    capture_end(capture, text, sizeof(text));
    assert_non_null(strstr(text, "provider=electricity_maps zone=FR grams_per_kwh=1500.001\n"));
    second = strchr(text, '\n') + 1;
    assert_non_null(strstr(second, "provider=electricity_maps zone=FR grams_per_kwh=1700.000\n"));
    assert_int_equal(strcspn(second, "\n") + 1, strlen(second));
}

/* Fetchers come and go; each begins with a record for each poll. */
static void each_change_of_a_poll_is_logged_once(void **state)
{
    static const char *const expected[] = {
        "level=warn msg=\"a provider of emission factors is not polled\" "
        "provider=electricity_maps zone=FR error=\"no key\"\n",
        "level=warn msg=\"a provider of emission factors fails\" provider=rte zone=FR "
        "error=\"no address\"\n",
        "level=warn msg=\"a provider of emission factors fails\" provider=rte zone=FR "
        "error=\"it hangs\"\n",
        "level=info msg=\"reading emission factors\" provider=rte zone=FR\n",
        "level=warn msg=\"a provider of emission factors fails\" provider=rte zone=FR "
        "error=\"it hangs\"\n",
        "level=info msg=\"a provider of emission factors is back\" provider=rte zone=FR\n",
    };
    struct fixture *f = *state;
    struct capture capture = capture_begin();
    char text[4096], *rest = text;

    for (int i = 0; i < 3; i++) {
        report_result(f, MAPS, -ENOKEY, "no key");
        report_result(f, FRENCH, -ENOENT, "no address");
    }
    report_result(f, FRENCH, -ETIMEDOUT, "it hangs");
    report(f, FRENCH, 23000);
    report(f, FRENCH, 23000);
    report_result(f, FRENCH, -ETIMEDOUT, "it hangs");
    report_result(f, FRENCH, -ETIMEDOUT, "it still hangs");
    report(f, FRENCH, 23000);
    report(f, FRENCH, 23000);
    capture_end(capture, text, sizeof(text));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        char *line = strstr(rest, "level=");

        assert_non_null(line);
        assert_int_equal(strncmp(line, expected[i], strlen(expected[i])), 0);
        rest = line + strlen(expected[i]);
    }
    assert_string_equal(rest, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_country_is_in_force_until_somebody_answers),
        TEST(another_figure_of_the_same_provider_is_a_change),
        TEST(a_clock_that_was_set_back_has_the_factor_told_once_more),
        TEST(silence_alone_puts_the_next_one_in_force_after_a_day),
        TEST(the_page_shows_each_factor_and_what_became_of_the_questions),
        TEST(what_is_too_old_is_not_shown_as_known),
        TEST(a_constant_that_is_hardly_any_grids_is_warned_of_once),
        TEST(a_constant_is_looked_at_also_where_nobody_is_asked),
        TEST(each_change_of_a_poll_is_logged_once),
        TEST(a_high_answer_is_warned_of_until_it_is_low_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
