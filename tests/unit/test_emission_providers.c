/* emissions/provider and providers/: queries and JSON replies. All replies are invented. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "client/http_client.h"
#include "core/macros.h"
#include "emissions/provider.h"

#define NOW_US     UINT64_C(1768473600000000) /* 2026-01-15T10:40Z */
#define AT_0900_US UINT64_C(1768467600000000)
#define AT_0905_US UINT64_C(1768467900000000)
#define AT_0915_US UINT64_C(1768468500000000)
#define AT_0930_US UINT64_C(1768469400000000)

struct reply {
    const char *body;
    int r;
    uint64_t mg, time_us;
    bool is_estimated;
};

static struct provider_query query_for(const char *zone)
{
    return (struct provider_query){.zone = zone, .now_us = NOW_US, .token = "t"};
}

static void check_replies(const struct provider *provider, const char *zone,
                          const struct reply *replies, size_t count)
{
    struct provider_query query = query_for(zone);

    for (size_t i = 0; i < count; i++) {
        struct emission_factor factor = {.mg_per_kwh = 7};
        struct error err = {""};
        int r = provider_parse(provider, span_of(replies[i].body), &query, &factor, &err);

        if (r != replies[i].r || (r < 0) != (err.text[0] != '\0'))
            fail_msg("%s: %d '%s'", replies[i].body, r, err.text);
        if (r < 0) {
            assert_int_equal(factor.mg_per_kwh, 7);
            continue;
        }
        if (factor.mg_per_kwh != replies[i].mg || factor.time_us != replies[i].time_us ||
            factor.is_estimated != replies[i].is_estimated)
            fail_msg("%s: %ju at %ju", replies[i].body, (uintmax_t)factor.mg_per_kwh,
                     (uintmax_t)factor.time_us);
        assert_int_equal(factor.basis, provider->basis);
    }
}

static void check_path(const struct provider *provider, struct provider_query query,
                       const char *expected)
{
    struct error err = {""};
    struct buffer path;
    int r;

    buffer_init(&path, 4096);
    r = provider_write_path(provider, &query, &path, &err);
    if (!expected) {
        assert_int_equal(r, -EINVAL);
        assert_non_null(strstr(err.text, provider->zones));
    } else {
        assert_int_equal(r, 0);
        assert_false(buffer_failed(&path));
        buffer_char(&path, '\0');
        assert_string_equal(path.data, expected);
    }
    buffer_done(&path);
}

static void all_are_in_the_table_and_found_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; provider_table[i]; i++) {
        const struct provider *provider = provider_table[i];

        assert_ptr_equal(provider_find(span_of(provider->name)), provider);
        assert_true(provider->refresh_s >= 300 && provider->timeout_s <= 30);
        assert_true(provider->body_bytes_max > 0 && provider->write_path && provider->zones);
        assert_true(!provider->read != !provider->parse); /* one of them, not both */
    }
    assert_ptr_equal(provider_find(span_of("rte")), &rte_provider);
    assert_ptr_equal(provider_find(span_of("electricity_maps")), &electricity_maps_provider);
    assert_ptr_equal(provider_find(span_of("watttime")), &watttime_provider);
    assert_ptr_equal(provider_find(span_of("uk_carbon_intensity")), &uk_carbon_intensity_provider);
    assert_ptr_equal(provider_find(span_of("entsoe")), &entsoe_provider);
    assert_null(provider_find(span_of("")));
    assert_null(provider_find(span_of("nobody")));
}

static void only_the_path_of_entsoe_is_secret(void **state)
{
    (void)state;
    for (size_t i = 0; provider_table[i]; i++)
        assert_int_equal(provider_table[i]->key == PROVIDER_KEY_IN_PATH,
                         provider_table[i] == &entsoe_provider);
}

