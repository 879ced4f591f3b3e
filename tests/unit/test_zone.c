/* emissions/zone: the zone of each provider, the country whose yearly average stands in, and the
 * embedded table of averages. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/zone.h"

extern const char emission_factors_owid_csv[], country_codes_tsv[];
extern const size_t emission_factors_owid_csv_len, country_codes_tsv_len;

static void a_providers_own_zone_wins_over_the_common_one_and_its_country_is_last(void **state)
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

static void a_common_country_is_queried_by_its_two_letters(void **state)
{
    char zone[FACTOR_ZONE_BYTES];
    struct error err;

    (void)state;
    assert_int_equal(zone_choose(&uk_carbon_intensity_provider, "", "GBR", zone, &err), 0);
    assert_string_equal(zone, "GB");
    assert_int_equal(zone_choose(&electricity_maps_provider, "", "DEU", zone, &err), 0);
    assert_string_equal(zone, "DE");
}

static void a_provider_for_one_country_is_not_used_for_another_by_accident(void **state)
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

static void an_unknown_zone_is_rejected_with_what_to_write(void **state)
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
        {&rte_provider, "", "hall-3",
         "--emissions.providers: rte: 'hall-3' is not a zone; expected FR"},
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

static void part_of_a_country_has_the_yearly_average_of_the_whole(void **state)
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

static void a_zone_outside_every_country_has_no_yearly_average(void **state)
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

static void the_country_of_a_zone_comes_from_its_provider_or_from_the_zone(void **state)
{
    (void)state;
    assert_string_equal(zone_country(&uk_carbon_intensity_provider, "13"), "GB");
    assert_string_equal(zone_country(&uk_carbon_intensity_provider, "CH1"), "GB");
    assert_string_equal(zone_country(&electricity_maps_provider, "CH1"), "CH1");
    assert_string_equal(zone_country(&entsoe_provider, "DE-LU"), "DE-LU");
    assert_string_equal(zone_country(&watttime_provider, "CAISO_NORTH"), "");
}

static void the_common_zone_stands_in_unless_the_providers_country_is_better_known(void **state)
{
    static const struct {
        const char *common, *queried, *country;
    } cases[] = {
        {"", "", ""},         {"FR", "", "FR"},    {"SE3", "", "SE3"},
        {"Atlantis", "", ""}, {"", "GB", "GB"},    {"FR", "GB", "FR"},
        {"FRA", "GB", "FRA"}, {"CH1", "GB", "GB"}, {"Atlantis", "GB", "GB"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(zone_stand_in(cases[i].common, cases[i].queried), cases[i].country);
}

static void countries_are_found_by_either_code(void **state)
{
    static const struct {
        const char *country, *zone;
        uint64_t mg;
    } cases[] = {
        {"FRA", "FRA", 44179},      {"FR", "FRA", 44179},   {"DE", "DEU", 344140},
        {"USA", "USA", 383549},     {"GB", "GBR", 210891},  {"NO", "NOR", 30746},
        {"SE", "SWE", 35824},       {"PL", "POL", 614982},  {"CN", "CHN", 559552},
        {"IN", "IND", 708322},      {"TM", "TKM", 1306304}, {"XK", "OWID_KOS", 958716},
        {"world", "world", 473007},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct price_factor factor = {.ug_per_kwh = 7};

        if (zone_of_country(cases[i].country, &factor) != 0 ||
            factor.ug_per_kwh != cases[i].mg * 1000 || strcmp(factor.zone, cases[i].zone) != 0)
            fail_msg("%s: %s, %ju", cases[i].country, factor.zone, (uintmax_t)factor.ug_per_kwh);
        assert_string_equal(factor.provider, "owid");
        assert_int_equal(factor.basis, PRICE_LIFECYCLE);
        assert_int_equal(factor.signal, PRICE_AVERAGE);
    }
}

static void nothing_stands_in_for_an_unknown_country(void **state)
{
    /* The table has a 0 for CAF. */
    static const char *const unknown[] = {
        "",
        "ZZ",
        "AQ",
        "CF",
        "CAF",
        "XXX",
        "fr",
        "France",
        "country_iso3",
        "#",
        "OWID_EUR",
        "FRA,France",
        "0123456789012345678901234567890123456789",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
        struct price_factor factor = {.ug_per_kwh = 7};

        if (zone_of_country(unknown[i], &factor) != -ENOENT || factor.ug_per_kwh != 7)
            fail_msg("'%s'", unknown[i]);
    }
}

static void the_constant_for_the_world_is_the_one_of_the_table(void **state)
{
    struct price_factor world;

    (void)state;
    assert_int_equal(zone_of_country("world", &world), 0);
    assert_int_equal(world.ug_per_kwh, factor_world().ug_per_kwh);
}

