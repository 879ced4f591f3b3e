/* net/request_check: which requests are malformed, and that no byte of a head goes unseen. */
#include "unit.h"

#include <string.h>

#include "core/macros.h"
#include "net/request_check.h"

static bool is_target(const char *target)
{
    struct request_check check = {0};

    request_check_add_target(&check, span_of(target));
    return !check.is_malformed;
}

static void a_target_is_a_path_or_an_absolute_uri(void **state)
{
    static const char *const good[] = {
        "/",
        "/metrics",
        "/metrics?a=b&c=%20d",
        "/%6detrics",
        "http://x/metrics",
        "HTTP://",
        "https://[::1]:9400",
        "*",
        "/a{b}|c\"<d>^`",
        "/metrics?[]=%Ff",
    };
    static const char *const bad[] = {
        "",        "metrics",    "x:9400",      "%2fmetrics", "ftp://x/", "/metrics%00x",
        "/?a=%00", "/metrics%7", "/metrics%zz", "/metrics%",  "/a b",     "/metrics#",
        "/\x7f",   "/\xff",      "/\t",         "**",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        if (!is_target(good[i]))
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        if (is_target(bad[i]))
            fail_msg("%s is accepted", bad[i]);
}

struct field {
    const char *name, *value;
};

static bool is_head(const char *version, const struct field *fields, size_t count)
{
    struct request_check check = {0};

    request_check_add_target(&check, span_of("/metrics"));
    for (size_t i = 0; i < count; i++)
        request_check_add_field(&check, span_of(fields[i].name), span_of(fields[i].value));
    return !request_check_is_malformed(&check, span_of(version));
}

#define IS_HEAD(version, ...)                                                                      \
    is_head(version, (const struct field[]){__VA_ARGS__},                                          \
            ARRAY_SIZE(((const struct field[]){__VA_ARGS__})))

static void there_is_one_host_and_at_most_one_length(void **state)
{
    (void)state;
    assert_true(IS_HEAD("HTTP/1.1", {"Host", "x"}));
    assert_true(IS_HEAD("HTTP/1.1", {"HOST", ""}));
    assert_true(IS_HEAD("HTTP/1.0", {"Accept", "*/*"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Accept", "*/*"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "x"}, {"hOST", "x"}));
    assert_false(IS_HEAD("HTTP/1.0", {"Host", "x"}, {"Host", "y"}));
    assert_true(IS_HEAD("HTTP/1.1", {"Host", "x"}, {"Content-Length", "0"}));
    assert_false(
        IS_HEAD("HTTP/1.1", {"Host", "x"}, {"Content-Length", "0"}, {"content-length", "0"}));
    assert_false(
        IS_HEAD("HTTP/1.1", {"Host", "x"}, {"Content-Length", "0"}, {"Transfer-Encoding", "x"}));
    assert_false(
        IS_HEAD("HTTP/1.1", {"Host", "x"}, {"Transfer-Encoding", "x"}, {"Transfer-Encoding", "x"}));
}

static void names_and_values_have_only_the_characters_of_the_standard(void **state)
{
    (void)state;
    assert_true(IS_HEAD("HTTP/1.1", {"Host", "[fe80::1]:9400"}, {"X-a_b.c~", "caf\xc3\xa9 \t ok"}));
    assert_true(IS_HEAD("HTTP/1.1", {"Host", "x \t"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "x y"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "x"}, {"Content-Length ", "0"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "x"}, {"A\t", "b"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "x"}, {"", "b"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "x"}, {"A", "\x01"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "x"}, {"A", "b\rC: d"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "a b"}));
    assert_false(IS_HEAD("HTTP/1.1", {"Host", "a/b"}));
}

static bool hides_bytes(const char *head)
{
    struct request_check check = {0};

    request_check_add_target(&check, span_of("/metrics"));
    request_check_add_field(&check, span_of("Host"), span_of("x"));
    return request_check_has_hidden_bytes(&check, span_of("GET"), span_of("HTTP/1.1"),
                                          strlen(head));
}

static void bytes_that_were_not_understood_are_noticed(void **state)
{
    (void)state;
    assert_false(hides_bytes("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_true(hides_bytes("GET /metrics. HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_true(hides_bytes("GET /metrics HTTP/1.1\r\nHost: x\n\r\n"));
    assert_true(hides_bytes("GET /metrics HTTP/1.1\r\nHost: x\r\n: \r\n"));
    assert_true(hides_bytes("GET /metrics HTTP/1.1\r\nHost: x\r\n y\r\n\r\n"));
}

static void the_path_of_an_absolute_uri_follows_its_authority(void **state)
{
    (void)state;
    assert_string_equal(request_check_path("/metrics"), "/metrics");
    assert_string_equal(request_check_path("http://x:9400/metrics"), "/metrics");
    assert_string_equal(request_check_path("HTTPS://x/"), "/");
    assert_string_equal(request_check_path("http://x"), "/");
    assert_string_equal(request_check_path("*"), "*");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_is_a_path_or_an_absolute_uri),
        cmocka_unit_test(there_is_one_host_and_at_most_one_length),
        cmocka_unit_test(names_and_values_have_only_the_characters_of_the_standard),
        cmocka_unit_test(bytes_that_were_not_understood_are_noticed),
        cmocka_unit_test(the_path_of_an_absolute_uri_follows_its_authority),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
