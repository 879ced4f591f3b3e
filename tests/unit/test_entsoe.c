/* emissions/providers/entsoe: the generation mix, from XML. All documents are invented. */
#include "unit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/provider.h"
#include "emissions/providers/xml.h"

#define NOW_US     UINT64_C(1768473600000000) /* 2026-01-15T10:40Z */
#define AT_0600_US UINT64_C(1768456800000000)
#define AT_0700_US UINT64_C(1768460400000000)
#define AT_0800_US UINT64_C(1768464000000000)
#define AT_0900_US UINT64_C(1768467600000000)

#define FR        "10YFR-RTE------C"
#define NAMESPACE "urn:iec62325.351:tc57wg16:451-6:generationloaddocument:3:0"
#define DOCUMENT(...)                                                                              \
    "<GL_MarketDocument xmlns=\"" NAMESPACE "\">" __VA_ARGS__ "</GL_MarketDocument>"
#define IN  "<inBiddingZone_Domain.mRID codingScheme=\"A01\">" FR "</inBiddingZone_Domain.mRID>"
#define OUT "<outBiddingZone_Domain.mRID codingScheme=\"A01\">" FR "</outBiddingZone_Domain.mRID>"
#define SERIES(domain, curve, psr, ...)                                                            \
    "<TimeSeries><mRID>1</mRID>" domain                                                            \
    "<quantity_Measure_Unit.name>MAW</quantity_Measure_Unit.name><curveType>" curve                \
    "</curveType>\n<MktPSRType><psrType>" psr "</psrType></MktPSRType>" __VA_ARGS__                \
    "</TimeSeries>\n"
#define PERIOD(start, end, resolution, ...)                                                        \
    "<Period><timeInterval><start>2026-01-15T" start "Z</start><end>2026-01-15T" end               \
    "Z</end></timeInterval><resolution>" resolution "</resolution>" __VA_ARGS__ "</Period>"
#define POINT(position, quantity)                                                                  \
    "<Point><position>" position "</position><quantity>" quantity "</quantity></Point>"
#define HOUR(psr, mw) SERIES(IN, "A01", psr, PERIOD("09:00", "10:00", "PT60M", POINT("1", mw)))

static int parse(const char *document, struct emission_factor *factor, struct error *err)
{
    struct provider_query query = {.zone = "FR", .now_us = NOW_US};

    *err = (struct error){""};
    return provider_parse(&entsoe_provider, span_of(document), &query, factor, err);
}

static void check(const char *document, uint64_t mg, uint64_t time_us)
{
    struct emission_factor factor = {.mg_per_kwh = 7};
    struct error err;
    int r = parse(document, &factor, &err);

    if (r != 0 || factor.mg_per_kwh != mg || factor.time_us != time_us)
        fail_msg("%d '%s': %ju at %ju of %s", r, err.text, (uintmax_t)factor.mg_per_kwh,
                 (uintmax_t)factor.time_us, document);
    assert_int_equal(factor.basis, PRICE_LIFECYCLE);
    assert_int_equal(entsoe_provider.signal, PRICE_AVERAGE);
}

static void check_refused(const char *document, int expected)
{
    struct emission_factor factor = {.mg_per_kwh = 7};
    struct error err;
    int r = parse(document, &factor, &err);

    if (r != expected || !err.text[0] || factor.mg_per_kwh != 7)
        fail_msg("%d '%s': %s", r, err.text, document);
}

