/* core/parse and core/span: the whole text or an error. */
#include "unit.h"

#include <errno.h>

#include "core/macros.h"
#include "core/parse.h"
#include "core/span.h"

#define UNTOUCHED 77

static void whole_numbers_are_read_strictly(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t value;
    } cases[] = {
        {"0", 0, 0},
        {"007", 0, 7},
        {"4096", 0, 4096},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, UNTOUCHED},
        {"99999999999999999999999", -ERANGE, UNTOUCHED},
        {"99999999999999999999999x", -EINVAL, UNTOUCHED},
        {"", -EINVAL, UNTOUCHED},
        {" 1", -EINVAL, UNTOUCHED},
        {"1 ", -EINVAL, UNTOUCHED},
        {"+1", -EINVAL, UNTOUCHED},
        {"-1", -EINVAL, UNTOUCHED},
        {"0x10", -EINVAL, UNTOUCHED},
        {"1e3", -EINVAL, UNTOUCHED},
        {"1.0", -EINVAL, UNTOUCHED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t value = UNTOUCHED;

        assert_int_equal(parse_u64(span_of(cases[i].text), &value), cases[i].r);
        assert_true(value == cases[i].value);
    }
}

static void decimals_are_read_exactly_in_millionths(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t value;
    } cases[] = {
        {"1", 0, 1000000},
        {"1.25", 0, 1250000},
        {"0.000001", 0, 1},
        {"1.100000", 0, 1100000},
        {"18446744073709.551615", 0, UINT64_MAX},
        {"18446744073709.551616", -ERANGE, UNTOUCHED},
        {"18446744073710", -ERANGE, UNTOUCHED},
        {"1.0000001", -EINVAL, UNTOUCHED},
        {"1.", -EINVAL, UNTOUCHED},
        {".5", -EINVAL, UNTOUCHED},
        {"1,5", -EINVAL, UNTOUCHED},
        {"1.2.3", -EINVAL, UNTOUCHED},
        {"1e1", -EINVAL, UNTOUCHED},
        {"-1", -EINVAL, UNTOUCHED},
        {"", -EINVAL, UNTOUCHED},
        {".", -EINVAL, UNTOUCHED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t value = UNTOUCHED;

        assert_int_equal(parse_millionths(span_of(cases[i].text), &value), cases[i].r);
        assert_true(value == cases[i].value);
    }
}

static void a_limit_is_the_largest_number_allowed(void **state)
{
    uint64_t value = UNTOUCHED;

    (void)state;
    assert_int_equal(parse_u64_max(span_of("65535"), 65535, &value), 0);
    assert_true(value == 65535);
    value = UNTOUCHED;
    assert_int_equal(parse_u64_max(span_of("65536"), 65535, &value), -ERANGE);
    assert_int_equal(parse_u64_max(span_of("x"), 65535, &value), -EINVAL);
    assert_true(value == UNTOUCHED);
}

static void booleans_are_true_or_false_and_nothing_else(void **state)
{
    static const char *const wrong[] = {"", "1", "yes", "True", "true ", "truefalse"};
    bool value = false;

    (void)state;
    assert_int_equal(parse_bool(span_of("true"), &value), 0);
    assert_true(value);
    assert_int_equal(parse_bool(span_of("false"), &value), 0);
    assert_false(value);
    value = true;
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(parse_bool(span_of(wrong[i]), &value), -EINVAL);
    assert_true(value);
}

static void durations_are_read_as_go_writes_them(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t us;
    } cases[] = {
        {"0", 0, 0},
        {"0s", 0, 0},
        {"10us", 0, 10},
        {"10µs", 0, 10},
        {"250ms", 0, 250000},
        {"1s", 0, 1000000},
        {"1.5s", 0, 1500000},
        {".5s", 0, 500000},
        {"1.s", 0, 1000000},
        {"0.1s", 0, 100000},
        {"1m", 0, 60000000},
        {"0.5m", 0, 30000000},
        {"1h30m", 0, 5400000000},
        {"1h30m10.25s", 0, 5410250000},
        {"1.5h", 0, 5400000000},
        {"8760h", 0, 31536000000000},
        {"1.0000009s", 0, 1000000},
        {"1.00000000000000000000000000000001s", 0, 1000000},
        {"5124095576h", 0, 18446744073600000000U},
        {"5124095577h", -ERANGE, UNTOUCHED},
        {"18446744073709551616s", -ERANGE, UNTOUCHED},
        {"5124095576h5124095576h", -ERANGE, UNTOUCHED},
        {"", -EINVAL, UNTOUCHED},
        {"1", -EINVAL, UNTOUCHED},
        {"00", -EINVAL, UNTOUCHED},
        {"s", -EINVAL, UNTOUCHED},
        {".s", -EINVAL, UNTOUCHED},
        {"-1s", -EINVAL, UNTOUCHED},
        {"+1s", -EINVAL, UNTOUCHED},
        {"1 s", -EINVAL, UNTOUCHED},
        {" 1s", -EINVAL, UNTOUCHED},
        {"1s ", -EINVAL, UNTOUCHED},
        {"1S", -EINVAL, UNTOUCHED},
        {"1d", -EINVAL, UNTOUCHED},
        {"1sec", -EINVAL, UNTOUCHED},
        {"1.2.3s", -EINVAL, UNTOUCHED},
        {"1h30", -EINVAL, UNTOUCHED},
        {"1,5s", -EINVAL, UNTOUCHED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t us = UNTOUCHED;

        if (parse_duration_us(span_of(cases[i].text), &us) != cases[i].r || us != cases[i].us)
            fail_msg("'%s' gave %ju", cases[i].text, (uintmax_t)us);
    }
}

static void a_parser_stops_at_the_end_of_its_span(void **state)
{
    uint64_t value;

    (void)state;
    assert_int_equal(parse_u64((struct span){"123456", 3}, &value), 0);
    assert_true(value == 123);
    assert_int_equal(parse_duration_us((struct span){"10ms", 3}, &value), 0);
    assert_true(value == 600000000);
}

static void a_span_equals_only_the_same_bytes(void **state)
{
    struct span span = {"serve me", 5};

    (void)state;
    assert_true(span_equals(span, "serve"));
    assert_false(span_equals(span, "serv"));
    assert_false(span_equals(span, "serve "));
    assert_false(span_equals(span, "SERVE"));
    assert_true(span_equals(span_of(""), ""));
}

static void cutting_gives_the_pieces_between_delimiters(void **state)
{
    static const char *const pieces[] = {"a", "", "bc", ""};
    struct span rest = span_of("a::bc:");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
        assert_true(span_equals(span_cut(&rest, ':'), pieces[i]));
    assert_int_equal(rest.len, 0);
    rest = span_of("whole");
    assert_true(span_equals(span_cut(&rest, ':'), "whole"));
    assert_int_equal(rest.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_read_strictly),
        cmocka_unit_test(decimals_are_read_exactly_in_millionths),
        cmocka_unit_test(a_limit_is_the_largest_number_allowed),
        cmocka_unit_test(booleans_are_true_or_false_and_nothing_else),
        cmocka_unit_test(durations_are_read_as_go_writes_them),
        cmocka_unit_test(a_parser_stops_at_the_end_of_its_span),
        cmocka_unit_test(a_span_equals_only_the_same_bytes),
        cmocka_unit_test(cutting_gives_the_pieces_between_delimiters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