static void a_provider_names_its_secrets(void **state)
{
    static const size_t secrets[] = {[PROVIDER_KEY_NONE] = 0,
                                     [PROVIDER_KEY_IN_HEADER] = 1,
                                     [PROVIDER_KEY_LOGIN] = 2,
                                     [PROVIDER_KEY_IN_PATH] = 1};

    (void)state;
    for (size_t i = 0; provider_table[i]; i++) {
        const struct provider *provider = provider_table[i];
        size_t count = 0;

        for (; count < PROVIDER_SECRETS_MAX && provider->secrets[count].name; count++)
            assert_non_null(provider->secrets[count].variable);
        assert_int_equal(count, secrets[provider->key]);
        assert_int_equal(provider->parse_token != NULL, provider->key == PROVIDER_KEY_LOGIN);
    }
}

static void parameters_are_percent_encoded(void **state)
{
    struct buffer path;

    (void)state;
    buffer_init(&path, 256);
    buffer_str(&path, "/a");
    http_put_parameter(&path, "x", "a b+c&d=e/\xc3\xa9%~");
    http_put_parameter(&path, "y", "");
    buffer_char(&path, '\0');
    assert_string_equal(path.data, "/a?x=a%20b%2Bc%26d%3De%2F%C3%A9%25~&y=");
    buffer_done(&path);
}

static void rte_is_queried_for_the_newest_row_with_a_value(void **state)
{
    (void)state;
    check_path(&rte_provider, query_for("FR"),
               "/api/explore/v2.1/catalog/datasets/eco2mix-national-tr/records"
               "?select=taux_co2%2Cdate_heure&where=taux_co2%20is%20not%20null"
               "&order_by=date_heure%20desc&limit=1&timezone=Europe%2FParis"
               "&include_links=false&include_app_metas=false");
    check_path(&rte_provider, query_for("DE"), NULL);
}

static void rte_replies_with_rows_that_may_be_empty(void **state)
{
#define ROW(value, time) "{\"taux_co2\":" value ",\"date_heure\":\"" time "\"}"
#define TIME_0915        "2026-01-15T10:15:00+01:00"
    static const struct reply replies[] = {
        {"{\"total_count\":41,\"results\":[" ROW("23", TIME_0915) "]}", 0, 23000, AT_0915_US,
         false},
        {"{\"results\":[" ROW("23.5", TIME_0915) "]}", 0, 23500, AT_0915_US, false},
        {"{\"results\":[" ROW("1", TIME_0915) "]}", 0, 1000, AT_0915_US, false},
        {"{\"results\":[" ROW("0.999", TIME_0915) "]}", -ERANGE, 0, 0, false},
        {"{\"results\":[" ROW("0", TIME_0915) "]}", -ERANGE, 0, 0, false},
        {"{\"results\":[" ROW("23", "2026-01-14T10:00:00+01:00") "]}", -ESTALE, 0, 0, false},
        {"{\"results\":[" ROW("null", "2026-01-15T11:00:00+01:00") "," ROW(
             "20", "2026-01-15T10:00:00+01:00") "," ROW("23", TIME_0915) "]}",
         0, 23000, AT_0915_US, false},
        {"{\"results\":[" ROW("23", TIME_0915) "," ROW("20", "2026-01-15T10:00:00+01:00") "]}", 0,
         23000, AT_0915_US, false},
        {"{\"results\":[" ROW("23", TIME_0915) "," ROW("20", TIME_0915) "]}", 0, 23000, AT_0915_US,
         false},
        {"{\"results\":[" ROW("23", TIME_0915) "," ROW("-1", "2026-01-15T10:00:00+01:00") "]}",
         -ERANGE, 0, 0, false},
        {"{\"results\":[" ROW("-1", "yesterday") "," ROW("23", TIME_0915) "]}", 0, 23000,
         AT_0915_US, false},
        {"{\"total_count\":0,\"results\":[]}", -ENODATA, 0, 0, false},
        {"{\"results\":[" ROW("null", TIME_0915) "]}", -ENODATA, 0, 0, false},
        {"{\"results\":[" ROW("\"23\"", TIME_0915) "]}", -ENODATA, 0, 0, false},
        {"{\"results\":[" ROW("23", "yesterday") "]}", -ENODATA, 0, 0, false},
        {"{\"results\":[{\"taux_co2\":23}]}", -ENODATA, 0, 0, false},
        {"{\"results\":[" ROW("-1", TIME_0915) "]}", -ERANGE, 0, 0, false},
        {"{\"results\":[" ROW("5000.5", TIME_0915) "]}", -ERANGE, 0, 0, false},
        {"{\"results\":[" ROW("23", "2026-01-15T13:00:00+01:00") "]}", -ESTALE, 0, 0, false},
        {"[]", -ENODATA, 0, 0, false},
        {"{\"error_code\":\"ODSQLError\",\"message\":\"bad query\"}", -EBADMSG, 0, 0, false},
        {"<html><body>429</body></html>", -EBADMSG, 0, 0, false},
        {"", -EBADMSG, 0, 0, false},
    };

    (void)state;
    check_replies(&rte_provider, "FR", replies, ARRAY_SIZE(replies));
#undef ROW
}