static void the_query_names_the_zone_the_hours_and_the_token(void **state)
{
    static const char *const none[] = {"", "XX", "fr", "10YFR-RTE------", "10YFR-RTE-&----C"};
    struct provider_query query = {.zone = "FR", .now_us = NOW_US, .token = "a-b c"};
    struct buffer path;

    (void)state;
    buffer_init(&path, 4096);
    assert_int_equal(entsoe_provider.write_path(&query, &path), 0);
    buffer_char(&path, '\0');
    assert_string_equal(path.data,
                        "/api?documentType=A75&processType=A16&in_Domain=10YFR-RTE------C"
                        "&periodStart=202601142200&periodEnd=202601151000&securityToken=a-b%20c");
    path.len = 0;
    query.zone = "10YHU-MAVIR----U";
    assert_int_equal(entsoe_provider.write_path(&query, &path), 0);
    assert_non_null(memmem(path.data, path.len, "in_Domain=10YHU-MAVIR----U&", 27));
    path.len = 0;
    for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
        query.zone = none[i];
        assert_int_equal(entsoe_provider.write_path(&query, &path), -EINVAL);
    }
    query = (struct provider_query){.zone = "FR", .now_us = NOW_US};
    assert_int_equal(entsoe_provider.write_path(&query, &path), -EINVAL);
    assert_int_equal(path.len, 0);
    buffer_done(&path);
}

static void the_mix_is_the_mean_of_the_factors_by_power(void **state)
{
    (void)state;
    check(DOCUMENT(HOUR("B14", "48210")), 12000, AT_0900_US);
    /* (300 * 12 + 100 * 490) / 400 */
    check(DOCUMENT(HOUR("B14", "300") HOUR("B04", "100")), 131500, AT_0900_US);
    /* (2 * 11 + 1 * 12) / 3 = 11.3333.. */
    check(DOCUMENT(HOUR("B19", "2") HOUR("B18", "1")), 11333, AT_0900_US);
    /* (1 * 11 + 2 * 12) / 3 = 11.6666.. */
    check(DOCUMENT(HOUR("B19", "1") HOUR("B18", "2")), 11667, AT_0900_US);
    check(DOCUMENT(HOUR("B19", "0.5") HOUR("B18", "0.5")), 11500, AT_0900_US);
}

/* Omitted positions repeat the point before: 48210, 48210, 47990, 47990. */
static void a_curve_of_type_a03_repeats_what_is_left_out(void **state)
{
    (void)state;
    check(DOCUMENT(
              SERIES(IN, "A03", "B14",
                     PERIOD("06:00", "10:00", "PT60M", POINT("1", "48210") POINT("3", "47990")))
                  SERIES(IN, "A03", "B04",
                         PERIOD("06:00", "10:00", "PT60M", POINT("1", "0") POINT("4", "47990")))),
          251000, AT_0900_US); /* (12 + 490) / 2 */
    check(DOCUMENT(
              SERIES(IN, "A03", "B14", PERIOD("06:00", "08:00", "PT60M", POINT("1", "100")))
                  SERIES(IN, "A03", "B04",
                         PERIOD("06:00", "08:00", "PT60M", POINT("1", "300") POINT("2", "100")))),
          251000, AT_0700_US);
}

static void a_curve_of_type_a01_does_not(void **state)
{
    (void)state;
    check(DOCUMENT(SERIES(IN, "A01", "B14",
                          PERIOD("06:00", "10:00", "PT60M", POINT("1", "100") POINT("3", "100")))
                       SERIES(IN, "A01", "B04",
                              PERIOD("06:00", "10:00", "PT60M",
                                     POINT("1", "100") POINT("2", "1") POINT("4", "1")))),
          251000, AT_0600_US);
}

static void resolutions_may_differ(void **state)
{
    (void)state;
    /* Gas: (100 + 200 + 300 + 200) / 4 = 200. Wind: (0 + 400) / 2 = 200. Nuclear: 400.
     * (200 * 490 + 200 * 11 + 400 * 12) / 800 */
    check(DOCUMENT(SERIES(IN, "A01", "B04",
                          PERIOD("09:00", "10:00", "PT15M",
                                 POINT("1", "100") POINT("2", "200") POINT("3", "300")
                                     POINT("4", "200")))
                       SERIES(IN, "A01", "B19",
                              PERIOD("09:00", "10:00", "PT30M", POINT("1", "0") POINT("2", "400")))
                           HOUR("B14", "400")),
          131250, AT_0900_US);
}

