/* top/quantity: three digits and a prefix, for any number. */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/macros.h"
#include "top/quantity.h"

static void check(const char *found, const char *wanted, double value)
{
    if (strcmp(found, wanted) != 0)
        fail_msg("%g: \"%s\" instead of \"%s\"", value, found, wanted);
}

static void joules_have_three_digits_and_a_prefix(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0 J"},           {1, "1.00 J"},          {0.34, "340 mJ"},   {0.9996, "1.00 J"},
        {0.9994, "999 mJ"},   {0.0012, "1.20 mJ"},    {0.0009, "<1 mJ"},  {9.994, "9.99 J"},
        {9.996, "10.0 J"},    {99.94, "99.9 J"},      {99.96, "100 J"},   {999.4, "999 J"},
        {999.6, "1.00 kJ"},   {12345, "12.3 kJ"},     {999499, "999 kJ"}, {999600, "1.00 MJ"},
        {3.6e6, "3.60 MJ"},   {1e18, "1.00 EJ"},      {1e30, ">999 EJ"},  {-12.34, "-12.3 J"},
        {DBL_MAX, ">999 EJ"}, {-DBL_MAX, "<-999 EJ"}, {DBL_MIN, "<1 mJ"}, {NAN, ""},
    };
    char text[QUANTITY_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        quantity_si(cases[i].value, "J", text);
        check(text, cases[i].text, cases[i].value);
    }
}

static void bytes_are_powers_of_1024(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {1023, "1.00 KiB"},
        {512, "512 B"},
        {1536, "1.50 KiB"},
        {1 << 30, "1.00 GiB"},
        {150323855360, "140 GiB"},
        {1e30, ">999 EiB"},
        {NAN, ""},
    };
    char text[QUANTITY_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        quantity_bytes(cases[i].value, text);
        check(text, cases[i].text, cases[i].value);
    }
}

static void columns_of_numbers_stay_narrow(void **state)
{
    static void (*const formats[])(double, char[QUANTITY_BYTES]) = {quantity_watts, quantity_cores,
                                                                    quantity_cost, quantity_bytes};
    static const double values[] = {0,   1e-300, 0.004, 0.05,  1.25, 99.99, 99999.9,
                                    1e5, 1e6,    1e12,  1e300, -1,   -1e9,  NAN};
    char text[QUANTITY_BYTES];

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(formats); k++)
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
            memset(text, 'x', sizeof(text));
            formats[k](values[i], text);
            assert_true(strnlen(text, sizeof(text)) <= 9);
            assert_int_equal(text[0] == '\0', isnan(values[i]));
        }
    quantity_watts(172.86, text);
    assert_string_equal(text, "172.9");
    quantity_watts(123456, text);
    assert_string_equal(text, "123 k");
    quantity_cores(1.016, text);
    assert_string_equal(text, "1.02");
    quantity_cores(127.6, text);
    assert_string_equal(text, "128");
    quantity_cost(0.00201, text);
    assert_string_equal(text, "0.0020");
    quantity_cost(0.00001, text);
    assert_string_equal(text, "<0.0001");
    quantity_cost(12.345, text);
    assert_string_equal(text, "12.35");
}

static void a_share_of_nothing_is_unknown(void **state)
{
    static const struct {
        double part, whole;
        const char *text;
    } cases[] = {
        {1, 0, ""},      {NAN, 1, ""},   {1, NAN, ""},     {1, -1, ""},        {0, 5, "0.0%"},
        {1, 8, "12.5%"}, {5, 5, "100%"}, {50, 1, ">999%"}, {-50, 1, "<-999%"}, {3, 1, "300%"},
    };
    char text[QUANTITY_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        quantity_percent(cases[i].part, cases[i].whole, text);
        check(text, cases[i].text, cases[i].part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joules_have_three_digits_and_a_prefix),
        cmocka_unit_test(bytes_are_powers_of_1024),
        cmocka_unit_test(columns_of_numbers_stay_narrow),
        cmocka_unit_test(a_share_of_nothing_is_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
