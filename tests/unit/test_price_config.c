/* The price of energy as flags tell it. */
#include "unit.h"

#include <errno.h>

#include "app/price_config.h"
#include "core/macros.h"

static int read_price(const char *const *flags, struct price *ret_price)
{
    struct options options;
    struct error err = {""};
    int r = options_init(&options, &err);

    assert_int_equal(r, 0);
    for (; *flags; flags += 2)
        assert_int_equal(options_set(&options, options_find(span_of(flags[0])), flags[1],
                                     OPTIONS_COMMAND_LINE, flags[0], &err),
                         0);
    r = options_check(&options, &err);
    if (r == 0)
        price_config_read(&options, ret_price);
    options_done(&options);
    return r;
}

#define READ(price, ...) read_price((const char *const[]){__VA_ARGS__, NULL}, price)

static void by_default_energy_has_no_cost(void **state)
{
    struct price price;

    (void)state;
    assert_int_equal(READ(&price, NULL), 0);
    assert_false(price.cost.known);
    assert_int_equal(price.pue_millionths, PRICE_PUE_ONE);
}

static void flags_give_the_price_of_the_site(void **state)
{
    struct price price;

    (void)state;
    assert_int_equal(READ(&price, "cost.price", "0.2516", "cost.currency", "EUR", "pue", "1.2"), 0);
    assert_true(price.cost.known);
    assert_int_equal(price.cost.micro_per_kwh, 251600);
    assert_string_equal(price.cost.currency, "EUR");
    assert_int_equal(price.pue_millionths, 1200000);
}

static void a_currency_has_three_capital_letters(void **state)
{
    static const char *const wrong[] = {"", "EU", "eur", "EURO", "E R", "\xe2\x82\xac"};
    struct options options;
    struct error err = {""};

    (void)state;
    assert_int_equal(options_init(&options, &err), 0);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(options_set(&options, options_find(span_of("cost.currency")), wrong[i],
                                     OPTIONS_COMMAND_LINE, "--cost.currency", &err),
                         -EINVAL);
    options_done(&options);
}

static void what_is_half_told_is_refused(void **state)
{
    struct price price;

    (void)state;
    assert_int_equal(READ(&price, "cost.price", "0.3"), -EINVAL);
    assert_int_equal(READ(&price, "cost.currency", "EUR"), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_energy_has_no_cost),
        cmocka_unit_test(flags_give_the_price_of_the_site),
        cmocka_unit_test(a_currency_has_three_capital_letters),
        cmocka_unit_test(what_is_half_told_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