static void electricity_maps_must_not_guess_the_zone(void **state)
{
    struct provider_query direct = query_for("US-CAL-CISO");

    (void)state;
    direct.basis = PRICE_DIRECT;
    check_path(&electricity_maps_provider, query_for("FR"),
               "/v3/carbon-intensity/latest?zone=FR&emissionFactorType=lifecycle"
               "&shouldUseFallbackCallerLookup=false");
    check_path(&electricity_maps_provider, direct,
               "/v3/carbon-intensity/latest?zone=US-CAL-CISO&emissionFactorType=direct"
               "&shouldUseFallbackCallerLookup=false");
    check_path(&electricity_maps_provider, query_for("FR&zone=DE"), NULL);
    check_path(&electricity_maps_provider, query_for(""), NULL);
}

static void electricity_maps_replies_for_the_queried_zone(void **state)
{
#define EMAPS(zone, value, rest)                                                                   \
    "{\"zone\":\"" zone "\",\"carbonIntensity\":" value                                            \
    ",\"datetime\":\"2026-01-15T09:00:00.000Z\"" rest "}"
    static const struct reply replies[] = {
        {EMAPS("FR", "41", ",\"emissionFactorType\":\"lifecycle\",\"isEstimated\":true"), 0, 41000,
         AT_0900_US, true},
        {EMAPS("FR", "41", ",\"isEstimated\":false"), 0, 41000, AT_0900_US, false},
        {EMAPS("FR", "41.5", ""), 0, 41500, AT_0900_US, false},
        {EMAPS("FR", "41.0005", ""), 0, 41001, AT_0900_US, false},
        {EMAPS("FR", "null", ""), -ENODATA, 0, 0, false},
        {EMAPS("DE", "41", ""), -EBADMSG, 0, 0, false},
        {EMAPS("FR2", "41", ""), -EBADMSG, 0, 0, false},
        {EMAPS("FR", "41", ",\"emissionFactorType\":\"direct\""), -EBADMSG, 0, 0, false},
        {EMAPS("FR", "6000", ""), -ERANGE, 0, 0, false},
        {EMAPS("FR", "1", ""), 0, 1000, AT_0900_US, false},
        {EMAPS("FR", "0.999", ""), -ERANGE, 0, 0, false}, /* no lifecycle is without emissions */
        {EMAPS("FR", "0", ""), -ERANGE, 0, 0, false},
        {EMAPS("FR", "1e400", ""), -EBADMSG, 0, 0, false},
        {"{\"carbonIntensity\":41,\"datetime\":\"2026-01-15T09:00Z\"}", -EBADMSG, 0, 0, false},
        {"{\"zone\":\"FR\",\"carbonIntensity\":41}", -EBADMSG, 0, 0, false},
        {"{\"error\":\"Invalid auth-token\"}", -EBADMSG, 0, 0, false},
        {"{\"status\":\"error\",\"message\":\"no\"}", -EBADMSG, 0, 0, false},
    };

    (void)state;
    check_replies(&electricity_maps_provider, "FR", replies, ARRAY_SIZE(replies));
#undef EMAPS
}

