/* config/emissions_config: which emission factors count, by the flags. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/emissions_config.h"
#include "core/macros.h"
#include "options_fixture.h"

static struct options options;
static struct emissions_config config;
static struct error err;

/* Flags and values, in pairs. The options live until the next call, as texts are theirs. */
static int read_flags(const char *const *flags)
{
    int r;

    options_done(&options);
    err = (struct error){""};
    assert_int_equal(options_init(&options, &err), 0);
    for (; flags[0]; flags += 2) {
        r = set_flag(&options, flags[0], flags[1], OPTIONS_COMMAND_LINE, &err);
        if (r < 0)
            return r;
    }
    r = options_check(&options, &err);
    return r < 0 ? r : emissions_config_read(&options, &config, &err);
}

#define READ(...) read_flags((const char *const[]){__VA_ARGS__, NULL, NULL})

static int tear_down(void **state)
{
    (void)state;
    options_done(&options);
    return 0;
}

/* "rte:FR owid:FRA global:world": the choice, in its order; * marks what does not count. */
static const char *choice_text(void)
{
    static char text[512];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < config.choice.count; i++) {
        const struct choice_entry *line = &config.choice.lines[i];

        len +=
            (size_t)snprintf(text + len, sizeof(text) - len, "%s%s:%s%s", i > 0 ? " " : "",
                             line->factor.provider, line->factor.zone, line->may_count ? "" : "*");
    }
    return text;
}

static void by_default_the_world_average_counts_and_nothing_is_queried(void **state)
{
    (void)state;
    assert_int_equal(READ(NULL), 0);
    assert_string_equal(choice_text(), "global:world");
    assert_int_equal(config.choice.lines[0].factor.ug_per_kwh, 473007000);
    assert_int_equal(config.poll_count, 0);
}

static void a_zone_alone_is_a_country_of_the_table_and_nothing_is_queried(void **state)
{
    static const struct {
        const char *zone, *choice;
        uint64_t ug;
    } cases[] = {
        {"FR", "owid:FRA global:world", 44179000},
        {"FRA", "owid:FRA global:world", 44179000},
        {"US-CAL-CISO", "owid:USA global:world", 383549000},
        {"SE3", "owid:SWE global:world", 35824000},
        {"world", "owid:world global:world", 473007000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(READ("emissions.zone", cases[i].zone), 0);
        assert_string_equal(choice_text(), cases[i].choice);
        assert_int_equal(config.choice.lines[0].factor.ug_per_kwh, cases[i].ug);
        assert_int_equal(config.choice.lines[0].factor.signal, PRICE_AVERAGE);
        assert_int_equal(config.choice.lines[0].factor.basis, PRICE_LIFECYCLE);
        assert_int_equal(config.poll_count, 0);
    }
    assert_int_equal(READ("emissions.zone", "Atlantis"), -EINVAL);
    assert_non_null(strstr(err.text, "--emissions.zone: no yearly factor for 'Atlantis'"));
}

static void a_constant_factor_counts_before_the_tables(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.factor", "44.179001", "emissions.zone", "hall-3"), 0);
    assert_string_equal(choice_text(), "constant:hall-3 global:world");
    assert_int_equal(config.choice.lines[0].factor.ug_per_kwh, 44179001);
    assert_int_equal(config.choice.lines[0].factor.signal, PRICE_SIGNAL_UNSTATED);
    assert_int_equal(config.choice.lines[0].factor.basis, PRICE_BASIS_UNSTATED);
    assert_int_equal(READ("emissions.factor", "0", "emissions.signal", "marginal",
                          "emissions.basis", "direct", "emissions.zone", "FR"),
                     0);
    assert_string_equal(choice_text(), "constant:FR owid:FRA global:world");
    assert_true(config.choice.lines[0].factor.known);
    assert_int_equal(config.choice.lines[0].factor.ug_per_kwh, 0);
    assert_int_equal(config.choice.lines[0].factor.signal, PRICE_MARGINAL);
    assert_int_equal(config.choice.lines[0].factor.basis, PRICE_DIRECT);
}

static void providers_count_in_the_order_in_which_they_are_named(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.providers", "rte,electricity_maps", "emissions.zone", "FR"),
                     0);
    assert_string_equal(choice_text(), "rte:FR electricity_maps:FR owid:FRA global:world");
    assert_int_equal(config.poll_count, 2);
    assert_ptr_equal(config.polls[0].provider, &rte_provider);
    assert_int_equal(config.polls[0].line, 0);
    assert_ptr_equal(config.polls[1].provider, &electricity_maps_provider);
    assert_int_equal(config.polls[1].line, 1);
    assert_int_equal(READ("emissions.providers", "global", "emissions.providers", "rte"), 0);
    assert_string_equal(choice_text(), "global:world rte:FR owid:FRA");
}

