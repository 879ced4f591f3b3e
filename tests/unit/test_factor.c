/* emissions/factor: exact conversions to milligrams per kWh. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/factor.h"

static void numbers_become_milligrams_rounded_once_half_up(void **state)
{
    static const struct {
        double grams;
        uint64_t mg;
    } cases[] = {
        {0, 0},
        {-0.0, 0},
        {23, 23000},
        {41.5, 41500},
        {473.007, 473007},
        {0.0004, 0},
        {0.0005, 1},
        {1.0005, 1001},
        {2.0015, 2002},
        {0.000499, 0},
        {4999.9995, 5000000},
        {5000, 5000000},
        {44.179, 44179},
        {708.321499999, 708321},
    };
    uint64_t mg = 7;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (factor_from_grams(cases[i].grams, &mg) != 0 || mg != cases[i].mg)
            fail_msg("%.17g is %ju", cases[i].grams, (uintmax_t)mg);
    mg = 7;
    assert_int_equal(factor_from_grams(-0.001, &mg), -ERANGE);
    assert_int_equal(factor_from_grams(5000.001, &mg), -ERANGE);
    assert_int_equal(factor_from_grams(1e300, &mg), -ERANGE);
    assert_int_equal(factor_from_grams(INFINITY, &mg), -ERANGE);
    assert_int_equal(factor_from_grams(NAN, &mg), -ERANGE);
    assert_int_equal(mg, 7);
}

/* A pound is 453.59237 g, and a pound per MWh 453.59237 mg/kWh. */
static void pounds_are_converted_by_their_definition(void **state)
{
    static const struct {
        double pounds;
        uint64_t mg;
    } cases[] = {
        {0, 0},           {1, 454},           {1000, 453592}, {912.4, 413858}, /* 413857.678388 */
        {905.1, 410546},                                                       /* 410546.454087 */
        {10000, 4535924}, {11023.1, 4999994},
    };
    uint64_t mg = 7;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (factor_from_pounds(cases[i].pounds, &mg) != 0 || mg != cases[i].mg)
            fail_msg("%.17g is %ju", cases[i].pounds, (uintmax_t)mg);
    assert_int_equal(factor_from_pounds(11023.2, &mg), -ERANGE);
    assert_int_equal(factor_from_pounds(-1, &mg), -ERANGE);
}

static void decimals_are_parsed_digit_by_digit(void **state)
{
    uint64_t mg = 7;

    (void)state;
    assert_int_equal(factor_parse_grams(span_of("473.007"), &mg), 0);
    assert_int_equal(mg, 473007);
    assert_int_equal(factor_parse_grams(span_of("344.14"), &mg), 0);
    assert_int_equal(mg, 344140);
    assert_int_equal(factor_parse_grams(span_of("550"), &mg), 0);
    assert_int_equal(mg, 550000);
    assert_int_equal(factor_parse_grams(span_of("0.000500"), &mg), 0);
    assert_int_equal(mg, 1);
    assert_int_equal(factor_parse_grams(span_of("5000"), &mg), 0);
    assert_int_equal(factor_parse_grams(span_of("5000.0001"), &mg), -ERANGE);
    assert_int_equal(factor_parse_grams(span_of("99999999999999999999"), &mg), -ERANGE);
    assert_int_equal(factor_parse_grams(span_of("473,007"), &mg), -EINVAL);
    assert_int_equal(factor_parse_grams(span_of("-1"), &mg), -EINVAL);
    assert_int_equal(factor_parse_grams(span_of("4e2"), &mg), -EINVAL);
    assert_int_equal(factor_parse_grams(span_of(""), &mg), -EINVAL);
}

static void a_zone_is_a_short_word(void **state)
{
    (void)state;
    assert_true(factor_is_zone("FR"));
    assert_true(factor_is_zone("US-CAL-CISO"));
    assert_true(factor_is_zone("CAISO_NORTH"));
    assert_true(factor_is_zone("0123456789012345678901234567890"));
    assert_false(factor_is_zone("01234567890123456789012345678901"));
    assert_false(factor_is_zone(""));
    assert_false(factor_is_zone("FR&zone=DE"));
    assert_false(factor_is_zone("RG10 9NY"));
    assert_false(factor_is_zone("F\xc3\xa9"));
}

static void a_kilowatt_hour_of_the_world_emits_473_007_grams(void **state)
{
    const struct price_factor world = factor_world();

    (void)state;
    assert_true(world.known);
    assert_string_equal(world.provider, "global");
    assert_string_equal(world.zone, "world");
    assert_int_equal(world.basis, PRICE_LIFECYCLE);
    assert_int_equal(world.signal, PRICE_AVERAGE);
    assert_int_equal(world.ug_per_kwh, 473007000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_become_milligrams_rounded_once_half_up),
        cmocka_unit_test(pounds_are_converted_by_their_definition),
        cmocka_unit_test(decimals_are_parsed_digit_by_digit),
        cmocka_unit_test(a_zone_is_a_short_word),
        cmocka_unit_test(a_kilowatt_hour_of_the_world_emits_473_007_grams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