static void direct_emissions_may_be_zero(void **state)
{
    struct provider_query query = query_for("NO");
    struct emission_factor factor = {.mg_per_kwh = 7};

    (void)state;
    query.basis = PRICE_DIRECT;
    assert_int_equal(provider_parse(&electricity_maps_provider,
                                    span_of("{\"zone\":\"NO\",\"carbonIntensity\":0,"
                                            "\"emissionFactorType\":\"direct\","
                                            "\"datetime\":\"2026-01-15T09:00:00.000Z\"}"),
                                    &query, &factor, NULL),
                     0);
    assert_int_equal(factor.mg_per_kwh, 0);
    assert_int_equal(factor.basis, PRICE_DIRECT);
}

/* choice.c decides whether it is too old. */
static void an_old_value_comes_with_its_time(void **state)
{
    static const struct reply replies[] = {
        {"{\"zone\":\"FR\",\"carbonIntensity\":41,\"datetime\":\"2026-01-15T04:00:00.000Z\"}", 0,
         41000, 1768449600000000, false},
    };

    (void)state;
    check_replies(&electricity_maps_provider, "FR", replies, 1);
}

static void watttime_is_queried_for_the_last_twenty_minutes(void **state)
{
    struct provider_query early = query_for("CAISO_NORTH");

    (void)state;
    early.now_us = 60000000;
    check_path(&watttime_provider, query_for("CAISO_NORTH"),
               "/v3/historical?region=CAISO_NORTH&start=2026-01-15T10%3A20Z"
               "&end=2026-01-15T10%3A40Z&signal_type=co2_moer");
    check_path(&watttime_provider, early,
               "/v3/historical?region=CAISO_NORTH&start=1970-01-01T00%3A00Z"
               "&end=1970-01-01T00%3A01Z&signal_type=co2_moer");
    check_path(&watttime_provider, query_for("CAISO NORTH"), NULL);
}

static void watttime_replies_in_pounds_and_unsorted(void **state)
{
#define META(region, signal, units)                                                                \
    "\"meta\":{\"region\":\"" region "\",\"signal_type\":\"" signal "\",\"units\":\"" units "\"}"
#define POINT(time, value) "{\"point_time\":\"2026-01-15T" time ":00+00:00\",\"value\":" value "}"
#define GOOD               META("CAISO_NORTH", "co2_moer", "lbs_co2_per_mwh")
    static const struct reply replies[] = {
        {"{\"data\":[" POINT("09:00", "912.4") "]," GOOD "}", 0, 413858, AT_0900_US, false},
        {"{\"data\":[" POINT("09:00", "912.4") "," POINT("09:05", "905.1") "," POINT(
             "08:55", "1") "]," GOOD "}",
         0, 410546, AT_0905_US, false},
        {"{\"data\":[" POINT("09:05", "null") "," POINT("09:00", "1000") "]," GOOD "}", 0, 453592,
         AT_0900_US, false},
        {"{\"data\":[]," GOOD "}", -ENODATA, 0, 0, false},
        {"{" GOOD "}", -ENODATA, 0, 0, false},
        {"{\"data\":[" POINT("09:00", "1") "]}", -EBADMSG, 0, 0, false},
        {"{\"data\":[" POINT("09:00", "1") "]," META("CAISO_NORTH", "co2_moer", "percentile") "}",
         -EBADMSG, 0, 0, false},
        {"{\"data\":[" POINT("09:00", "1") "]," META("CAISO_NORTH", "health_damage",
                                                     "lbs_co2_per_mwh") "}",
         -EBADMSG, 0, 0, false},
        {"{\"data\":[" POINT("09:00", "1") "]," META("PJM", "co2_moer", "lbs_co2_per_mwh") "}",
         -EBADMSG, 0, 0, false},
        {"{\"data\":[" POINT("09:00", "20000") "]," GOOD "}", -ERANGE, 0, 0, false},
        {"{\"error\":\"Forbidden\",\"message\":\"no access to region\"}", -EBADMSG, 0, 0, false},
    };
    struct provider_query query = query_for("CAISO_NORTH");
    struct emission_factor factor;

    (void)state;
    check_replies(&watttime_provider, "CAISO_NORTH", replies, ARRAY_SIZE(replies));
    assert_int_equal(
        provider_parse(&watttime_provider, span_of(replies[0].body), &query, &factor, NULL), 0);
    assert_int_equal(watttime_provider.signal, PRICE_MARGINAL);
    assert_int_equal(factor.basis, PRICE_DIRECT);
}