static void the_primary_counts_first_and_other_signals_do_not_count(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.providers",
                          "watttime:CAISO_NORTH,electricity_maps,entsoe:DE-LU", "emissions.zone",
                          "US-CAL-CISO", "emissions.primary", "electricity_maps"),
                     0);
    assert_string_equal(choice_text(), "electricity_maps:US-CAL-CISO watttime:CAISO_NORTH* "
                                       "entsoe:DE-LU* owid:USA global:world");
    assert_int_equal(config.polls[0].line, 1);
    assert_string_equal(config.polls[0].zone, "CAISO_NORTH");
    assert_int_equal(config.polls[1].line, 0);
    assert_int_equal(config.polls[2].line, 2);
    assert_int_equal(READ("emissions.primary", "rte", "emissions.providers", "owid:FR"), -EINVAL);
    assert_non_null(strstr(err.text, "'rte' is not in --emissions.providers"));
    assert_int_equal(READ("emissions.primary", "global", "emissions.zone", "FR"), 0);
    assert_string_equal(choice_text(), "global:world owid:FRA");
}

static void the_fallback_country_is_that_of_the_provider(void **state)
{
    static const struct {
        const char *providers, *choice;
    } cases[] = {
        {"uk_carbon_intensity:13", "uk_carbon_intensity:13 owid:GBR global:world"},
        {"uk_carbon_intensity", "uk_carbon_intensity:GB owid:GBR global:world"},
        {"watttime:CAISO_NORTH", "watttime:CAISO_NORTH global:world"},
        {"electricity_maps:US-CAL-CISO", "electricity_maps:US-CAL-CISO owid:USA global:world"},
        {"owid:DE", "owid:DEU global:world"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(READ("emissions.providers", cases[i].providers), 0);
        assert_string_equal(choice_text(), cases[i].choice);
    }
}

static void of_several_countries_the_primarys_stands_in(void **state)
{
    static const char providers[] = "electricity_maps:DE,rte:FR,uk_carbon_intensity:GB";

    (void)state;
    assert_int_equal(READ("emissions.providers", providers), 0);
    assert_string_equal(
        choice_text(), "electricity_maps:DE rte:FR* uk_carbon_intensity:GB* owid:DEU global:world");
    assert_int_equal(READ("emissions.providers", providers, "emissions.primary", "rte"), 0);
    assert_string_equal(
        choice_text(), "rte:FR electricity_maps:DE* uk_carbon_intensity:GB* owid:FRA global:world");
    /* One that is of no country leaves it to the others. */
    assert_int_equal(
        READ("emissions.providers", "rte:FR,watttime:CAISO_NORTH", "emissions.primary", "watttime"),
        0);
    assert_string_equal(choice_text(), "watttime:CAISO_NORTH rte:FR* owid:FRA global:world");
}

static void another_country_is_no_fallback_unless_the_country_is_unknown(void **state)
{
    static const struct {
        const char *providers, *choice;
    } cases[] = {
        {"rte,uk_carbon_intensity", "rte:FR uk_carbon_intensity:GB* owid:FRA global:world"},
        {"uk_carbon_intensity:13,electricity_maps:GB-NIR",
         "uk_carbon_intensity:13 electricity_maps:GB-NIR owid:GBR global:world"},
        {"uk_carbon_intensity:CH1,entsoe:CH",
         "uk_carbon_intensity:CH1 entsoe:CH* owid:GBR global:world"},
        {"electricity_maps:FRA,rte", "electricity_maps:FRA rte:FR owid:FRA global:world"},
        {"electricity_maps:SE-SE3,entsoe:SE4",
         "electricity_maps:SE-SE3 entsoe:SE4 owid:SWE global:world"},
        {"rte,entsoe:10YGB----------A", "rte:FR entsoe:10YGB----------A owid:FRA global:world"},
        {"entsoe:10YGB----------A,rte,uk_carbon_intensity",
         "entsoe:10YGB----------A rte:FR uk_carbon_intensity:GB owid:FRA global:world"},
        {"rte,owid:DE,uk_carbon_intensity", "rte:FR owid:DEU uk_carbon_intensity:GB* global:world"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (READ("emissions.providers", cases[i].providers) < 0)
            fail_msg("%s: %s", cases[i].providers, err.text);
        assert_string_equal(choice_text(), cases[i].choice);
    }
}

static void a_factor_of_another_signal_is_no_fallback(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.providers", "watttime:CAISO_NORTH", "emissions.factor", "400",
                          "emissions.signal", "average"),
                     0);
    assert_string_equal(choice_text(), "watttime:CAISO_NORTH constant:* global:world");
    assert_int_equal(READ("emissions.providers", "watttime:CAISO_NORTH", "emissions.factor", "400",
                          "emissions.signal", "marginal"),
                     0);
    assert_string_equal(choice_text(), "watttime:CAISO_NORTH constant: global:world");
    assert_int_equal(READ("emissions.providers", "rte", "emissions.factor", "400"), 0);
    assert_string_equal(choice_text(), "rte:FR constant: owid:FRA global:world");
    assert_int_equal(READ("emissions.providers", "rte", "emissions.factor", "400",
                          "emissions.signal", "marginal", "emissions.primary", "constant"),
                     0);
    assert_string_equal(choice_text(), "constant: rte:FR* owid:FRA global:world");
}

