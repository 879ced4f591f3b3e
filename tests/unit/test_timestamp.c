/* core/timestamp: the time stamps of the services, around leap years and offsets. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "core/timestamp.h"

static void every_form_that_services_send_is_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t us;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:01Z", 1000000},
        {"2026-01-15T09:30Z", 1768469400000000},
        {"2026-01-15T09:30:00Z", 1768469400000000},
        {"2026-01-15T09:30:00+00:00", 1768469400000000},
        {"2026-01-15T09:30:00.000Z", 1768469400000000},
        {"2026-01-15T10:30:00+01:00", 1768469400000000},
        {"2026-01-15T10:30+01:00", 1768469400000000},
        {"2026-01-15T05:00:00-04:30", 1768469400000000},
        {"2026-01-15T09:30:00.204Z", 1768469400204000},
        {"2026-01-15T09:30:00.123456Z", 1768469400123456},
        {"2026-01-15T09:30:00.123456789Z", 1768469400123456},
        {"2026-01-15T09:30:00.5+00:00", 1768469400500000},
        {"2026-01-01T00:30:00+01:00", 1767223800000000}, /* the year before in UTC */
        {"2025-12-31T23:30:00-01:00", 1767227400000000}, /* the year after */
        {"9999-12-31T23:59:59Z", 253402300799000000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t us = UINT64_MAX;

        if (timestamp_parse(span_of(cases[i].text), &us) != 0 || us != cases[i].us)
            fail_msg("'%s' is %ju", cases[i].text, (uintmax_t)us);
    }
}

static void leap_years_are_those_of_the_calendar(void **state)
{
    uint64_t us, next_us;

    (void)state;
    assert_int_equal(timestamp_parse(span_of("2024-02-29T00:00Z"), &us), 0);
    assert_int_equal(us, 1709164800000000);
    assert_int_equal(timestamp_parse(span_of("2024-03-01T00:00Z"), &next_us), 0);
    assert_int_equal(next_us - us, 86400000000);
    assert_int_equal(timestamp_parse(span_of("2000-02-29T00:00Z"), &us), 0);
    assert_int_equal(us, 951782400000000);
    assert_int_equal(timestamp_parse(span_of("2025-02-29T00:00Z"), &us), -EINVAL);
    assert_int_equal(timestamp_parse(span_of("2100-02-29T00:00Z"), &us), -EINVAL);
    assert_int_equal(timestamp_parse(span_of("2100-03-01T00:00Z"), &us), 0);
    assert_int_equal(us, 4107542400000000);
}

static void what_is_not_of_this_form_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "2026-01-15",
        "2026-01-15T09",
        "2026-01-15T09:30",
        "2026-01-15T09:30:00",
        "2026-01-15 09:30Z",
        "2026-01-15t09:30z",
        "2026-01-15T09:30Z ",
        " 2026-01-15T09:30Z",
        "2026-1-15T09:30Z",
        "26-01-15T09:30Z",
        "20260115T0930Z",
        "2026-00-15T09:30Z",
        "2026-13-15T09:30Z",
        "2026-01-00T09:30Z",
        "2026-01-32T09:30Z",
        "2026-04-31T09:30Z",
        "0000-01-01T00:00Z",
        "2026-01-15T24:00Z",
        "2026-01-15T09:60Z",
        "2026-01-15T09:30:60Z",
        "2026-01-15T09:30:Z",
        "2026-01-15T09:30:00.Z",
        "2026-01-15T09:30.5Z",
        "2026-01-15T09:30:00,5Z",
        "2026-01-15T09:30+0100",
        "2026-01-15T09:30+01",
        "2026-01-15T09:30+24:00",
        "2026-01-15T09:30+01:60",
        "2026-01-15T09:30Z+01:00",
        "+026-01-15T09:30Z",
        "2026-01-15T-9:30Z",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint64_t us = 7;

        if (timestamp_parse(span_of(bad[i]), &us) != -EINVAL || us != 7)
            fail_msg("'%s'", bad[i]);
    }
}

static void before_the_epoch_there_is_no_time(void **state)
{
    uint64_t us = 7;

    (void)state;
    assert_int_equal(timestamp_parse(span_of("1969-12-31T23:59:59Z"), &us), -ERANGE);
    assert_int_equal(timestamp_parse(span_of("1970-01-01T00:30:00+01:00"), &us), -ERANGE);
    assert_int_equal(us, 7);
    assert_int_equal(timestamp_parse(span_of("1969-12-31T23:30:00-01:00"), &us), 0);
    assert_int_equal(us, 1800000000);
}

static void the_times_of_http_are_read(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t us;
    } cases[] = {
        {"Thu, 15 Jan 2026 09:30:00 GMT", 0, 1768469400000000},
        {"Sun, 06 Nov 1994 08:49:37 GMT", 0, 784111777000000}, /* of RFC 9110 */
        {"Thu, 29 Feb 2024 00:00:00 GMT", 0, 1709164800000000},
        {"Thu, 01 Jan 1970 00:00:00 GMT", 0, 0},
        {"Fri, 31 Dec 9999 23:59:59 GMT", 0, 253402300799000000},
        {"Wed, 31 Dec 1969 23:59:59 GMT", -ERANGE, 7},
        {"Sat, 29 Feb 2025 00:00:00 GMT", -EINVAL, 7},
        {"Thu, 15 Jan 2026 09:30:00 UTC", -EINVAL, 7},
        {"Thu, 15 Jan 2026 09:30:00 GMT ", -EINVAL, 7},
        {"Thu, 15 Jan 2026 09:30 GMT", -EINVAL, 7},
        {"Thu, 15 Jan 2026 09:30:60 GMT", -EINVAL, 7},
        {"Thu, 15 Jan 2026 24:00:00 GMT", -EINVAL, 7},
        {"Thu, 15 jan 2026 09:30:00 GMT", -EINVAL, 7},
        {"Thu, 5 Jan 2026 09:30:00 GMT", -EINVAL, 7},
        {"Thursday, 15-Jan-26 09:30:00 GMT", -EINVAL, 7},
        {"Thu Jan 15 09:30:00 2026", -EINVAL, 7},
        {"15 Jan 2026 09:30:00 GMT", -EINVAL, 7},
        {"", -EINVAL, 7},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t us = 7;

        if (timestamp_parse_http(span_of(cases[i].text), &us) != cases[i].r || us != cases[i].us)
            fail_msg("'%s' is %ju", cases[i].text, (uintmax_t)us);
    }
}

static void every_day_of_four_centuries_comes_back_as_it_went(void **state)
{
    static const uint64_t day_us = 86400000000;

    (void)state;
    for (uint64_t day = 0; day < 146097; day++) {
        struct civil_minute at = timestamp_minute(day * day_us + 47096000000);
        uint64_t us = 0;
        char text[64];

        snprintf(text, sizeof(text), "%04u-%02u-%02uT%02u:%02uZ", at.year, at.month, at.day,
                 at.hour, at.minute);
        if (timestamp_parse(span_of(text), &us) != 0 || us != day * day_us + 47040000000)
            fail_msg("day %ju is %s", (uintmax_t)day, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_that_services_send_is_read),
        cmocka_unit_test(leap_years_are_those_of_the_calendar),
        cmocka_unit_test(what_is_not_of_this_form_is_refused),
        cmocka_unit_test(before_the_epoch_there_is_no_time),
        cmocka_unit_test(the_times_of_http_are_read),
        cmocka_unit_test(every_day_of_four_centuries_comes_back_as_it_went),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
