/* client/http_client: through the proxy of the environment. A whole tunnel with TLS is in
 * tests/e2e/test_fetcher.py. */
#include "http_client_fixture.h"

#include <errno.h>
#include <stdio.h>

static void forget_proxies(void)
{
    static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "http_proxy", "all_proxy",
                                        "ALL_PROXY",   "no_proxy",    "NO_PROXY"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        unsetenv(names[i]);
}

/* The bench's peer is the proxy, with a user and a password. */
static struct bench *open_proxy(struct peer_script script, const char *variable, const char *url)
{
    struct bench *bench = open_tcp_bench(script);
    char proxy[128];

    forget_proxies();
    snprintf(proxy, sizeof(proxy), "http://someone:hunter2@%s", bench->peer->url + 7);
    setenv(variable, proxy, 1);
    bench->request.url = url;
    bench->request.proxy_by_environment = true;
    return bench;
}

/* Fails with `code` and this in its text, and no secret. */
static void assert_refused(struct bench *bench, int code, const char *why)
{
    int r = ask(bench);

    if (r != code)
        fail_msg("%s instead of %s: %s", strerror(-r), strerror(-code), bench->err.text);
    assert_contains(bench->err.text, "request to https://api.test/");
    assert_contains(bench->err.text, why);
    assert_lacks(bench->err.text, "hunter2");
    assert_lacks(bench->err.text, "someone");
    assert_int_equal(bench->reply.status, 0);
}

static void a_proxy_is_used_on_request(void **state)
{
    static const char *const variables[] = {"http_proxy", "all_proxy", "ALL_PROXY"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
        struct bench *bench = open_proxy(well_behaved, variables[i], "http://api.test/latest");
        _cleanup_free_ char *text = NULL;

        assert_int_equal(ask(bench), 0);
        assert_body(bench, "hello");
        text = heard(bench);
        assert_contains(text, "GET http://api.test/latest HTTP/1.1\r\n");
        assert_contains(text, "Proxy-Authorization: Basic c29tZW9uZTpodW50ZXIy\r\n");
        close_bench(bench);
    }
    forget_proxies();
}

static void a_host_in_no_proxy_is_reached_directly(void **state)
{
    static const char *const variables[] = {"no_proxy", "NO_PROXY"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
        struct bench *bench = open_tcp_bench(well_behaved);
        _cleanup_free_ char *text = NULL;

        forget_proxies();
        setenv("http_proxy", "http://127.0.0.1:1", 1);
        setenv(variables[i], "other.test,127.0.0.1", 1);
        bench->request.proxy_by_environment = true;
        assert_int_equal(ask(bench), 0);
        text = heard(bench);
        assert_contains(text, "GET / HTTP/1.1\r\n");
        close_bench(bench);
    }
    forget_proxies();
}

static void a_proxy_that_requires_a_login_is_named(void **state)
{
    struct bench *bench = open_proxy(
        (struct peer_script){.reply = SPAN("HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic "
                                           "realm=\"hunter2\"\r\nContent-Length: 5\r\n\r\nWho?\n")},
        "https_proxy", "https://api.test/");
    _cleanup_free_ char *text = NULL;

    (void)state;
    assert_refused(bench, -ECONNREFUSED, "(407); write it as http://USER:PASSWORD@HOST:PORT");
    text = heard(bench);
    assert_contains(text, "CONNECT api.test:443 HTTP/1.1\r\n");
    assert_contains(text, "Proxy-Authorization: Basic c29tZW9uZTpodW50ZXIy\r\n");
    close_bench(bench);
    forget_proxies();
}