static void the_newest_hour_with_every_significant_type_counts(void **state)
{
    (void)state;
    /* Gas lags by two hours; geothermal, a hundredth, does not hold up the others. */
    check(DOCUMENT(
              SERIES(IN, "A03", "B14", PERIOD("06:00", "10:00", "PT60M", POINT("1", "500")))
                  SERIES(IN, "A03", "B04", PERIOD("06:00", "08:00", "PT60M", POINT("1", "500")))
                      SERIES(IN, "A03", "B09", PERIOD("06:00", "07:00", "PT60M", POINT("1", "5")))),
          251000, AT_0700_US);
    /* Three quarters are not an hour. */
    check(DOCUMENT(SERIES(IN, "A03", "B14", PERIOD("08:00", "09:45", "PT15M", POINT("1", "100")))),
          12000, AT_0800_US);
}

static void several_series_of_one_type_fill_each_others_gaps(void **state)
{
    (void)state;
    check(DOCUMENT(SERIES(IN, "A01", "B14", PERIOD("08:00", "09:00", "PT60M", POINT("1", "100")))
                       SERIES(IN, "A01", "B14",
                              PERIOD("09:00", "09:30", "PT30M", POINT("1", "100"))
                                  PERIOD("09:30", "10:00", "PT30M", POINT("1", "100")))
                           HOUR("B04", "100")),
          251000, AT_0900_US);
}

static void pumping_and_storage_are_left_out(void **state)
{
    (void)state;
    check(DOCUMENT(HOUR("B14", "100") SERIES(OUT, "A01", "B04",
                                             PERIOD("09:00", "10:00", "PT60M", POINT("1", "100")))),
          12000, AT_0900_US);
    check(DOCUMENT(HOUR("B14", "100") HOUR("B10", "900") HOUR("B25", "900")), 12000, AT_0900_US);
    check_refused(DOCUMENT(HOUR("B10", "900")), -ENODATA);
}

static void power_drawn_by_a_plant_is_not_generation(void **state)
{
    (void)state;
    check(DOCUMENT(HOUR("B14", "100") HOUR("B16", "-3")), 12000, AT_0900_US);
    check_refused(DOCUMENT(HOUR("B14", "0")), -ENODATA);
}

static void an_acknowledgement_is_no_data(void **state)
{
    struct emission_factor factor;
    struct error err;

    (void)state;
    assert_int_equal(
        parse("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Acknowledgement_MarketDocument "
              "xmlns=\"urn:x\"><Reason><code>999</code><text>No matching data found\x1b</text>"
              "</Reason></Acknowledgement_MarketDocument>",
              &factor, &err),
        -ENODATA);
    assert_non_null(strstr(err.text, "No matching data found?"));
    check_refused("<Acknowledgement_MarketDocument", -EBADMSG);
    check_refused("<Acknowledgement_MarketDocument/>", -ENODATA);
    check_refused(DOCUMENT(""), -ENODATA);
}

static void versions_prefixes_and_comments_do_not_matter(void **state)
{
    (void)state;
    check(
        "\xef\xbb\xbf<?xml version='1.0'?><!-- a > b -->\r\n<ns0:GL_MarketDocument "
        "xmlns:ns0=\"urn:iec62325.351:tc57wg16:451-6:generationloaddocument:3:1\" a='>'>"
        "<ns0:time_Period.timeInterval><ns0:start>no</ns0:start></ns0:time_Period.timeInterval>"
        "<empty/><ns0:TimeSeries><ns0:inBiddingZone_Domain.mRID codingScheme='A01'> " FR
        " </ns0:inBiddingZone_Domain.mRID><ns0:psrType>B14</ns0:psrType>"
        "<ns0:Period ><ns0:start>2026-01-15T09:00Z</ns0:start><ns0:end>2026-01-15T10:00Z</ns0:end>"
        "<ns0:resolution>PT60M</ns0:resolution><ns0:Point><ns0:position>1</ns0:position>"
        "<ns0:quantity>5</ns0:quantity></ns0:Point></ns0:Period></ns0:TimeSeries>"
        "</ns0:GL_MarketDocument >\n",
        12000, AT_0900_US);
}