static void a_country_of_three_letters_is_queried_by_its_two(void **state)
{
    (void)state;
    assert_int_equal(
        READ("emissions.providers", "rte,electricity_maps,entsoe", "emissions.zone", "FRA"), 0);
    assert_string_equal(choice_text(),
                        "rte:FR electricity_maps:FR entsoe:FR owid:FRA global:world");
}

static void a_postcode_is_no_country(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.providers", "uk_carbon_intensity", "emissions.zone", "CH1"),
                     0);
    assert_string_equal(choice_text(), "uk_carbon_intensity:CH1 owid:GBR global:world");
}

static void electricity_maps_is_queried_for_the_configured_basis(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.providers", "electricity_maps:FR"), 0);
    assert_int_equal(config.choice.lines[0].factor.basis, PRICE_LIFECYCLE);
    assert_int_equal(
        READ("emissions.providers", "electricity_maps:FR,rte", "emissions.basis", "direct"), 0);
    assert_int_equal(config.choice.lines[0].factor.basis, PRICE_DIRECT);
    assert_int_equal(
        READ("emissions.providers", "entsoe:FR,electricity_maps:FR", "emissions.basis", "direct"),
        0);
    assert_int_equal(config.choice.lines[0].factor.basis, PRICE_LIFECYCLE);
    assert_int_equal(config.choice.lines[1].factor.basis, PRICE_DIRECT);
}

static void a_mirror_replaces_a_provider(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.providers", "rte,electricity_maps:FR", "emissions.url",
                          "electricity_maps=https://[::1]:8443/maps", "emissions.interval", "1m"),
                     0);
    assert_null(config.polls[0].url);
    assert_string_equal(config.polls[1].url, "https://[::1]:8443/maps");
}

static void only_a_mirror_is_queried_more_than_once_a_minute(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.providers", "rte", "emissions.interval", "59s"), -EINVAL);
    assert_non_null(strstr(err.text, "too often for a public service"));
    assert_int_equal(READ("emissions.providers", "rte", "emissions.interval", "1s", "emissions.url",
                          "rte=https://127.0.0.1:1"),
                     0);
    assert_int_equal(config.choice.lines[0].stale_us, 7200 * USEC_PER_SEC);
    assert_int_equal(READ("emissions.interval", "999ms"), -EINVAL);
}

static void a_rarely_queried_provider_is_stale_later(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions.providers", "rte", "emissions.interval", "4h"), 0);
    assert_int_equal(config.choice.lines[0].stale_us, 12 * 3600 * USEC_PER_SEC);
}

static void without_emissions_there_is_no_choice(void **state)
{
    (void)state;
    assert_int_equal(READ("emissions-enabled", "false", "emissions.providers", "rte"), 0);
    assert_int_equal(config.choice.count, 0);
    assert_int_equal(config.poll_count, 0);
}

