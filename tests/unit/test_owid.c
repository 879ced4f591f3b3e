/* emissions/zone: the embedded table of yearly averages, and malformed ones. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/zone.h"

extern const char emission_factors_owid_csv[], country_codes_tsv[];
extern const size_t emission_factors_owid_csv_len, country_codes_tsv_len;

static void countries_are_found_by_either_code_of_theirs(void **state)
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

static uint64_t find(const char *csv, const char *code)
{
    uint64_t mg = 0;
    int r = zone_find_row(span_of(csv), code, &mg);

    assert_true(r == 0 || r == -ENOENT);
    return r == 0 ? mg : UINT64_MAX;
}

static void csv_is_read_with_its_quotes_and_line_ends(void **state)
{
    (void)state;
    assert_int_equal(find("BES,\"Bonaire, Sint Eustatius and Saba\",2023,12.5\n", "BES"), 12500);
    assert_int_equal(find("AAA,\"say \"\"a\"\", b\",2023,1\n", "AAA"), 1000);
    assert_int_equal(find("\"AAA\",A,\"2023\",\"1\"\n", "AAA"), 1000);
    assert_int_equal(find("AAA,A,2023,1\r\nBBB,B,2023,2\r\n", "AAA"), 1000);
    assert_int_equal(find("AAA,A,2023,1\nBBB,B,2023,2", "BBB"), 2000);
    assert_int_equal(find("AAA,\"A,2023,1\nBBB,B,2023,2\n", "BBB"), 2000);
    assert_int_equal(find("AAA,\"A,2023,1\n", "AAA"), UINT64_MAX);
}

static void rows_without_a_code_or_a_figure_are_passed_over(void **state)
{
    (void)state;
    assert_int_equal(find(",Africa,2023,500\nAAA,A,2023,1\n", "AAA"), 1000);
    assert_int_equal(find("AAA,A,2023,\n", "AAA"), UINT64_MAX);
    assert_int_equal(find("AAA,A,2023\n", "AAA"), UINT64_MAX);
    assert_int_equal(find("AAA,A,now,1\n", "AAA"), UINT64_MAX);
    assert_int_equal(find("AAA,A,2023,5001\n", "AAA"), UINT64_MAX);
    assert_int_equal(find("AAA,A,2023,-1\n", "AAA"), UINT64_MAX);
    assert_int_equal(find("AAA", "AAA"), UINT64_MAX);
    assert_int_equal(find("", "AAA"), UINT64_MAX);
}

static void of_a_code_that_comes_twice_the_newest_year_is_taken(void **state)
{
    (void)state;
    assert_int_equal(find("AAA,A,2022,1\nAAA,A,2024,3\nAAA,A,2023,2\n", "AAA"), 3000);
    assert_int_equal(find("AAA,A,2024,3\nAAA,A,2024,4\n", "AAA"), 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(countries_are_found_by_either_code_of_theirs),
        cmocka_unit_test(nothing_stands_in_for_an_unknown_country),
        cmocka_unit_test(the_constant_for_the_world_is_the_one_of_the_table),
        cmocka_unit_test(every_row_of_the_table_is_found_and_none_twice),
        cmocka_unit_test(every_alpha_2_code_leads_to_a_row),
        cmocka_unit_test(csv_is_read_with_its_quotes_and_line_ends),
        cmocka_unit_test(rows_without_a_code_or_a_figure_are_passed_over),
        cmocka_unit_test(of_a_code_that_comes_twice_the_newest_year_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