static void a_malformed_document_is_rejected(void **state)
{
    static const char *const bad[] = {
        "",
        "{\"zone\":\"FR\"}",
        "<html></html>",
        "<!DOCTYPE x [<!ENTITY a \"b\">]><GL_MarketDocument/>",
        "<GL_MarketDocument>",
        "<GL_MarketDocument></TimeSeries>",
        "<GL_MarketDocument/><GL_MarketDocument/>",
        "<GL_MarketDocument/>x",
        "<GL_MarketDocument><![CDATA[x]]></GL_MarketDocument>",
        "<GL_MarketDocument><?</GL_MarketDocument>",
        "<GL_MarketDocument><!-- </GL_MarketDocument>",
        "<GL_MarketDocument a=\"></GL_MarketDocument>",
        DOCUMENT("<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a></a></a></a></a></a></a></a></a>"
                 "</a></a></a></a></a></a></a></a>"),
        DOCUMENT("<Period></Period>"),
        DOCUMENT("<TimeSeries><TimeSeries></TimeSeries></TimeSeries>"),
        DOCUMENT("<TimeSeries><Period></Period></TimeSeries>"),
        DOCUMENT(SERIES("", "A01", "B14", PERIOD("09:00", "10:00", "PT60M", POINT("1", "1")))),
        DOCUMENT(SERIES("<inBiddingZone_Domain.mRID>10YBE----------2</inBiddingZone_Domain.mRID>",
                        "A01", "B14", PERIOD("09:00", "10:00", "PT60M", POINT("1", "1")))),
        DOCUMENT(SERIES(IN, "A02", "B14", PERIOD("09:00", "10:00", "PT60M", POINT("1", "1")))),
        DOCUMENT(HOUR("B21", "1")),
        DOCUMENT(HOUR("#", "1")),
        DOCUMENT(HOUR("", "1")),
        DOCUMENT(HOUR("B14", "1e3")),
        DOCUMENT(HOUR("B14", "")),
        DOCUMENT(HOUR("B14", "1000001")),
        DOCUMENT(HOUR("B14", "&#49;")),
        DOCUMENT(SERIES(IN, "A01", "B14", PERIOD("09:00", "10:00", "P1D", POINT("1", "1")))),
        DOCUMENT(SERIES(IN, "A01", "B14", PERIOD("09:10", "10:00", "PT15M", POINT("1", "1")))),
        DOCUMENT(SERIES(IN, "A01", "B14", PERIOD("10:00", "09:00", "PT15M", POINT("1", "1")))),
        DOCUMENT(SERIES(IN, "A01", "B14", PERIOD("09:00", "10:00", "PT60M", POINT("0", "1")))),
        DOCUMENT(SERIES(IN, "A01", "B14", PERIOD("09:00", "10:00", "PT60M", POINT("2", "1")))),
        DOCUMENT(SERIES(IN, "A01", "B14",
                        PERIOD("09:00", "10:00", "PT60M", POINT("18446744073709551615", "1")))),
        DOCUMENT(SERIES(IN, "A01", "B14",
                        PERIOD("08:00", "10:00", "PT60M", POINT("2", "1") POINT("1", "1")))),
        DOCUMENT(SERIES(IN, "A01", "B14", "<Period>" POINT("1", "1") "</Period>")),
        DOCUMENT(
            SERIES(IN, "A01", "B14",
                   PERIOD("09:00", "10:00", "PT60M", POINT("1", "1") "<psrType>B04</psrType>"))),
        DOCUMENT(SERIES(
            IN, "A01", "B14",
            PERIOD("09:00", "10:00", "PT60M", POINT("1", "1") "<resolution>PT15M</resolution>"))),
        DOCUMENT("<TimeSeries>" IN "<quantity_Measure_Unit.name>KWT</quantity_Measure_Unit.name>"
                 "<psrType>B14</psrType>" PERIOD("09:00", "10:00", "PT60M",
                                                 POINT("1", "1")) "</TimeSeries>"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        check_refused(bad[i], -EBADMSG);
}

static void generation_older_than_a_day_is_ignored(void **state)
{
    (void)state;
    check_refused(
        DOCUMENT(SERIES(IN, "A01", "B14",
                        "<Period><start>2026-01-13T09:00Z</start>"
                        "<end>2026-01-13T10:00Z</end><resolution>PT60M</resolution>" POINT(
                            "1", "1") "</Period>")),
        -ENODATA);
}

static void every_plant_type_has_its_factor(void **state)
{
#define TYPE(psr, grams)                                                                           \
    {                                                                                              \
        DOCUMENT(HOUR(psr, "100") HOUR("B14", "100")), (grams)                                     \
    }
    static const struct {
        const char *document;
        uint64_t grams;
    } cases[] = {
        TYPE("B01", 230), TYPE("B02", 820),  TYPE("B03", 820),  TYPE("B04", 490), TYPE("B05", 820),
        TYPE("B06", 650), TYPE("B07", 1000), TYPE("B08", 1000), TYPE("B09", 38),  TYPE("B11", 24),
        TYPE("B12", 24),  TYPE("B13", 17),   TYPE("B14", 12),   TYPE("B15", 230), TYPE("B16", 45),
        TYPE("B17", 700), TYPE("B18", 12),   TYPE("B19", 11),   TYPE("B20", 700), TYPE("B10", 12),
        TYPE("B25", 12), /* storage is left out */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        check(cases[i].document, (cases[i].grams + 12) * 500, AT_0900_US);
}

static void the_scanner_returns_events_in_document_order(void **state)
{
    static const struct {
        enum xml_kind kind;
        const char *name, *text;
    } expected[] = {
        {XML_OPEN, "a", ""},      {XML_TEXT, "a", "x"}, {XML_OPEN, "b", ""}, {XML_CLOSE, "b", ""},
        {XML_TEXT, "a", "y & z"}, {XML_CLOSE, "a", ""}, {XML_END, "", ""},   {XML_END, "", ""},
    };
    struct xml_scanner xml;
    struct xml_event event;

    (void)state;
    xml_init(&xml, span_of("<p:a> x <b c='/'/> y & z\n</p:a>"));
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        assert_int_equal(xml_next(&xml, &event), 0);
        assert_int_equal(event.kind, expected[i].kind);
        assert_true(span_equals(event.name, expected[i].name));
        assert_true(span_equals(event.text, expected[i].text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_query_names_the_zone_the_hours_and_the_token),
        cmocka_unit_test(the_mix_is_the_mean_of_the_factors_by_power),
        cmocka_unit_test(a_curve_of_type_a03_repeats_what_is_left_out),
        cmocka_unit_test(a_curve_of_type_a01_does_not),
        cmocka_unit_test(resolutions_may_differ),
        cmocka_unit_test(the_newest_hour_with_every_significant_type_counts),
        cmocka_unit_test(several_series_of_one_type_fill_each_others_gaps),
        cmocka_unit_test(pumping_and_storage_are_left_out),
        cmocka_unit_test(power_drawn_by_a_plant_is_not_generation),
        cmocka_unit_test(an_acknowledgement_is_no_data),
        cmocka_unit_test(versions_prefixes_and_comments_do_not_matter),
        cmocka_unit_test(a_malformed_document_is_rejected),
        cmocka_unit_test(generation_older_than_a_day_is_ignored),
        cmocka_unit_test(every_plant_type_has_its_factor),
        cmocka_unit_test(the_scanner_returns_events_in_document_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
