/* net/routes: which page a request gets, in which format and encoding. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "net/routes.h"

static struct route_decision decide(const char *method, const char *path, const char *accept,
                                    const char *accept_encoding, const char *metrics_path)
{
    struct route_request request = {method, path, accept, accept_encoding};

    return routes_decide(&request, metrics_path, false);
}

static enum route route_of(const char *method, const char *path)
{
    return decide(method, path, NULL, NULL, "/metrics").route;
}

static void every_path_has_its_route(void **state)
{
    (void)state;
    assert_int_equal(route_of("GET", "/"), ROUTE_LANDING);
    assert_int_equal(route_of("GET", "/metrics"), ROUTE_METRICS);
    assert_int_equal(route_of("GET", "/-/healthy"), ROUTE_HEALTHY);
    assert_int_equal(route_of("GET", "/health"), ROUTE_HEALTHY);
    assert_int_equal(route_of("GET", "/-/ready"), ROUTE_READY);
    assert_int_equal(route_of("GET", "/api/v1/node"), ROUTE_API);
    assert_int_equal(route_of("GET", "/api/v1/nodes"), ROUTE_NOT_FOUND);
    assert_int_equal(route_of("GET", "/metrics/"), ROUTE_NOT_FOUND);
    assert_int_equal(route_of("GET", "/Metrics"), ROUTE_NOT_FOUND);
    assert_int_equal(route_of("GET", ""), ROUTE_NOT_FOUND);
}

static void only_get_and_head_are_allowed(void **state)
{
    (void)state;
    assert_int_equal(route_of("HEAD", "/metrics"), ROUTE_METRICS);
    assert_int_equal(route_of("POST", "/metrics"), ROUTE_METHOD_NOT_ALLOWED);
    assert_int_equal(route_of("get", "/metrics"), ROUTE_METHOD_NOT_ALLOWED);
    assert_int_equal(route_of("DELETE", "/nowhere"), ROUTE_METHOD_NOT_ALLOWED);
    assert_int_equal(route_of("", "/"), ROUTE_METHOD_NOT_ALLOWED);
}

static void the_metrics_path_wins_over_the_landing_page(void **state)
{
    (void)state;
    assert_int_equal(decide("GET", "/", NULL, NULL, "/").route, ROUTE_METRICS);
    assert_int_equal(decide("GET", "/metrics", NULL, NULL, "/").route, ROUTE_NOT_FOUND);
    assert_int_equal(decide("GET", "/-/ready", NULL, NULL, "/").route, ROUTE_READY);
    assert_int_equal(decide("GET", "/power", NULL, NULL, "/power").route, ROUTE_METRICS);
}

static void the_format_follows_the_accept_header(void **state)
{
    static const struct {
        const char *accept;
        enum page_format format;
    } cases[] = {
        {NULL, PAGE_TEXT},
        {"", PAGE_TEXT},
        {"*/*", PAGE_TEXT},
        {"text/plain", PAGE_TEXT},
        {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", PAGE_TEXT},
        /* Prometheus 2.42, and 3.x */
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         PAGE_OPENMETRICS},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
         "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;"
         "escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
         PAGE_OPENMETRICS},
        {"application/vnd.google.protobuf;encoding=delimited;q=0.6,"
         "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;q=0.2",
         PAGE_OPENMETRICS},
        {"application/openmetrics-text", PAGE_OPENMETRICS},
        {"Application/OpenMetrics-Text; Version=\"1.0.0\" ; Q=1.000", PAGE_OPENMETRICS},
        {"application/openmetrics-text;version=2.0.0", PAGE_TEXT},
        {"application/openmetrics-text;version=2.0.0, application/openmetrics-text",
         PAGE_OPENMETRICS},
        /* A tie goes to OpenMetrics only where it is named. */
        {"text/plain, application/openmetrics-text", PAGE_OPENMETRICS},
        {"text/plain, application/*", PAGE_TEXT},
        {"text/plain;q=0.5, application/*", PAGE_OPENMETRICS},
        {"*/*, application/openmetrics-text;q=0.9", PAGE_TEXT},
        {"text/*;q=0.3, application/openmetrics-text;q=0.3", PAGE_OPENMETRICS},
        {"text/plain;q=0.9, application/openmetrics-text;q=0.8", PAGE_TEXT},
        {"text/plain;q=0.001, application/openmetrics-text;q=0.002", PAGE_OPENMETRICS},
        /* q=0 excludes, and the more specific element decides. */
        {"application/openmetrics-text;q=0, */*", PAGE_TEXT},
        {"application/openmetrics-text;q=0", PAGE_TEXT},
        {"text/plain;q=0, */*", PAGE_OPENMETRICS},
        {"text/plain;q=0, text/*;q=1, application/openmetrics-text;q=0.1", PAGE_OPENMETRICS},
        {"text/plain;q=0, application/openmetrics-text;q=0", PAGE_TEXT},
        {"image/png", PAGE_TEXT},
        /* Garbage is passed over, element by element. */
        {",,;;q=,=;", PAGE_TEXT},
        {"application/openmetrics-text;q=2", PAGE_TEXT},
        {"application/openmetrics-text;q=1.001", PAGE_TEXT},
        {"application/openmetrics-text;q=.5", PAGE_TEXT},
        {"application/openmetrics-text;q=0.1234", PAGE_TEXT},
        {"application/openmetrics-text;q=-1", PAGE_TEXT},
        {"application/openmetrics-text;q=0,5", PAGE_TEXT},
        {"application/openmetrics-text;q=nan, text/plain;q=0.1", PAGE_TEXT},
        {"application/openmetrics-textual", PAGE_TEXT},
        {"\xff\xfe\x01, application/openmetrics-text", PAGE_OPENMETRICS},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (decide("GET", "/metrics", cases[i].accept, NULL, "/metrics").format != cases[i].format)
            fail_msg("wrong format for Accept: %s", cases[i].accept);
}