static void contradictions_are_rejected_with_what_to_write(void **state)
{
    static const struct {
        const char *flags[7];
        const char *says;
    } cases[] = {
        {{"emissions.providers", "rtee"}, "'rtee' is not known; use rte, electricity_maps"},
        {{"emissions.providers", "rte,rte"}, "'rte' is given twice"},
        {{"emissions.providers", "electricity_maps:FR,electricity_maps:DE"},
         "'electricity_maps' is given twice; each provider has one zone"},
        {{"emissions.providers", "rte,global:FR"},
         "global has no zone; write it alone, or owid:FR for a country"},
        {{"emissions.providers", "rte", "emissions.primary", "rte:FR"},
         "--emissions.primary: 'rte:FR': write the name without a zone: rte"},
        {{"emissions.providers", "rte", "emissions.primary", "entsoe:FR"},
         "'entsoe:FR' is not in --emissions.providers; add it"},
        {{"emissions.providers", "rte,,owid"}, "nothing between two commas"},
        {{"emissions.providers", "electricity_maps"}, "electricity_maps needs a zone"},
        {{"emissions.providers", "watttime"}, "watttime:ZONE"},
        {{"emissions.providers", "owid"}, "owid needs a zone"},
        {{"emissions.providers", "owid:Atlantis"}, "no yearly factor for 'Atlantis'"},
        {{"emissions.providers", "constant"}, "constant needs --emissions.factor"},
        {{"emissions.providers", "rte:DE"}, "rte:"},
        {{"emissions.providers", "electricity_maps:a b"}, "not a zone"},
        {{"emissions.providers", "uk_carbon_intensity:18"}, "a region from 1 to 17"},
        {{"emissions.providers", "electricity_maps:0123456789012345678901234567890123456789"},
         "789' is too long"},
        {{"emissions.providers", "uk_carbon_intensity", "emissions.zone", "FR"},
         "uk_carbon_intensity covers GB, but --emissions.zone is 'FR'"},
        {{"emissions.providers", "electricity_maps:FR", "emissions.zone",
          "0123456789012345678901234567890123456789", "emissions.url",
          "electricity_maps=http://127.0.0.1:80"},
         "not the URL of a mirror"},
        {{"emissions.providers", "electricity_maps", "emissions.zone",
          "0123456789012345678901234567890123456789"},
         "is not a zone of electricity_maps"},
        {{"emissions.url", "rte=https://127.0.0.1:1"}, "'rte' is not queried"},
        {{"emissions.keys-file", "/k"}, "--emissions.keys-file: no provider is queried"},
        {{"emissions.ca-file", "/c", "emissions.zone", "FR"},
         "--emissions.ca-file: no provider is queried"},
        {{"emissions.interval", "5m"}, "--emissions.interval: no provider is queried"},
        {{"emissions.signal", "average"}, "describes --emissions.factor"},
        {{"emissions.basis", "direct"},
         "describes --emissions.factor or selects what electricity_maps"},
        {{"emissions.basis", "direct", "emissions.providers", "entsoe:FR"},
         "--emissions.basis: describes --emissions.factor"},
        {{"emissions.providers", "rte", "emissions.url", "rte=https://u:p@host"},
         "not the URL of a mirror"},
        {{"emissions.providers", "rte", "emissions.url", "rte=https://"},
         "not the URL of a mirror"},
        {{"emissions.providers", "rte", "emissions.url", "rte=https://host/"},
         "not the URL of a mirror"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(read_flags(cases[i].flags), -EINVAL);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_default_the_world_average_counts_and_nothing_is_queried),
        cmocka_unit_test(a_zone_alone_is_a_country_of_the_table_and_nothing_is_queried),
        cmocka_unit_test(a_constant_factor_counts_before_the_tables),
        cmocka_unit_test(providers_count_in_the_order_in_which_they_are_named),
        cmocka_unit_test(the_primary_counts_first_and_other_signals_do_not_count),
        cmocka_unit_test(the_fallback_country_is_that_of_the_provider),
        cmocka_unit_test(of_several_countries_the_primarys_stands_in),
        cmocka_unit_test(another_country_is_no_fallback_unless_the_country_is_unknown),
        cmocka_unit_test(a_factor_of_another_signal_is_no_fallback),
        cmocka_unit_test(a_country_of_three_letters_is_queried_by_its_two),
        cmocka_unit_test(a_postcode_is_no_country),
        cmocka_unit_test(electricity_maps_is_queried_for_the_configured_basis),
        cmocka_unit_test(a_mirror_replaces_a_provider),
        cmocka_unit_test(only_a_mirror_is_queried_more_than_once_a_minute),
        cmocka_unit_test(a_rarely_queried_provider_is_stale_later),
        cmocka_unit_test(without_emissions_there_is_no_choice),
        cmocka_unit_test(contradictions_are_rejected_with_what_to_write),
    };

    return cmocka_run_group_tests(tests, NULL, tear_down);
}
