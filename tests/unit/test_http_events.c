/* net/http_events: streams of documents, for viewers of any speed. */
#include "http_bench.h"

#include <stdio.h>

#define ASK "GET /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n"

static int watch_events(struct bench *bench)
{
    int fd = dial(bench);

    send_text(fd, ASK);
    settle(bench);
    return fd;
}

static void expect(int fd, const char *part)
{
    char text[8192];

    assert_contains(receive_text(fd, text, sizeof(text)), part);
}

static void expect_nothing(int fd)
{
    char text[8192];

    assert_string_equal(receive_text(fd, text, sizeof(text)), "");
    assert_false(is_closed(fd));
}

/* A viewer that has gone is noticed when there is something to write. */
static void let_go(struct bench *bench, uint64_t generation)
{
    advance(bench, USEC_PER_SEC);
    deliver(bench, generation, "{}");
    http_server_note_life(bench->server);
}

static void a_viewer_gets_each_new_document_as_an_event(void **state)
{
    struct bench *bench = open_bench();
    char text[8192];
    int fd = watch_events(bench);

    (void)state;
    receive_text(fd, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 200 ");
    assert_contains(text, "Content-Type: text/event-stream");
    assert_contains(text, "Cache-Control: no-store");
    assert_contains(text, "retry: 2000\n\n");
    assert_int_equal(bench->fetch_count, 1); /* at once */
    assert_int_equal(bench->format, PAGE_NODE);
    assert_int_equal(bench->encoding, PAGE_IDENTITY);
    deliver(bench, 1, "{\"one\":1}");
    expect(fd, "event: node\ndata: {\"one\":1}\n\n");
    advance(bench, USEC_PER_SEC);
    assert_int_equal(bench->have_generation, 1);
    deliver(bench, 2, "{\"two\":2}");
    expect(fd, "event: node\ndata: {\"two\":2}\n\n");
    expect_nothing(fd);
    close(fd);
    close_bench(bench);
}

static void what_is_known_already_comes_at_once_and_what_has_not_changed_never(void **state)
{
    struct bench *bench = open_bench();
    int first = watch_events(bench), second;

    (void)state;
    deliver(bench, 1, "{\"one\":1}");
    expect(first, "{\"one\":1}");
    second = watch_events(bench);
    expect(second, "event: node\ndata: {\"one\":1}\n\n");
    advance(bench, USEC_PER_SEC);
    assert_int_equal(
        http_server_answer(bench->server, PAGE_NODE, PAGE_IDENTITY, HTTP_SERVER_UNCHANGED), 0);
    settle(bench);
    expect_nothing(first);
    expect_nothing(second);
    close(first);
    close(second);
    close_bench(bench);
}

static void who_comes_after_a_pause_gets_no_old_document(void **state)
{
    struct bench *bench = open_bench();
    int first = watch_events(bench), second;
    char text[8192];

    (void)state;
    deliver(bench, 1, "{\"old\":1}");
    expect(first, "{\"old\":1}");
    close(first);
    let_go(bench, 2);
    advance(bench, 300 * USEC_PER_SEC);
    http_server_note_life(bench->server);
    second = watch_events(bench);
    assert_null(strstr(receive_text(second, text, sizeof(text)), "event:"));
    assert_int_equal(
        http_server_answer(bench->server, PAGE_NODE, PAGE_IDENTITY, HTTP_SERVER_UNCHANGED), 0);
    settle(bench);
    expect(second, "event: node\ndata: {}\n\n"); /* it is still the newest */
    close(second);
    close_bench(bench);
}

static void the_collector_is_asked_once_a_second_for_all_viewers_and_not_at_all_for_none(
    void **state)
{
    struct bench *bench = open_bench();
    int fds[4];

    (void)state;
    advance(bench, 60 * USEC_PER_SEC);
    assert_int_equal(bench->fetch_count, 0);
    assert_int_equal(http_server_timeout_ms(bench->server), -1);
    http_server_note_life(bench->server);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = watch_events(bench);
    deliver(bench, 1, "{}");
    for (uint64_t tenth = 0; tenth < 100; tenth++) {
        advance(bench, USEC_PER_SEC / 10);
        if (bench->fetch_count == 2 + tenth / 10)
            (void)http_server_answer(bench->server, PAGE_NODE, PAGE_IDENTITY,
                                     HTTP_SERVER_UNCHANGED);
    }
    assert_int_equal(bench->fetch_count, 11);
    assert_int_equal(http_server_timeout_ms(bench->server), 1000);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    let_go(bench, 2);
    bench->fetch_count = 0;
    advance(bench, 60 * USEC_PER_SEC);
    assert_int_equal(bench->fetch_count, 0);
    assert_int_equal(http_server_timeout_ms(bench->server), -1);
    close_bench(bench);
}

static void a_viewer_without_news_is_pinged(void **state)
{
    struct bench *bench = open_bench();
    char text[8192];
    int fd = watch_events(bench);

    (void)state;
    receive_text(fd, text, sizeof(text));
    advance(bench, 14 * USEC_PER_SEC);
    expect_nothing(fd);
    advance(bench, USEC_PER_SEC);
    expect(fd, ": ping\n\n");
    http_server_note_life(bench->server);
    advance(bench, 15 * USEC_PER_SEC);
    expect(fd, ": ping\n\n");
    expect_nothing(fd);
    close(fd);
    close_bench(bench);
}

static void viewers_leave_room_for_others(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fds[CONNECTIONS_MAX / 2];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = watch_events(bench);
        expect(fds[i], "200 OK");
    }
    ask_once(bench, ASK, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 503 ");
    assert_contains(text, "{\"error\":\"too many viewers: poll /api/v1/node instead\"}");
    assert_contains(text, "Retry-After: 60");
    assert_contains(ask_once(bench, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text)),
                    "200 OK");
    close(fds[0]);
    deliver(bench, 1, "{}");
    let_go(bench, 2);
    fds[0] = watch_events(bench);
    expect(fds[0], "200 OK");
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    close_bench(bench);
}

