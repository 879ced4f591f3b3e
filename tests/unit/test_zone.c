/* emissions/zone: for which zone a provider is asked, and whose yearly figure stands in. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/zone.h"

static void one_of_its_own_comes_before_the_one_for_all_and_its_country_is_last(void **state)
{
    static const struct {
        const struct provider *provider;
        const char *own, *common, *zone;
    } cases[] = {
        {&rte_provider, "", "", "FR"},
        {&uk_carbon_intensity_provider, "", "", "GB"},
        {&uk_carbon_intensity_provider, "13", "", "13"},
        {&uk_carbon_intensity_provider, "13", "GB", "13"},
        {&uk_carbon_intensity_provider, "", "RG10", "RG10"},
        {&watttime_provider, "", "CAISO_NORTH", "CAISO_NORTH"},
        {&electricity_maps_provider, "SE-SE3", "FR", "SE-SE3"},
        {&electricity_maps_provider, "", "0123456789012345678901234567890",
         "0123456789012345678901234567890"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char zone[FACTOR_ZONE_BYTES];
        struct error err = {""};

        if (zone_choose(cases[i].provider, cases[i].own, cases[i].common, zone, &err) != 0)
            fail_msg("%s", err.text);
        assert_string_equal(zone, cases[i].zone);
    }
}

static void a_country_for_all_is_asked_for_by_its_two_letters(void **state)
{
    char zone[FACTOR_ZONE_BYTES];
    struct error err;

    (void)state;
    assert_int_equal(zone_choose(&uk_carbon_intensity_provider, "", "GBR", zone, &err), 0);
    assert_string_equal(zone, "GB");
    assert_int_equal(zone_choose(&electricity_maps_provider, "", "DEU", zone, &err), 0);
    assert_string_equal(zone, "DE");
}

static void what_is_about_one_country_is_not_asked_for_another_unless_it_is_meant(void **state)
{
    char zone[FACTOR_ZONE_BYTES];
    struct error err;

    (void)state;
    assert_int_equal(zone_choose(&rte_provider, "", "DEU", zone, &err), -EINVAL);
    assert_string_equal(err.text,
                        "--emissions.providers: rte covers FR, but --emissions.zone is 'DEU'; "
                        "write rte:FR to use it anyway");
    assert_int_equal(zone_choose(&rte_provider, "FR", "DEU", zone, &err), 0);
    assert_string_equal(zone, "FR");
}

static void what_is_no_zone_is_refused_with_what_to_write(void **state)
{
    static const struct {
        const struct provider *provider;
        const char *own, *common, *says;
    } cases[] = {
        {&watttime_provider, "", "",
         "--emissions.providers: watttime needs a zone; set --emissions.zone, or write "
         "watttime:ZONE"},
        {&electricity_maps_provider, "a b", "", "--emissions.providers: electricity_maps: 'a b'"},
        {&electricity_maps_provider, "", "01234567890123456789012345678901",
         "--emissions.zone: '01234567890123456789012345678901...' is not a zone of electricity_maps"},
        {&rte_provider, "", "hall-3", "--emissions.providers: rte: 'hall-3' is not a zone; expected FR"},
        {&uk_carbon_intensity_provider, "18", "GB", "a region from 1 to 17"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char zone[FACTOR_ZONE_BYTES];
        struct error err = {""};

        assert_int_equal(zone_choose(cases[i].provider, cases[i].own, cases[i].common, zone, &err),
                         -EINVAL);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
    }
}

static void a_part_of_a_country_has_the_yearly_figure_of_the_whole(void **state)
{
    static const struct {
        const char *own, *common, *zone;
        uint64_t mg;
    } cases[] = {
        {"FR", "", "FRA", 44179},           {"", "FRA", "FRA", 44179}, {"FR", "SE", "FRA", 44179},
        {"US-CAL-CISO", "", "USA", 383549}, {"", "SE3", "SWE", 35824}, {"", "DE-LU", "DEU", 344140},
        {"world", "FR", "world", 473007},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct price_factor factor;
        struct error err = {""};

        if (zone_yearly(cases[i].own, cases[i].common, &factor, &err) != 0)
            fail_msg("%s", err.text);
        assert_string_equal(factor.zone, cases[i].zone);
        assert_int_equal(factor.ug_per_kwh, cases[i].mg * 1000);
    }
}

static void what_is_in_no_country_has_no_yearly_figure(void **state)
{
    static const struct {
        const char *own, *common, *says;
    } cases[] = {
        {"", "", "owid needs a zone"},
        {"Atlantis", "FR", "--emissions.providers: no yearly factor for 'Atlantis'"},
        {"", "Atlantis", "--emissions.zone: no yearly factor for 'Atlantis'"},
        {"", "F", "for 'F'"},
        {"", "fr", "for 'fr'"},
        {"", "FR_1", "for 'FR_1'"}, /* only - and digits end a code */
        {"", "ZZ-1", "for 'ZZ-1'"},
        {"", "FRA-1", "for 'FRA-1'"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct price_factor factor = {.ug_per_kwh = 7};
        struct error err = {""};

        assert_int_equal(zone_yearly(cases[i].own, cases[i].common, &factor, &err), -EINVAL);
        assert_int_equal(factor.ug_per_kwh, 7);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
    }
}

static void the_country_of_a_zone_is_told_by_its_provider_or_by_the_zone(void **state)
{
    (void)state;
    assert_string_equal(zone_country(&uk_carbon_intensity_provider, "13"), "GB");
    assert_string_equal(zone_country(&uk_carbon_intensity_provider, "CH1"), "GB");
    assert_string_equal(zone_country(&electricity_maps_provider, "CH1"), "CH1");
    assert_string_equal(zone_country(&entsoe_provider, "DE-LU"), "DE-LU");
    assert_string_equal(zone_country(&watttime_provider, "CAISO_NORTH"), "");
}

static void the_zone_for_all_stands_in_unless_who_is_asked_knows_better(void **state)
{
    static const struct {
        const char *common, *asked, *country;
    } cases[] = {
        {"", "", ""},         {"FR", "", "FR"},    {"SE3", "", "SE3"},
        {"Atlantis", "", ""}, {"", "GB", "GB"},    {"FR", "GB", "FR"},
        {"FRA", "GB", "FRA"}, {"CH1", "GB", "GB"}, {"Atlantis", "GB", "GB"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(zone_stand_in(cases[i].common, cases[i].asked), cases[i].country);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_its_own_comes_before_the_one_for_all_and_its_country_is_last),
        cmocka_unit_test(a_country_for_all_is_asked_for_by_its_two_letters),
        cmocka_unit_test(what_is_about_one_country_is_not_asked_for_another_unless_it_is_meant),
        cmocka_unit_test(what_is_no_zone_is_refused_with_what_to_write),
        cmocka_unit_test(a_part_of_a_country_has_the_yearly_figure_of_the_whole),
        cmocka_unit_test(what_is_in_no_country_has_no_yearly_figure),
        cmocka_unit_test(the_country_of_a_zone_is_told_by_its_provider_or_by_the_zone),
        cmocka_unit_test(the_zone_for_all_stands_in_unless_who_is_asked_knows_better),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
