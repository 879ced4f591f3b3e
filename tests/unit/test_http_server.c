/* net/http_server: what clients get, whatever they send and however slowly. */
#include "http_bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/un.h>

static void a_scrape_gets_the_body_with_its_content_type(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_int_equal(bench->fetch_count, 1);
    assert_int_equal(bench->have_generation, 0);
    assert_string_equal(receive_text(fd, text, sizeof(text)), "");
    deliver(bench, 5, "up 1\n");
    receive_text(fd, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 OK\r\n");
    assert_contains(text, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
    assert_contains(text, "Vary: Accept, Accept-Encoding\r\n");
    assert_contains(text, "Content-Length: 5\r\n");
    assert_contains(text, "\r\n\r\nup 1\n");
    assert_lacks(text, "Content-Encoding");
    close(fd);
    close_bench(bench);
}

static void a_gzip_openmetrics_scrape_fetches_that_page_and_declares_it(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n"
                  "Accept-Encoding: gzip\r\n\r\n");
    settle(bench);
    assert_int_equal(bench->format, PAGE_OPENMETRICS);
    assert_int_equal(bench->encoding, PAGE_GZIP);
    deliver(bench, 5, "\x1f\x8b...");
    receive_text(fd, text, sizeof(text));
    assert_contains(text, "Content-Encoding: gzip\r\n");
    assert_contains(text, "Content-Type: application/openmetrics-text; version=1.0.0;");
    close(fd);
    close_bench(bench);
}

static void an_unchanged_body_is_served_again_without_a_new_one(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    deliver(bench, 5, "up 1\n");
    assert_contains(receive_text(fd, text, sizeof(text)), "up 1\n");
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); /* on the same connection */
    settle(bench);
    assert_int_equal(bench->fetch_count, 2);
    assert_int_equal(bench->have_generation, 5);
    assert_int_equal(
        http_server_answer(bench->server, PAGE_TEXT, PAGE_IDENTITY, HTTP_SERVER_UNCHANGED), 0);
    settle(bench);
    assert_contains(receive_text(fd, text, sizeof(text)), "up 1\n");
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    deliver(bench, 6, "up 2\n");
    assert_contains(receive_text(fd, text, sizeof(text)), "up 2\n");
    close(fd);
    close_bench(bench);
}

static void scrapes_that_come_together_share_one_fetch(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fds[6];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = dial(bench);
        send_text(fds[i], "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    settle(bench);
    assert_int_equal(bench->fetch_count, 1);
    deliver(bench, 1, "up 1\n");
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        assert_contains(receive_text(fds[i], text, sizeof(text)), "\r\n\r\nup 1\n");
        close(fds[i]);
    }
    close_bench(bench);
}