static void a_refusal_of_the_proxy_has_its_status(void **state)
{
    static const struct {
        struct span reply;
        const char *says;
    } cases[] = {
        {SPAN("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"), "proxy replies with 403"},
        {SPAN("HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"),
         "proxy replies with 302"},
        {SPAN("HTTP/1.0 502 Bad gateway\r\n\r\n"), "proxy replies with 502"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench *bench = open_proxy((struct peer_script){.reply = cases[i].reply},
                                         "HTTPS_PROXY", "https://api.test/");

        assert_refused(bench, -ECONNREFUSED, cases[i].says);
        assert_contains(bench->err.text, "no_proxy");
        close_bench(bench);
    }
    forget_proxies();
}

static void a_missing_proxy_is_suggested_as_the_cause(void **state)
{
    static const struct {
        const char *proxy;
        int code;
        const char *says;
    } cases[] = {
        {"http://someone:hunter2@127.0.0.1:1", -ECONNREFUSED, "connection refused"},
        {"socks5h://someone:hunter2@127.0.0.1:1", -ECONNREFUSED, "connection refused"},
        {"ftp://someone:hunter2@127.0.0.1:1", -EPROTO, "accepts no connection"},
        {"http://someone:hunter2@[::1", -ENOENT, "the proxy's name does not resolve"},
        {"http://someone:hunter2@127.0.0.1:port", -ENOENT, "the proxy's name does not resolve"},
        {"someone hunter2", -ENOENT, "the proxy's name does not resolve"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench *bench = open_bench_with(NULL);

        forget_proxies();
        setenv("https_proxy", cases[i].proxy, 1);
        bench->request.url = "https://api.test/";
        bench->request.proxy_by_environment = true;
        assert_refused(bench, cases[i].code, cases[i].says);
        assert_contains(bench->err.text,
                        "; the environment sets a proxy: is it running, and written as "
                        "http://HOST:PORT?");
        close_bench(bench);
    }
    forget_proxies();
}

static void a_proxy_is_not_blamed_where_there_is_none(void **state)
{
    struct bench *bench = open_bench_with(NULL);

    (void)state;
    forget_proxies();
    setenv("https_proxy", "", 1);
    bench->request.url = "https://127.0.0.1:1/";
    bench->request.proxy_by_environment = true;
    assert_fails(bench, -ECONNREFUSED, "connection refused");
    assert_lacks(bench->err.text, "proxy");
    setenv("https_proxy", "http://127.0.0.1:1", 1);
    bench->request.proxy_by_environment = false;
    assert_fails(bench, -ECONNREFUSED, "connection refused");
    assert_lacks(bench->err.text, "proxy");
    close_bench(bench);
    forget_proxies();
}

static void a_server_that_is_not_a_proxy_is_an_error(void **state)
{
    static const struct peer_script scripts[] = {
        {.reply = SPAN("SSH-2.0-OpenSSH_9.2\r\n"), .end = PEER_CLOSES},
        {.reply = SPAN("HTTP/1.1 200 OK\r\n\r\n"), .end = PEER_CLOSES},
        {.reply = SPAN(""), .end = PEER_RESETS},
        {.repeat = SPAN("X-Header: and another one, and so on\r\n"),
         .reply = SPAN("HTTP/1.1 200 OK\r\n")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        struct bench *bench = open_proxy(scripts[i], "https_proxy", "https://api.test/");
        int r;

        bench->request.timeout_us = 2 * SECOND;
        r = ask(bench);
        if (r >= 0)
            fail_msg("case %zu was taken for a tunnel", i);
        assert_lacks(bench->err.text, "hunter2");
        close_bench(bench);
    }
    forget_proxies();
}

static void a_connect_timeout_is_named(void **state)
{
    struct bench *bench =
        open_proxy((struct peer_script){.end = PEER_HOLDS}, "https_proxy", "https://api.test/");
    char url[64];

    (void)state;
    bench->request.connect_timeout_us = 200 * MS;
    assert_refused(bench, -ETIMEDOUT, "no connection within 0.2 s; the environment sets a proxy");
    assert_in_range(bench->took_us, 200 * MS, 200 * MS + LATE);
    /* The handshake counts. */
    forget_proxies();
    snprintf(url, sizeof(url), "https://%s/", bench->peer->url + 7);
    bench->request.url = url;
    assert_int_equal(ask(bench), -ETIMEDOUT);
    assert_contains(bench->err.text, "no connection within 0.2 s");
    assert_lacks(bench->err.text, "proxy");
    assert_in_range(bench->took_us, 200 * MS, 200 * MS + LATE);
    close_bench(bench);
}

static void a_reply_may_take_longer_than_the_connect_timeout(void **state)
{
    struct bench *bench = open_tcp_bench((struct peer_script){.end = PEER_HOLDS});

    (void)state;
    bench->request.connect_timeout_us = 1 * SECOND;
    bench->request.timeout_us = 1500 * MS;
    assert_fails(bench, -ETIMEDOUT, "no complete reply within 1.5 s");
    assert_in_range(bench->took_us, 1500 * MS, 1500 * MS + LATE);
    close_bench(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proxy_is_used_on_request),
        cmocka_unit_test(a_host_in_no_proxy_is_reached_directly),
        cmocka_unit_test(a_proxy_that_requires_a_login_is_named),
        cmocka_unit_test(a_refusal_of_the_proxy_has_its_status),
        cmocka_unit_test(a_missing_proxy_is_suggested_as_the_cause),
        cmocka_unit_test(a_proxy_is_not_blamed_where_there_is_none),
        cmocka_unit_test(a_server_that_is_not_a_proxy_is_an_error),
        cmocka_unit_test(a_connect_timeout_is_named),
        cmocka_unit_test(a_reply_may_take_longer_than_the_connect_timeout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