static void a_token_of_watttime_fits_a_header(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"token\":\"\"}",
        "{\"token\":7}",
        "{\"token\":\"a\\r\\nX: y\"}",
        "{\"token\":\"a b\"}",
        "{\"token\":\"0123456789abcdef\"}",
        "{\"error\":\"Unauthorized\"}",
        "Unauthorized",
    };
    char token[16] = "old";
    struct error err;

    (void)state;
    assert_int_equal(watttime_provider.parse_token(span_of("{\"token\":\"eyJ0.e_-30\"}"), token,
                                                   sizeof(token), &err),
                     0);
    assert_string_equal(token, "eyJ0.e_-30");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (watttime_provider.parse_token(span_of(bad[i]), token, sizeof(token), &err) != -EBADMSG)
            fail_msg("%s", bad[i]);
    assert_string_equal(token, "eyJ0.e_-30");
}

static void uk_zones_are_the_nation_regions_and_postcodes(void **state)
{
    static const char *const none[] = {"",   "0", "18", "013", "RG10 9NY", "RG109",
                                       "uk", "/", "1A", "UK",  "RG"};

    (void)state;
    check_path(&uk_carbon_intensity_provider, query_for("GB"), "/intensity");
    check_path(&uk_carbon_intensity_provider, query_for("13"), "/regional/regionid/13");
    check_path(&uk_carbon_intensity_provider, query_for("RG10"), "/regional/postcode/RG10");
    for (size_t i = 0; i < ARRAY_SIZE(none); i++)
        check_path(&uk_carbon_intensity_provider, query_for(none[i]), NULL);
}

#define HALF(time, intensity) "{\"from\":\"" time "\",\"to\":\"x\",\"intensity\":" intensity "}"
#define TIME_0930             "2026-01-15T09:30Z"

static void the_uk_replies_with_actual_values_else_with_forecasts(void **state)
{
    static const struct reply replies[] = {
        {"{\"data\":[" HALF(TIME_0930, "{\"forecast\":187,\"actual\":181}") "]}", 0, 181000,
         AT_0930_US, false},
        {"{\"data\":[" HALF(TIME_0930, "{\"forecast\":187,\"actual\":null}") "]}", 0, 187000,
         AT_0930_US, true},
        {"{\"data\":[" HALF(TIME_0930, "{\"forecast\":187}") "," HALF(
             "2026-01-15T09:00Z", "{\"forecast\":190,\"actual\":181}") "]}",
         0, 187000, AT_0930_US, true},
        {"{\"data\":[" HALF("2026-01-15T09:00Z", "{\"forecast\":187}") "," HALF(
             TIME_0930, "{\"forecast\":190,\"actual\":181}") "]}",
         0, 181000, AT_0930_US, false},
        {"{\"data\":[" HALF(TIME_0930, "{\"forecast\":null,\"actual\":null}") "]}", -ENODATA, 0, 0,
         false},
        {"{\"data\":[" HALF("09:30", "{\"forecast\":187}") "]}", -ENODATA, 0, 0, false},
        {"{\"data\":[" HALF(TIME_0930, "{\"forecast\":187,\"actual\":-5}") "]}", -ERANGE, 0, 0,
         false},
        {"{\"data\":[" HALF(TIME_0930, "{\"forecast\":187,\"actual\":0}") "]}", -ERANGE, 0, 0,
         false},
        {"{\"data\":[]}", -ENODATA, 0, 0, false},
        {"{\"data\":[],\"error\":null}", -ENODATA, 0, 0, false},
        {"{\"error\":{\"code\":\"400 Bad Request\",\"message\":\"bad\"}}", -EBADMSG, 0, 0, false},
    };

    (void)state;
    check_replies(&uk_carbon_intensity_provider, "GB", replies, ARRAY_SIZE(replies));
}

