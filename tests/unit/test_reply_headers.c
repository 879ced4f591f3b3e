/* emissions/reply_headers: headers that services and proxies send. */
#include "unit.h"

#include <stdbool.h>
#include <string.h>

#include "core/macros.h"
#include "emissions/reply_headers.h"

#define SECOND USEC_PER_SEC
#define NOW_US UINT64_C(1768473600000000) /* 2026-01-15T10:40Z */

static struct reply_headers take(const char *name, const char *value)
{
    struct reply_headers headers = {0};

    reply_headers_take(&headers, name, value);
    return headers;
}

static void header_names_ignore_case_and_the_last_one_wins(void **state)
{
    struct reply_headers headers = {0};

    (void)state;
    reply_headers_take(&headers, "content-type", "text/html");
    reply_headers_take(&headers, "CONTENT-TYPE", "application/json");
    reply_headers_take(&headers, "etag", "\"a\"");
    reply_headers_take(&headers, "last-modified", "Thu, 15 Jan 2026 09:30:00 GMT");
    reply_headers_take(&headers, "location", "/b");
    reply_headers_take(&headers, "retry-after", "7");
    reply_headers_take(&headers, "x-ratelimit-reset", "8");
    reply_headers_take(&headers, "X-Other", "9");
    assert_string_equal(headers.content_type, "application/json");
    assert_string_equal(headers.etag, "\"a\"");
    assert_string_equal(headers.last_modified, "Thu, 15 Jan 2026 09:30:00 GMT");
    assert_string_equal(headers.location, "/b");
    assert_string_equal(headers.retry_after, "7");
    assert_string_equal(headers.rate_limit_reset, "8");
}

static void long_or_unprintable_headers_are_cut_or_dropped(void **state)
{
    char longest[REPLY_VALIDATOR_BYTES], too_long[REPLY_VALIDATOR_BYTES + 1];
    struct reply_headers headers;

    (void)state;
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    memset(too_long, 'x', sizeof(too_long));
    too_long[sizeof(too_long) - 1] = '\0';
    headers = take("ETag", longest);
    assert_string_equal(headers.etag, longest);
    reply_headers_take(&headers, "ETag", too_long);
    assert_string_equal(headers.etag, "");
    headers = take("Last-Modified", too_long);
    assert_string_equal(headers.last_modified, "");
    headers = take("ETag", "\"a\tb\"");
    assert_string_equal(headers.etag, "");
    headers = take("ETag", "\"\xc3\xa9\"");
    assert_string_equal(headers.etag, "");
    headers = take("Retry-After", too_long);
    assert_string_equal(headers.retry_after, "");
    headers = take("Location", too_long);
    assert_int_equal(strlen(headers.location), sizeof(headers.location) - 1);
    headers = take("Content-Type", "text/\x1b[0m");
    assert_string_equal(headers.content_type, "text/?[0m");
}

static void the_content_type_is_matched_by_its_suffix(void **state)
{
    static const struct {
        const char *type;
        bool json, xml;
    } cases[] = {
        {"", true, true},
        {"application/json", true, false},
        {"Application/JSON", true, false},
        {"application/json; charset=utf-8", true, false},
        {"application/json;charset=utf-8", true, false},
        {"application/json ; charset=utf-8", true, false},
        {"text/json", true, false},
        {"application/problem+json", true, false},
        {"application/geo+json; q=1", true, false},
        {"application/xml", false, true},
        {"text/xml;charset=UTF-8", false, true},
        {"application/atom+xml", false, true},
        {"text/html", false, false},
        {"text/plain", false, false},
        {"application/octet-stream", false, false},
        {"json", false, false},
        {"/json", false, false},
        {"image/json", false, false},
        {"application/notjson", false, false},
        {"text/html; also=application/json", false, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply_headers headers = take("Content-Type", cases[i].type);

        if (reply_headers_allow(&headers, "JSON") != cases[i].json ||
            reply_headers_allow(&headers, "XML") != cases[i].xml)
            fail_msg("'%s'", cases[i].type);
    }
}

static void every_form_of_a_wait_is_parsed_in_either_header(void **state)
{
    static const struct {
        const char *text;
        uint64_t wait_us;
    } cases[] = {
        {"0", 0},
        {"1", SECOND},
        {"120", 120 * SECOND},
        {"999999999", 999999999 * SECOND},
        {"1768473600", 0},      /* now */
        {"1768473601", SECOND}, /* since the epoch */
        {"1768473000", 0},      /* it is over */
        {"1000000000", 0},
        {"18446744073709", 18446744073709 * SECOND - NOW_US},
        {"18446744073710", UINT64_MAX}, /* more microseconds than 64 bits have */
        {"99999999999999999999999", UINT64_MAX},
        {"Thu, 15 Jan 2026 10:41:00 GMT", 60 * SECOND},
        {"Thu, 15 Jan 2026 10:39:00 GMT", 0},
        {"2026-01-15T10:40:30Z", 30 * SECOND},
        {"2026-01-15T11:41:00+01:00", 60 * SECOND},
        {"2026-01-16 00:00:00+00:00", 48000 * SECOND}, /* as Opendatasoft has it */
        {"2026-01-15 00:00:00+00:00", 0},
        {"", 0},
        {"soon", 0},
        {"-1", 0},
        {"1.5", 0},
        {" 1", 0},
        {"2026-01-16", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct reply_headers retry = take("Retry-After", cases[i].text);
        struct reply_headers reset = take("X-RateLimit-Reset", cases[i].text);

        if (reply_headers_wait_us(&retry, NOW_US) != cases[i].wait_us ||
            reply_headers_wait_us(&reset, NOW_US) != cases[i].wait_us)
            fail_msg("'%s' is %ju", cases[i].text,
                     (uintmax_t)reply_headers_wait_us(&retry, NOW_US));
    }
}

static void the_longer_of_two_waits_counts(void **state)
{
    struct reply_headers headers = take("Retry-After", "60");

    (void)state;
    reply_headers_take(&headers, "X-RateLimit-Reset", "1768473720");
    assert_int_equal(reply_headers_wait_us(&headers, NOW_US), 120 * SECOND);
    reply_headers_take(&headers, "Retry-After", "300");
    assert_int_equal(reply_headers_wait_us(&headers, NOW_US), 300 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_names_ignore_case_and_the_last_one_wins),
        cmocka_unit_test(long_or_unprintable_headers_are_cut_or_dropped),
        cmocka_unit_test(the_content_type_is_matched_by_its_suffix),
        cmocka_unit_test(every_form_of_a_wait_is_parsed_in_either_header),
        cmocka_unit_test(the_longer_of_two_waits_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
