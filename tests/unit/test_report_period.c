/* report/period: days of a time zone, whatever its clocks do. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/macros.h"
#include "report/period.h"

static void use_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

/* 2025-11-19 12:34:56 UTC */
static const int64_t NOW_S = 1763555696;

static void words_and_dates_are_whole_days_of_the_time_zone(void **state)
{
    static const struct {
        const char *zone, *text;
        int64_t from_s, to_s;
        bool is_running;
    } cases[] = {
        {"UTC", "today", 1763510400, NOW_S, true},
        {"UTC", "yesterday", 1763424000, 1763510400, false},
        {"UTC", "this-month", 1761955200, NOW_S, true},
        {"UTC", "last-month", 1759276800, 1761955200, false},
        {"UTC", "2025-02-28", 1740700800, 1740787200, false},
        {"UTC", "2024-02-29", 1709164800, 1709251200, false},
        {"UTC", "2025-11-19..2025-11-30", 1763510400, NOW_S, true},
        {"Europe/Berlin", "today", 1763506800, NOW_S, true},
        /* 25 hours, and a month of one hour more. */
        {"Europe/Berlin", "2025-10-26", 1761429600, 1761519600, false},
        {"Europe/Berlin", "last-month", 1759269600, 1761951600, false},
        /* 23 hours. */
        {"Europe/Berlin", "2025-03-30", 1743289200, 1743372000, false},
        /* Half an hour, at two in the morning. */
        {"Australia/Lord_Howe", "2025-10-05", 1759584600, 1759669200, false},
        /* The day begins at one: there is no midnight. */
        {"America/Santiago", "2025-09-07", 1757217600, 1757300400, false},
        {"Asia/Tokyo", "today", 1763478000, NOW_S, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct period period = {0};
        struct error err = {""};

        use_zone(cases[i].zone);
        if (period_parse(span_of(cases[i].text), NOW_S, &period, &err) != 0)
            fail_msg("%s %s: %s", cases[i].zone, cases[i].text, err.text);
        if (period.from_s != cases[i].from_s || period.to_s != cases[i].to_s ||
            period.is_running != cases[i].is_running)
            fail_msg("%s %s: %lld to %lld", cases[i].zone, cases[i].text, (long long)period.from_s,
                     (long long)period.to_s);
    }
}

static void what_is_no_period_is_refused(void **state)
{
    static const char *const cases[] = {"",
                                        "tomorrow",
                                        "2025",
                                        "2025-13-01",
                                        "2025-02-29",
                                        "2025-02-30..2025-03-01",
                                        "2025-1-1",
                                        "2025-11-02..2025-11-01",
                                        "2026-01-01",
                                        "1960-01-01",
                                        "2025-01-01...2025-01-02",
                                        "2025-01-01..",
                                        "..2025-01-01",
                                        "2000-01-01..2025-01-01",
                                        "2025-01-01..2025-01-02x"};

    (void)state;
    use_zone("UTC");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct period period;
        struct error err = {""};

        if (period_parse(span_of(cases[i]), NOW_S, &period, &err) != -EINVAL || !err.text[0])
            fail_msg("'%s' was taken", cases[i]);
    }
}

static void parts_are_days_of_23_24_and_25_hours(void **state)
{
    struct period period;
    struct period_parts parts;
    struct error err;
    char title[PERIOD_TITLE_BYTES];

    (void)state;
    use_zone("Europe/Berlin");
    assert_int_equal(period_parse(span_of("2025-10-01..2025-10-31"), NOW_S, &period, &err), 0);
    period_divide(&period, &parts);
    assert_int_equal(parts.unit, PERIOD_DAYS);
    assert_int_equal(parts.count, 31);
    for (size_t i = 0; i < parts.count; i++)
        assert_int_equal(parts.edges_s[i + 1] - parts.edges_s[i], i == 25 ? 90000 : 86400);
    period_part_title(&parts, 25, title);
    assert_string_equal(title, "2025-10-26");
    /* An interval belongs to the part in which it ends; the edge is the end of the one before. */
    assert_int_equal(period_part_of(&parts, parts.edges_s[25]), 24);
    assert_int_equal(period_part_of(&parts, parts.edges_s[25] + 1), 25);
    assert_int_equal(period_part_of(&parts, parts.edges_s[0] - 5), 0);
    assert_int_equal(period_part_of(&parts, period.to_s + 5), 30);
}

static void a_day_has_hours_and_a_year_has_months(void **state)
{
    struct period period;
    struct period_parts parts;
    struct error err;

    (void)state;
    use_zone("Europe/Berlin");
    assert_int_equal(period_parse(span_of("2025-10-26"), NOW_S, &period, &err), 0);
    period_divide(&period, &parts);
    assert_int_equal(parts.unit, PERIOD_HOURS);
    assert_int_equal(parts.count, 25);
    assert_int_equal(period_parse(span_of("2024-11-01..2025-10-31"), NOW_S, &period, &err), 0);
    period_divide(&period, &parts);
    assert_int_equal(parts.unit, PERIOD_MONTHS);
    assert_int_equal(parts.count, 12);
    assert_int_equal(period_parse(span_of("today"), NOW_S, &period, &err), 0);
    period_divide(&period, &parts);
    assert_int_equal(parts.count, 14);
    assert_int_equal(parts.edges_s[14], NOW_S);
}

static void a_title_has_both_ends_and_the_time_zone(void **state)
{
    struct period period;
    struct error err;
    char title[PERIOD_TITLE_BYTES];

    (void)state;
    use_zone("Europe/Berlin");
    assert_int_equal(period_parse(span_of("2025-10-26"), NOW_S, &period, &err), 0);
    period_title(&period, title);
    assert_string_equal(title, "2025-10-26 00:00 to 2025-10-27 00:00 CET");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_dates_are_whole_days_of_the_time_zone),
        cmocka_unit_test(what_is_no_period_is_refused),
        cmocka_unit_test(parts_are_days_of_23_24_and_25_hours),
        cmocka_unit_test(a_day_has_hours_and_a_year_has_months),
        cmocka_unit_test(a_title_has_both_ends_and_the_time_zone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