#define REGION(id, rest)                                                                           \
    "{\"data\":[{\"regionid\":" id rest                                                            \
    ",\"data\":[" HALF(TIME_0930, "{\"forecast\":142,\"index\":\"moderate\"}") "]}]}"

static void a_uk_region_is_nested_one_level_deeper(void **state)
{
    static const struct reply region[] = {
        {REGION("13", ""), 0, 142000, AT_0930_US, true},
        {"{\"data\":[{\"regionid\":13,\"data\":[" HALF(TIME_0930, "{\"forecast\":0}") "]}]}", 0, 0,
         AT_0930_US, true},
        {REGION("12", ""), -EBADMSG, 0, 0, false},
        {REGION("\"13\"", ""), -EBADMSG, 0, 0, false},
        {"{\"data\":[]}", -EBADMSG, 0, 0, false},
        {"{\"data\":[{\"regionid\":13}]}", -ENODATA, 0, 0, false},
    };
    static const struct reply postcode[] = {
        {REGION("12", ",\"postcode\":\"RG10\""), 0, 142000, AT_0930_US, true},
        {REGION("12", ""), 0, 142000, AT_0930_US, true},
        {REGION("12", ",\"postcode\":\"RG1\""), -EBADMSG, 0, 0, false},
        {"{\"data\":[]}", -EBADMSG, 0, 0, false},
    };

    (void)state;
    check_replies(&uk_carbon_intensity_provider, "13", region, ARRAY_SIZE(region));
    check_replies(&uk_carbon_intensity_provider, "RG10", postcode, ARRAY_SIZE(postcode));
}

static void error_messages_of_services_become_printable(void **state)
{
    static const struct {
        const char *body, *why;
    } cases[] = {
        {"{\"error\":\"Invalid auth-token\"}", "Invalid auth-tok"},
        {"{\"error\":{\"code\":\"400\",\"message\":\"bad\"}}", "bad"},
        {"{\"error\":{\"code\":\"400\"}}", "400"},
        {"{\"error\":\"E\",\"message\":\"why\"}", "why"},
        {"{\"error_code\":\"X\",\"message\":\"a\\nb\\u001b[0m\"}", "a?b?[0m"},
        {"{\"status\":\"error\"}", "error"},
        {"{\"message\":\"hello\"}", ""},
        {"{\"error\":null}", ""},
        {"<html>", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char why[17];

        provider_error_message(span_of(cases[i].body), why, sizeof(why));
        assert_string_equal(why, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_in_the_table_and_found_by_name),
        cmocka_unit_test(only_the_path_of_entsoe_is_secret),
        cmocka_unit_test(a_provider_names_its_secrets),
        cmocka_unit_test(parameters_are_percent_encoded),
        cmocka_unit_test(rte_is_queried_for_the_newest_row_with_a_value),
        cmocka_unit_test(rte_replies_with_rows_that_may_be_empty),
        cmocka_unit_test(electricity_maps_must_not_guess_the_zone),
        cmocka_unit_test(electricity_maps_replies_for_the_queried_zone),
        cmocka_unit_test(direct_emissions_may_be_zero),
        cmocka_unit_test(an_old_value_comes_with_its_time),
        cmocka_unit_test(watttime_is_queried_for_the_last_twenty_minutes),
        cmocka_unit_test(watttime_replies_in_pounds_and_unsorted),
        cmocka_unit_test(a_token_of_watttime_fits_a_header),
        cmocka_unit_test(uk_zones_are_the_nation_regions_and_postcodes),
        cmocka_unit_test(the_uk_replies_with_actual_values_else_with_forecasts),
        cmocka_unit_test(a_uk_region_is_nested_one_level_deeper),
        cmocka_unit_test(error_messages_of_services_become_printable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