static void a_reader_in_the_middle_of_a_body_is_not_disturbed_by_a_newer_one(void **state)
{
    enum { BODY_BYTES = 16 * 1024 * 1024 };
    struct bench *bench = open_bench();
    char *body = malloc(BODY_BYTES + 1), *heard = malloc(BODY_BYTES + 4096);
    int slow = dial(bench), other = dial(bench);
    size_t len = 0;

    (void)state;
    assert_non_null(body);
    assert_non_null(heard);
    memset(body, 'a', BODY_BYTES);
    body[BODY_BYTES] = '\0';
    send_text(slow, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    deliver(bench, 1, body);
    assert_true(http_server_busy(bench->server));
    send_text(other, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    deliver(bench, 2, "up 2\n");
    while (len < BODY_BYTES) {
        int flags = http_server_busy(bench->server) ? MSG_DONTWAIT : 0;
        ssize_t n = recv(slow, heard + len, BODY_BYTES + 4095 - len, flags);

        assert_true(n > 0 || (n < 0 && errno == EAGAIN));
        len += n > 0 ? (size_t)n : 0;
        settle(bench);
    }
    receive_text(slow, heard + len, 4096);
    len += strlen(heard + len);
    heard[len] = '\0';
    assert_string_equal(strstr(heard, "\r\n\r\n") + 4, body);
    free(body);
    free(heard);
    close(slow);
    close(other);
    close_bench(bench);
}

static void a_stuck_collector_gives_503_after_two_seconds_and_is_not_asked_twice(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_int_equal(http_server_timeout_ms(bench->server), 2000);
    advance(bench, 2 * USEC_PER_SEC - 1);
    assert_string_equal(receive_text(fd, text, sizeof(text)), "");
    advance(bench, 1);
    receive_text(fd, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 503 ");
    assert_contains(text, "the collector does not answer");
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_int_equal(bench->fetch_count, 1);
    deliver(bench, 1, "up 1\n"); /* it wakes up */
    assert_contains(receive_text(fd, text, sizeof(text)), "up 1\n");
    close(fd);
    close_bench(bench);
}

static void a_collector_that_cannot_be_asked_gives_503_at_once(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];

    (void)state;
    bench->fetch_result = -EAGAIN;
    ask_once(bench, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "HTTP/1.1 503 ");
    close_bench(bench);
}

static void nothing_measured_yet_gives_503(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_int_equal(
        http_server_answer(bench->server, PAGE_TEXT, PAGE_IDENTITY, HTTP_SERVER_NOT_READY), 0);
    settle(bench);
    receive_text(fd, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 503 ");
    assert_contains(text, "nothing has been measured yet");
    close(fd);
    close_bench(bench);
}

static void readiness_needs_a_page_and_health_does_not(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_int_equal(
        http_server_answer(bench->server, PAGE_TEXT, PAGE_IDENTITY, HTTP_SERVER_NOT_READY), 0);
    settle(bench);
    assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 503 ");
    ask_once(bench, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    ask_once(bench, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    send_text(fd, "GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    deliver(bench, 1, "up 1\n");
    receive_text(fd, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    assert_contains(text, "\r\n\r\nready\n");
    close(fd);
    close_bench(bench);
}

static void assert_status(struct bench *bench, const char *path, const char *status)
{
    char request[64], text[4096];

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    ask_once(bench, request, text, sizeof(text));
    assert_contains(text, status);
}

static void without_a_sign_of_life_for_15_s_health_readiness_and_metrics_fail(void **state)
{
    static const char no_answer[] = "the collector does not answer";
    struct bench *bench = open_bench();
    size_t fetch_count;

    (void)state;
    advance(bench, 15 * USEC_PER_SEC - 1);
    assert_false(http_server_is_silent(bench->server));
    assert_status(bench, "/-/healthy", "HTTP/1.1 200 ");
    assert_status(bench, "/health", "HTTP/1.1 200 ");
    fetch_count = bench->fetch_count;
    advance(bench, 1);
    assert_true(http_server_is_silent(bench->server));
    assert_status(bench, "/-/healthy", no_answer);
    assert_status(bench, "/-/healthy", "HTTP/1.1 503 ");
    assert_status(bench, "/health", no_answer);
    assert_status(bench, "/-/ready", no_answer);
    assert_status(bench, "/metrics", no_answer);
    assert_int_equal(bench->fetch_count, fetch_count);
    assert_status(bench, "/", "HTTP/1.1 200 ");
    http_server_note_life(bench->server);
    assert_false(http_server_is_silent(bench->server));
    assert_status(bench, "/-/healthy", "HTTP/1.1 200 ");
    close_bench(bench);
}

static void an_answer_without_a_request_is_a_protocol_error(void **state)
{
    struct bench *bench = open_bench();

    (void)state;
    assert_int_equal(http_server_deliver(bench->server, PAGE_TEXT, PAGE_GZIP, 1, 0, 1), -EPROTO);
    assert_int_equal(http_server_answer(bench->server, PAGE_TEXT, PAGE_GZIP, HTTP_SERVER_UNCHANGED),
                     -EPROTO);
    assert_int_equal(http_server_answer(bench->server, PAGE_TEXT, PAGE_GZIP, HTTP_SERVER_FAILED),
                     -EPROTO);
    close_bench(bench);
}

static void a_head_request_gets_the_headers_alone(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    deliver(bench, 1, "up 1\n");
    receive_text(fd, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    assert_contains(text, "Content-Length: 5\r\n");
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
    close(fd);
    close_bench(bench);
}

static void unknown_paths_and_methods_are_refused(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];

    (void)state;
    ask_once(bench, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "HTTP/1.1 404 ");
    ask_once(bench, "DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "HTTP/1.1 405 ");
    assert_contains(text, "Allow: GET, HEAD\r\n");
    assert_int_equal(bench->fetch_count, 0);
    close_bench(bench);
}

static const char policy[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n";

static void the_landing_page_escapes_what_it_shows_and_runs_only_our_scripts(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];

    (void)state;
    ask_once(bench, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "<p>1.0&lt;beta&gt; &amp; &quot;co&quot;<a href=\"/metrics\">metrics</a>"
                          "{{other}}");
    assert_contains(text, "Content-Type: text/html; charset=utf-8\r\n");
    assert_contains(text, "X-Content-Type-Options: nosniff\r\n");
    assert_contains(text, "Referrer-Policy: no-referrer\r\n");
    assert_contains(text, "Cache-Control: no-cache\r\n");
    assert_contains(text, policy);
    close_bench(bench);
}

static void assets_come_with_their_type_policy_and_etag(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];

    (void)state;
    ask_once(bench, "GET /page/a.js HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    assert_contains(text, "Content-Type: text/javascript; charset=utf-8\r\n");
    assert_contains(text, "X-Content-Type-Options: nosniff\r\n");
    assert_contains(text, "ETag: \"2\"\r\n");
    assert_contains(text, "Vary: Accept-Encoding\r\n");
    assert_contains(text, "Cache-Control: no-cache\r\n");
    assert_contains(text, policy);
    assert_contains(text, "\r\n\r\nf()");
    assert_lacks(text, "Content-Encoding");
    ask_once(bench, "GET /page/a.js HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, br\r\n\r\n", text,
             sizeof(text));
    assert_contains(text, "Content-Encoding: gzip\r\n");
    assert_contains(text, "ETag: \"2-gzip\"\r\n");
    assert_contains(text, "\r\n\r\n\x1f\x8b");
    ask_once(bench, "GET /page/b.js HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "HTTP/1.1 404 ");
    close_bench(bench);
}

static void an_asset_that_the_browser_has_is_not_sent_again(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];

    (void)state;
    ask_once(bench, "GET /page/a.css HTTP/1.1\r\nHost: x\r\nIf-None-Match: \"1\"\r\n\r\n", text,
             sizeof(text));
    assert_contains(text, "HTTP/1.1 304 ");
    assert_contains(text, "ETag: \"1\"\r\n");
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
    ask_once(bench,
             "GET /page/a.css HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n"
             "If-None-Match: \"1\"\r\n\r\n",
             text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    close_bench(bench);
}

static void a_request_with_a_body_is_refused_and_closed(void **state)
{
    static const char *const requests[] = {
        "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\nabc",
        "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
        "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    };
    struct bench *bench = open_bench();
    char text[4096];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        int fd = dial(bench);

        send_text(fd, requests[i]);
        settle(bench);
        assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 413 ");
        assert_true(is_closed(fd));
        close(fd);
    }
    close_bench(bench);
}

static void headers_over_16_kib_are_refused_and_closed(void **state)
{
    static const size_t sizes[] = {17 * 1024, 30 * 1024, 64 * 1024};
    struct bench *bench = open_bench();
    char text[4096], *request = malloc(70 * 1024);

    (void)state;
    assert_non_null(request);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        int fd = dial(bench);

        strcpy(request, "GET / HTTP/1.1\r\nHost: x\r\nCookie: ");
        memset(request + strlen(request), 'a', sizes[i]);
        strcpy(request + 33 + sizes[i], "\r\n\r\n");
        (void)!send(fd, request, strlen(request), MSG_NOSIGNAL | MSG_DONTWAIT);
        settle(bench);
        assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 4");
        assert_true(is_closed(fd));
        close(fd);
    }
    strcpy(request, "GET / HTTP/1.1\r\nHost: x\r\nCookie: ");
    memset(request + strlen(request), 'a', 15 * 1024);
    strcpy(request + 33 + 15 * 1024, "\r\n\r\n");
    ask_once(bench, request, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    free(request);
    close_bench(bench);
}

static void garbage_is_refused(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "\x16\x03\x01\x02\x00\x01\xff\xfe\r\n\r\n\r\n\r\n");
    settle(bench);
    assert_lacks(receive_text(fd, text, sizeof(text)), " 200 ");
    advance(bench, 5 * USEC_PER_SEC);
    assert_true(is_closed(fd));
    close(fd);
    close_bench(bench);
}

static void a_client_that_drips_its_headers_is_cut_after_five_seconds(void **state)
{
    struct bench *bench = open_bench();
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /metr");
    settle(bench);
    for (int i = 0; i < 4; i++) {
        send_text(fd, "i");
        advance(bench, USEC_PER_SEC);
        assert_false(is_closed(fd));
    }
    assert_int_equal(http_server_timeout_ms(bench->server), 1000);
    advance(bench, USEC_PER_SEC);
    assert_true(is_closed(fd));
    assert_int_equal(http_server_timeout_ms(bench->server), -1);
    close(fd);
    close_bench(bench);
}

static void a_kept_connection_may_idle_two_minutes_between_requests(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    advance(bench, 119 * USEC_PER_SEC);
    receive_text(fd, text, sizeof(text));
    http_server_note_life(bench->server);
    send_text(fd, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 200 ");
    send_text(fd, "GET /heal");
    advance(bench, 119 * USEC_PER_SEC);
    assert_false(is_closed(fd));
    advance(bench, USEC_PER_SEC);
    assert_true(is_closed(fd));
    close(fd);
    close_bench(bench);
}

static void a_client_that_does_not_read_is_cut_after_thirty_seconds(void **state)
{
    enum { BODY_BYTES = 32 * 1024 * 1024 };
    struct bench *bench = open_bench();
    char *body = malloc(BODY_BYTES + 1);
    int fd = dial(bench);

    (void)state;
    assert_non_null(body);
    memset(body, 'a', BODY_BYTES);
    body[BODY_BYTES] = '\0';
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    deliver(bench, 1, body);
    advance(bench, 29 * USEC_PER_SEC);
    assert_true(http_server_busy(bench->server));
    advance(bench, USEC_PER_SEC);
    assert_false(http_server_busy(bench->server));
    assert_int_equal(http_server_timeout_ms(bench->server), -1);
    free(body);
    close(fd);
    close_bench(bench);
}

static void at_the_limit_the_longest_waiting_connection_makes_room(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int idle[3 * CONNECTIONS_MAX], scraper;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
        idle[i] = dial(bench);
        advance(bench, 1000);
    }
    scraper = dial(bench);
    send_text(scraper, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_int_equal(bench->fetch_count, 1);
    /* The scraper waits for its body, not for itself: newcomers do not push it out. */
    for (int i = 0; i < 2 * CONNECTIONS_MAX; i++) {
        int newcomer = dial(bench);

        settle(bench);
        close(newcomer);
    }
    deliver(bench, 1, "up 1\n");
    assert_contains(receive_text(scraper, text, sizeof(text)), "up 1\n");
    assert_true(is_closed(idle[0]));
    for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
        close(idle[i]);
    close(scraper);
    close_bench(bench);
}

static void where_all_are_busy_the_slowest_reader_makes_room_for_a_scrape(void **state)
{
    enum { BODY_BYTES = 32 * 1024 * 1024 };
    struct bench *bench = open_bench();
    char *body = malloc(BODY_BYTES + 1), text[4096];
    int slow[2 * CONNECTIONS_MAX], scraper;

    (void)state;
    assert_non_null(body);
    memset(body, 'a', BODY_BYTES);
    body[BODY_BYTES] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
        slow[i] = dial(bench);
        send_text(slow[i], "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    settle(bench);
    deliver(bench, 1, body);
    for (int i = 0; i < CONNECTIONS_MAX; i++) { /* those that wait in the backlog get their turn */
        advance(bench, USEC_PER_SEC);
        if (http_server_answer(bench->server, PAGE_TEXT, PAGE_IDENTITY, HTTP_SERVER_UNCHANGED) == 0)
            settle(bench);
    }
    scraper = dial(bench);
    send_text(scraper, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_contains(receive_text(scraper, text, sizeof(text)), "HTTP/1.1 200 ");
    for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
        close(slow[i]);
    free(body);
    close(scraper);
    close_bench(bench);
}

static void slow_readers_cannot_hold_a_body_of_every_generation(void **state)
{
    enum { BODY_BYTES = 16 * 1024 * 1024, READERS = 12 };
    struct bench *bench = open_bench_for(2 * READERS);
    char *body = malloc(BODY_BYTES + 1), text[4096];
    int slow[READERS];

    (void)state;
    assert_non_null(body);
    memset(body, 'a', BODY_BYTES);
    body[BODY_BYTES] = '\0';
    for (size_t i = 0; i < READERS; i++) {
        slow[i] = dial(bench);
        send_text(slow[i], "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        settle(bench);
        deliver(bench, i + 1, body);
    }
    for (size_t i = 0; i < READERS; i++) {
        while (*receive_text(slow[i], text, sizeof(text)))
            ;
        settle(bench);
        assert_int_equal(is_closed(slow[i]), i < READERS - 8);
        close(slow[i]);
    }
    free(body);
    close_bench(bench);
}

static void running_out_of_descriptors_pauses_accepting_instead_of_spinning(void **state)
{
    struct bench *bench = open_bench();
    struct rlimit before, none;
    char text[4096];
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){3, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    settle(bench);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(receive_text(fd, text, sizeof(text)), "");
    assert_int_equal(http_server_timeout_ms(bench->server), 100);
    advance(bench, USEC_PER_SEC / 10);
    assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 200 ");
    close(fd);
    close_bench(bench);
}

static void a_client_that_leaves_while_it_waits_costs_nothing(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int leaver = dial(bench), stayer = dial(bench);

    (void)state;
    send_text(leaver, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    send_text(stayer, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    close(leaver);
    settle(bench);
    deliver(bench, 1, "up 1\n");
    assert_contains(receive_text(stayer, text, sizeof(text)), "up 1\n");
    close(stayer);
    settle(bench);
    assert_int_equal(http_server_timeout_ms(bench->server), -1);
    close_bench(bench);
}

static void a_draining_server_finishes_responses_and_accepts_no_connection(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int waiting = dial(bench), late;

    (void)state;
    send_text(waiting, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    http_server_drain(bench->server);
    settle(bench);
    assert_contains(receive_text(waiting, text, sizeof(text)), "HTTP/1.1 503 ");
    assert_false(http_server_busy(bench->server));
    late = dial(bench);
    send_text(late, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_string_equal(receive_text(late, text, sizeof(text)), "");
    close(waiting);
    close(late);
    close_bench(bench);
}

static void closing_with_scrapes_that_wait_is_safe(void **state)
{
    struct bench *bench = open_bench();
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    close_bench(bench);
    close(fd);
}

static void a_unix_socket_is_served_like_any_other(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct bench *bench;
    char text[4096];

    (void)state;
    /* Autobind: an abstract name that the kernel picks. */
    bench = open_bench_at((struct sockaddr *)&address, sizeof(sa_family_t), CONNECTIONS_MAX);
    ask_once(bench, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    close_bench(bench);
}

/* Of "hunter2". */
static const struct auth_user alice = {
    "alice", "$2b$04$kddmW3/WKIOo31gAQg6EFeAaeVhyi0qUjxJBOa53FmqDmKqSQYoN6"};

#define RIGHT                                                                                      \
    "GET /-/healthy HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2U6aHVudGVyMg==\r\n\r\n"
#define WRONG                                                                                      \
    "GET /-/healthy HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWxpY2U6aHVudGVyMw==\r\n\r\n"

static struct bench *open_bench_with(struct auth **ret_auth)
{
    struct bench *bench = open_bench();

    assert_int_equal(auth_new(NULL, ret_auth), 0);
    assert_int_equal(auth_set_users(*ret_auth, &alice, 1), 0);
    assert_int_equal(http_server_set_auth(bench->server, *ret_auth), 0);
    return bench;
}

/* Until the thread has checked the password that is on its way: that may be at once, and then the
 * server has taken the result already. */
static void wait_for_check(struct bench *bench, const struct auth *auth, int client_fd)
{
    settle(bench);
    for (;;) {
        struct pollfd ready[] = {{.fd = auth_fd(auth), .events = POLLIN},
                                 {.fd = client_fd, .events = POLLIN}};

        if (bench->fetch_count > 0 || poll(&ready[1], 1, 0) == 1)
            return;
        assert_true(poll(ready, ARRAY_SIZE(ready), 10000) > 0);
        settle(bench);
    }
}

static void a_password_is_asked_for_checked_and_remembered(void **state)
{
    char text[4096];
    struct auth *auth;
    struct bench *bench = open_bench_with(&auth);
    int fd = dial(bench);

    (void)state;
    send_text(fd, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    receive_text(fd, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 401 ");
    assert_contains(text, "WWW-Authenticate: Basic realm=\"wattribute\"");
    send_text(fd, WRONG);
    wait_for_check(bench, auth, fd);
    assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 401 ");
    send_text(fd, RIGHT);
    wait_for_check(bench, auth, fd);
    assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 200 OK");
    send_text(fd, RIGHT);
    settle(bench); /* without the thread */
    assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 200 OK");
    close(fd);
    close_bench(bench);
    auth_free(auth);
}

/* A scrape whose password is being checked: if we were held up, it has been already. */
static struct bench *scrape_with_password(struct auth **ret_auth, int *ret_fd)
{
    for (;;) {
        struct bench *bench = open_bench_with(ret_auth);

        *ret_fd = dial(bench);
        send_text(*ret_fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n"
                           "Authorization: Basic YWxpY2U6aHVudGVyMg==\r\n\r\n");
        http_server_run(bench->server); /* accepts */
        http_server_run(bench->server); /* reads */
        if (bench->fetch_count == 0)
            return bench;
        close(*ret_fd);
        close_bench(bench);
        auth_free(*ret_auth);
    }
}

static void a_collector_has_its_two_seconds_after_a_check_that_took_longer(void **state)
{
    char text[4096];
    struct auth *auth;
    int fd;
    struct bench *bench = scrape_with_password(&auth, &fd);

    (void)state;
    bench->clock.now_us += 3 * USEC_PER_SEC;
    wait_for_check(bench, auth, fd);
    assert_int_equal(bench->fetch_count, 1);
    assert_string_equal(receive_text(fd, text, sizeof(text)), "");
    deliver(bench, 5, "up 1\n");
    assert_contains(receive_text(fd, text, sizeof(text)), "HTTP/1.1 200 OK");
    close(fd);
    close_bench(bench);
    auth_free(auth);
}

static void closing_with_passwords_being_checked_is_safe(void **state)
{
    struct auth *auth;
    struct bench *bench = open_bench_with(&auth);
    int fds[4];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = dial(bench);
        send_text(fds[i], WRONG);
    }
    http_server_run(bench->server);
    http_server_run(bench->server);
    close(fds[0]); /* and one leaves while it waits */
    http_server_run(bench->server);
    close_bench(bench);
    auth_free(auth);
    for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
}

static void configured_headers_are_on_every_response_and_replace_our_own(void **state)
{
    static const struct http_server_header headers[] = {{"Content-Security-Policy", "sandbox"},
                                                        {"X-Frame-Options", "deny"}};
    struct bench *bench = open_bench();
    char text[4096];
    int fd;

    (void)state;
    fd = dial(bench);
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    deliver(bench, 5, "up 1\n");
    assert_lacks(receive_text(fd, text, sizeof(text)), "X-Frame-Options");
    assert_int_equal(http_server_set_headers(bench->server, headers, ARRAY_SIZE(headers)), 0);
    ask_once(bench, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "Content-Security-Policy: sandbox\r\n");
    assert_lacks(text, "default-src");
    assert_contains(text, "X-Frame-Options: deny\r\n");
    /* The body that is here has the old ones: it is not said to be. */
    send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    settle(bench);
    assert_int_equal(bench->have_generation, 0);
    deliver(bench, 5, "up 1\n");
    assert_contains(receive_text(fd, text, sizeof(text)), "X-Frame-Options: deny\r\n");
    assert_int_equal(http_server_set_headers(bench->server, NULL, 0), 0);
    ask_once(bench, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "Content-Security-Policy: default-src");
    assert_lacks(text, "X-Frame-Options");
    close(fd);
    close_bench(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scrape_gets_the_body_with_its_content_type),
        cmocka_unit_test(a_gzip_openmetrics_scrape_fetches_that_page_and_declares_it),
        cmocka_unit_test(an_unchanged_body_is_served_again_without_a_new_one),
        cmocka_unit_test(scrapes_that_come_together_share_one_fetch),
        cmocka_unit_test(a_reader_in_the_middle_of_a_body_is_not_disturbed_by_a_newer_one),
        cmocka_unit_test(a_stuck_collector_gives_503_after_two_seconds_and_is_not_asked_twice),
        cmocka_unit_test(a_collector_that_cannot_be_asked_gives_503_at_once),
        cmocka_unit_test(nothing_measured_yet_gives_503),
        cmocka_unit_test(readiness_needs_a_page_and_health_does_not),
        cmocka_unit_test(without_a_sign_of_life_for_15_s_health_readiness_and_metrics_fail),
        cmocka_unit_test(an_answer_without_a_request_is_a_protocol_error),
        cmocka_unit_test(a_head_request_gets_the_headers_alone),
        cmocka_unit_test(unknown_paths_and_methods_are_refused),
        cmocka_unit_test(the_landing_page_escapes_what_it_shows_and_runs_only_our_scripts),
        cmocka_unit_test(assets_come_with_their_type_policy_and_etag),
        cmocka_unit_test(an_asset_that_the_browser_has_is_not_sent_again),
        cmocka_unit_test(a_request_with_a_body_is_refused_and_closed),
        cmocka_unit_test(headers_over_16_kib_are_refused_and_closed),
        cmocka_unit_test(garbage_is_refused),
        cmocka_unit_test(a_client_that_drips_its_headers_is_cut_after_five_seconds),
        cmocka_unit_test(a_kept_connection_may_idle_two_minutes_between_requests),
        cmocka_unit_test(a_client_that_does_not_read_is_cut_after_thirty_seconds),
        cmocka_unit_test(at_the_limit_the_longest_waiting_connection_makes_room),
        cmocka_unit_test(where_all_are_busy_the_slowest_reader_makes_room_for_a_scrape),
        cmocka_unit_test(slow_readers_cannot_hold_a_body_of_every_generation),
        cmocka_unit_test(running_out_of_descriptors_pauses_accepting_instead_of_spinning),
        cmocka_unit_test(a_client_that_leaves_while_it_waits_costs_nothing),
        cmocka_unit_test(a_draining_server_finishes_responses_and_accepts_no_connection),
        cmocka_unit_test(closing_with_scrapes_that_wait_is_safe),
        cmocka_unit_test(a_unix_socket_is_served_like_any_other),
        cmocka_unit_test(a_password_is_asked_for_checked_and_remembered),
        cmocka_unit_test(a_collector_has_its_two_seconds_after_a_check_that_took_longer),
        cmocka_unit_test(closing_with_passwords_being_checked_is_safe),
        cmocka_unit_test(configured_headers_are_on_every_response_and_replace_our_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