static void every_row_of_the_table_is_found_and_none_twice(void **state)
{
    struct span csv = {emission_factors_owid_csv, emission_factors_owid_csv_len};
    struct span previous = {"", 0};
    size_t rows = 0;

    (void)state;
    span_cut(&csv, '\n');
    while (csv.len > 0) {
        struct span line = span_cut(&csv, '\n'), code = span_cut(&line, ',');
        struct span whole = {emission_factors_owid_csv, emission_factors_owid_csv_len};
        char text[16] = "";
        uint64_t mg;

        assert_in_range(code.len, 3, sizeof(text) - 1);
        memcpy(text, code.data, code.len);
        assert_int_equal(zone_find_row(whole, text, &mg), strcmp(text, "CAF") == 0 ? -ENOENT : 0);
        /* Sorted, those without an ISO code last: so the same one twice would be neighbours. */
        assert_false(span_equals(previous, text));
        previous = code;
        rows++;
    }
    assert_int_equal(rows, 215);
}

static void every_alpha_2_code_leads_to_a_row(void **state)
{
    struct span codes = {country_codes_tsv, country_codes_tsv_len};
    size_t count = 0;

    (void)state;
    while (codes.len > 0) {
        struct span line = span_cut(&codes, '\n'), code = span_cut(&line, '\t');
        struct price_factor factor;
        char text[3] = "";

        if (code.len != 2 || span_equals(code, "CF"))
            continue;
        memcpy(text, code.data, 2);
        assert_int_equal(zone_of_country(text, &factor), 0);
        assert_true(span_equals(line, factor.zone));
        count++;
    }
    assert_int_equal(count, 213); /* all but the world, and one without a figure */
}

static uint64_t find_row(const char *csv, const char *code)
{
    uint64_t mg = 0;
    int r = zone_find_row(span_of(csv), code, &mg);

    assert_true(r == 0 || r == -ENOENT);
    return r == 0 ? mg : UINT64_MAX;
}

static void csv_may_have_quotes_and_any_line_end(void **state)
{
    (void)state;
    assert_int_equal(find_row("BES,\"Bonaire, Sint Eustatius and Saba\",2023,12.5\n", "BES"),
                     12500);
    assert_int_equal(find_row("AAA,\"say \"\"a\"\", b\",2023,1\n", "AAA"), 1000);
    assert_int_equal(find_row("\"AAA\",A,\"2023\",\"1\"\n", "AAA"), 1000);
    assert_int_equal(find_row("AAA,A,2023,1\r\nBBB,B,2023,2\r\n", "AAA"), 1000);
    assert_int_equal(find_row("AAA,A,2023,1\nBBB,B,2023,2", "BBB"), 2000);
    assert_int_equal(find_row("AAA,\"A,2023,1\nBBB,B,2023,2\n", "BBB"), 2000);
    assert_int_equal(find_row("AAA,\"A,2023,1\n", "AAA"), UINT64_MAX);
}

static void rows_without_a_code_or_a_value_are_skipped(void **state)
{
    (void)state;
    assert_int_equal(find_row(",Africa,2023,500\nAAA,A,2023,1\n", "AAA"), 1000);
    assert_int_equal(find_row("AAA,A,2023,\n", "AAA"), UINT64_MAX);
    assert_int_equal(find_row("AAA,A,2023\n", "AAA"), UINT64_MAX);
    assert_int_equal(find_row("AAA,A,now,1\n", "AAA"), UINT64_MAX);
    assert_int_equal(find_row("AAA,A,2023,5001\n", "AAA"), UINT64_MAX);
    assert_int_equal(find_row("AAA,A,2023,-1\n", "AAA"), UINT64_MAX);
    assert_int_equal(find_row("AAA", "AAA"), UINT64_MAX);
    assert_int_equal(find_row("", "AAA"), UINT64_MAX);
}

static void the_newest_year_of_a_code_wins(void **state)
{
    (void)state;
    assert_int_equal(find_row("AAA,A,2022,1\nAAA,A,2024,3\nAAA,A,2023,2\n", "AAA"), 3000);
    assert_int_equal(find_row("AAA,A,2024,3\nAAA,A,2024,4\n", "AAA"), 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_providers_own_zone_wins_over_the_common_one_and_its_country_is_last),
        cmocka_unit_test(a_common_country_is_queried_by_its_two_letters),
        cmocka_unit_test(a_provider_for_one_country_is_not_used_for_another_by_accident),
        cmocka_unit_test(an_unknown_zone_is_rejected_with_what_to_write),
        cmocka_unit_test(part_of_a_country_has_the_yearly_average_of_the_whole),
        cmocka_unit_test(a_zone_outside_every_country_has_no_yearly_average),
        cmocka_unit_test(the_country_of_a_zone_comes_from_its_provider_or_from_the_zone),
        cmocka_unit_test(the_common_zone_stands_in_unless_the_providers_country_is_better_known),
        cmocka_unit_test(countries_are_found_by_either_code),
        cmocka_unit_test(nothing_stands_in_for_an_unknown_country),
        cmocka_unit_test(the_constant_for_the_world_is_the_one_of_the_table),
        cmocka_unit_test(every_row_of_the_table_is_found_and_none_twice),
        cmocka_unit_test(every_alpha_2_code_leads_to_a_row),
        cmocka_unit_test(csv_may_have_quotes_and_any_line_end),
        cmocka_unit_test(rows_without_a_code_or_a_value_are_skipped),
        cmocka_unit_test(the_newest_year_of_a_code_wins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