static void there_are_at_most_eight(void **state)
{
    struct bench *bench = open_bench_for(64);
    char text[4096];
    int fds[8];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        fds[i] = watch_events(bench);
    assert_contains(ask_once(bench, ASK, text, sizeof(text)), "HTTP/1.1 503 ");
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        close(fds[i]);
    close_bench(bench);
}

static void a_slow_reader_misses_documents_holds_nobody_up_and_is_cut(void **state)
{
    enum { BODY_BYTES = 16 * 1024 * 1024, GENERATIONS = 20 };
    struct bench *bench = open_bench();
    char *body = malloc(BODY_BYTES + 1), text[65536];
    int slow = watch_events(bench), quick = watch_events(bench);
    size_t events = 0;

    (void)state;
    assert_non_null(body);
    memset(body, 'a', BODY_BYTES);
    body[BODY_BYTES] = '\0';
    deliver(bench, 1, body); /* more than a socket holds */
    for (int i = 2; i < GENERATIONS; i++) {
        do
            settle(bench);
        while (*receive_text(quick, text, sizeof(text)));
        advance(bench, USEC_PER_SEC);
        deliver(bench, (uint64_t)i, "{\"small\":1}");
        receive_text(quick, text, sizeof(text));
        events += strstr(text, "{\"small\":1}") != NULL;
    }
    assert_int_equal(events, GENERATIONS - 2);
    assert_false(is_closed(slow));
    advance(bench, 30 * USEC_PER_SEC); /* as long as any response may take */
    while (*receive_text(slow, text, sizeof(text)))
        ;
    settle(bench);
    assert_true(is_closed(slow));
    free(body);
    close(slow);
    close(quick);
    close_bench(bench);
}

static void draining_ends_streams(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = watch_events(bench);

    (void)state;
    receive_text(fd, text, sizeof(text));
    http_server_drain(bench->server);
    settle(bench);
    assert_string_equal(receive_text(fd, text, sizeof(text)), "0\r\n\r\n");
    assert_false(http_server_busy(bench->server));
    close(fd);
    close_bench(bench);
}

static void new_headers_and_passwords_end_streams(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];
    int fd = watch_events(bench);

    (void)state;
    receive_text(fd, text, sizeof(text));
    assert_int_equal(http_server_set_headers(bench->server, NULL, 0), 0);
    settle(bench);
    assert_string_equal(receive_text(fd, text, sizeof(text)), "0\r\n\r\n");
    close(fd);
    close_bench(bench);
}

static void a_silent_collector_starts_no_stream_and_a_head_has_no_body(void **state)
{
    struct bench *bench = open_bench();
    char text[4096];

    (void)state;
    ask_once(bench, "HEAD /api/v1/events HTTP/1.1\r\nHost: x\r\n\r\n", text, sizeof(text));
    assert_contains(text, "200 OK");
    assert_lacks(text, "retry");
    bench->clock.now_us += 20 * USEC_PER_SEC;
    ask_once(bench, ASK, text, sizeof(text));
    assert_contains(text, "HTTP/1.1 503 ");
    assert_contains(text, "{\"error\":");
    close_bench(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_viewer_gets_each_new_document_as_an_event),
        cmocka_unit_test(what_is_known_already_comes_at_once_and_what_has_not_changed_never),
        cmocka_unit_test(who_comes_after_a_pause_gets_no_old_document),
        cmocka_unit_test(
            the_collector_is_asked_once_a_second_for_all_viewers_and_not_at_all_for_none),
        cmocka_unit_test(a_viewer_without_news_is_pinged),
        cmocka_unit_test(viewers_leave_room_for_others),
        cmocka_unit_test(there_are_at_most_eight),
        cmocka_unit_test(a_slow_reader_misses_documents_holds_nobody_up_and_is_cut),
        cmocka_unit_test(draining_ends_streams),
        cmocka_unit_test(new_headers_and_passwords_end_streams),
        cmocka_unit_test(a_silent_collector_starts_no_stream_and_a_head_has_no_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
