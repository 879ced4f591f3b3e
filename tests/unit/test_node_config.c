/* config/node_config: the price of energy and embodied carbon, by flags. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "config/node_config.h"
#include "config/option_type.h"
#include "core/macros.h"
#include "options_fixture.h"

static int read_price(const char *const *flags, struct price *ret_price)
{
    struct options options;
    struct error err = {""};
    int r = options_init(&options, &err);

    assert_int_equal(r, 0);
    for (; *flags; flags += 2)
        assert_int_equal(set_flag(&options, flags[0], flags[1], OPTIONS_COMMAND_LINE, &err), 0);
    r = options_check(&options, &err);
    if (r == 0)
        node_config_price(&options, ret_price);
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

static void flags_set_the_price_of_the_site(void **state)
{
    struct price price;

    (void)state;
    assert_int_equal(READ(&price, "cost.price", "0.2516", "cost.currency", "EUR", "pue", "1.2"), 0);
    assert_true(price.cost.known);
    assert_int_equal(price.cost.micro_per_kwh, 251600);
    assert_string_equal(price.cost.currency, "EUR");
    assert_int_equal(price.pue_millionths, 1200000);
}

static void set_embodied(struct options *options, const char *value, enum options_source source)
{
    assert_int_equal(set_flag(options, "emissions.embodied", value, source, NULL), 0);
}

static void devices_have_the_configured_embodied_carbon_and_no_other(void **state)
{
    struct embodied_rates rates;
    struct options options;

    (void)state;
    assert_int_equal(options_init(&options, NULL), 0);
    rates = node_config_embodied(&options);
    for (int kind = 0; kind < METER_KINDS; kind++)
        assert_false(rates.of[kind].known);
    set_embodied(&options, "package=1", OPTIONS_CONFIG);
    set_embodied(&options, "dram=0.25", OPTIONS_CONFIG);
    rates = node_config_embodied(&options);
    assert_int_equal(rates.of[METER_PACKAGE].ug_per_hour, 1000000);
    assert_int_equal(rates.of[METER_DRAM].ug_per_hour, 250000);
    /* Those of a higher source replace them all; of each meter the last counts. */
    set_embodied(&options, "gpu=7", OPTIONS_COMMAND_LINE);
    set_embodied(&options, "rest=0", OPTIONS_COMMAND_LINE);
    set_embodied(&options, "gpu=28.5", OPTIONS_COMMAND_LINE);
    rates = node_config_embodied(&options);
    assert_true(rates.of[METER_GPU].known && rates.of[METER_NODE_OVERHEAD].known);
    assert_false(rates.of[METER_PACKAGE].known || rates.of[METER_DRAM].known);
    assert_int_equal(rates.of[METER_GPU].ug_per_hour, 28500000);
    assert_int_equal(rates.of[METER_NODE_OVERHEAD].ug_per_hour, 0);
    options.emissions_enabled = false;
    assert_false(node_config_embodied(&options).of[METER_GPU].known);
    options_done(&options);
}

static void embodied_carbon_names_meters_as_their_label_does(void **state)
{
    (void)state;
    assert_ptr_equal(flag_named("emissions.embodied").words, meter_words);
    assert_int_equal(flag_named("emissions.embodied").word_count, METER_NODE_OVERHEAD + 1);
}

static void a_currency_has_three_capital_letters(void **state)
{
    static const char *const wrong[] = {"", "EU", "eur", "EURO", "E R", "\xe2\x82\xac"};
    struct options options;
    struct error err = {""};

    (void)state;
    assert_int_equal(options_init(&options, &err), 0);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(set_flag(&options, "cost.currency", wrong[i], OPTIONS_COMMAND_LINE, &err),
                         -EINVAL);
    options_done(&options);
}

static void half_of_a_pair_of_flags_is_rejected(void **state)
{
    struct price price;

    (void)state;
    assert_int_equal(READ(&price, "cost.price", "0.3"), -EINVAL);
    assert_int_equal(READ(&price, "cost.currency", "EUR"), -EINVAL);
}

static void a_tariff_excludes_the_price_that_never_changes(void **state)
{
    static const struct {
        const char *flag, *value, *says;
    } cases[] = {
        {"cost.price", "0.3", "leave out --cost.price, or the file"},
        {"cost.currency", "EUR", "leave out --cost.currency, or the file"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct options options;
        struct error err = {""};

        assert_int_equal(options_init(&options, &err), 0);
        assert_int_equal(
            set_flag(&options, "cost.tariff-file", "t.yaml", OPTIONS_COMMAND_LINE, &err), 0);
        assert_int_equal(options_check(&options, &err), 0);
        assert_string_equal(options.cost_tariff_path, "t.yaml");
        assert_int_equal(set_flag(&options, cases[i].flag, cases[i].value, OPTIONS_CONFIG, &err),
                         0);
        assert_int_equal(options_check(&options, &err), -EINVAL);
        assert_non_null(strstr(err.text, cases[i].says));
        options_done(&options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_energy_has_no_cost),
        cmocka_unit_test(flags_set_the_price_of_the_site),
        cmocka_unit_test(devices_have_the_configured_embodied_carbon_and_no_other),
        cmocka_unit_test(embodied_carbon_names_meters_as_their_label_does),
        cmocka_unit_test(a_currency_has_three_capital_letters),
        cmocka_unit_test(half_of_a_pair_of_flags_is_rejected),
        cmocka_unit_test(a_tariff_excludes_the_price_that_never_changes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