static void text_only_is_text_whatever_is_accepted(void **state)
{
    static const char *const accepts[] = {
        NULL,
        "",
        "application/openmetrics-text",
        "application/openmetrics-text;version=1.0.0,text/plain;q=0",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
        "encoding=delimited",
        "image/png",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(accepts); i++) {
        struct route_request request = {"GET", "/metrics", accepts[i], "gzip"};
        struct route_decision decision = routes_decide(&request, "/metrics", true);

        assert_int_equal(decision.route, ROUTE_METRICS);
        assert_int_equal(decision.format, PAGE_TEXT);
        assert_int_equal(decision.encoding, PAGE_GZIP);
    }
}

static void the_encoding_follows_the_accept_encoding_header(void **state)
{
    static const struct {
        const char *accept_encoding;
        enum page_encoding encoding;
    } cases[] = {
        {NULL, PAGE_IDENTITY},
        {"", PAGE_IDENTITY},
        {"gzip", PAGE_GZIP},
        {"GZip", PAGE_GZIP},
        {"x-gzip", PAGE_GZIP},
        {"gzip;q=0.001", PAGE_GZIP},
        {"gzip;q=0", PAGE_IDENTITY},
        {"gzip;q=0.000", PAGE_IDENTITY},
        {"*", PAGE_GZIP},
        {"*;q=0", PAGE_IDENTITY},
        {"*, gzip;q=0", PAGE_IDENTITY},
        {"gzip;q=0, *", PAGE_IDENTITY},
        {"*;q=0, gzip;q=0.1", PAGE_GZIP},
        {"deflate, br", PAGE_IDENTITY},
        {"deflate, gzip;q=1.0, *;q=0.5", PAGE_GZIP},
        {"identity", PAGE_IDENTITY},
        {"gzipped", PAGE_IDENTITY},
        {"gzip;q=x", PAGE_IDENTITY},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (decide("GET", "/metrics", NULL, cases[i].accept_encoding, "/metrics").encoding !=
            cases[i].encoding)
            fail_msg("wrong encoding for Accept-Encoding: %s", cases[i].accept_encoding);
}

static void an_oversized_header_counts_as_absent(void **state)
{
    char *header = malloc(8192);

    (void)state;
    assert_non_null(header);
    memset(header, ' ', 8191);
    header[8191] = '\0';
    memcpy(header, "application/openmetrics-text", 28);
    assert_int_equal(decide("GET", "/metrics", header, NULL, "/metrics").format, PAGE_TEXT);
    header[4096] = '\0';
    assert_int_equal(decide("GET", "/metrics", header, NULL, "/metrics").format, PAGE_OPENMETRICS);
    free(header);
}

static void elements_beyond_the_cap_are_not_read(void **state)
{
    char header[4096] = "";

    (void)state;
    for (int i = 0; i < 64; i++)
        strcat(header, "br,");
    strcat(header, "gzip");
    assert_int_equal(decide("GET", "/metrics", NULL, header, "/metrics").encoding, PAGE_IDENTITY);
    assert_int_equal(decide("GET", "/metrics", NULL, header + 3, "/metrics").encoding, PAGE_GZIP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_has_its_route),
        cmocka_unit_test(only_get_and_head_are_allowed),
        cmocka_unit_test(the_metrics_path_wins_over_the_landing_page),
        cmocka_unit_test(the_format_follows_the_accept_header),
        cmocka_unit_test(text_only_is_text_whatever_is_accepted),
        cmocka_unit_test(the_encoding_follows_the_accept_encoding_header),
        cmocka_unit_test(an_oversized_header_counts_as_absent),
        cmocka_unit_test(elements_beyond_the_cap_are_not_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
