/* client/http_client: streamed bodies, and cancelled requests. */
#include "http_client_fixture.h"

#include <errno.h>
#include <netdb.h>
#include <semaphore.h>

static const char page[4096];

/* Collects a streamed body, and ends the request after `calls_left` pieces. */
struct reader {
    struct buffer text;
    int calls_left;
    struct http_client *cancels;
    sem_t heard;
};

static int read_piece(void *context, struct span data)
{
    struct reader *reader = context;

    buffer_bytes(&reader->text, data.data, data.len);
    sem_post(&reader->heard);
    if (reader->cancels)
        http_client_cancel(reader->cancels);
    return --reader->calls_left == 0 ? -EXDEV : 0;
}

static void read_with(struct bench *bench, struct reader *reader)
{
    *reader = (struct reader){0};
    buffer_init(&reader->text, 64 << 20);
    sem_init(&reader->heard, 0, 0);
    bench->request.on_data = read_piece;
    bench->request.context = reader;
}

static void a_reader_gets_the_body_and_nothing_is_kept(void **state)
{
    struct bench *bench = open_bench(
        (struct peer_script){.reply = SPAN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                           "6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n")});
    struct reader reader;

    (void)state;
    read_with(bench, &reader);
    bench->request.max_bytes = 1; /* of what is kept */
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->reply.status, 200);
    assert_int_equal(bench->reply.body.len, 0);
    assert_int_equal(reader.text.len, 11);
    assert_memory_equal(reader.text.data, "hello world", 11);
    buffer_done(&reader.text);
    close_bench(bench);
}

static void a_reader_ends_the_request_with_its_own_result(void **state)
{
    struct bench *bench = open_bench((struct peer_script){
        .reply = SPAN("HTTP/1.1 200 OK\r\n\r\n"), .repeat = SPAN("event\n"), .pause_ms = 1});
    struct reader reader;

    (void)state;
    read_with(bench, &reader);
    reader.calls_left = 5;
    assert_int_equal(ask(bench), -EXDEV);
    assert_string_equal(bench->err.text, ""); /* only the reader knows why */
    assert_int_equal(bench->reply.status, 0);
    assert_true(reader.text.len >= 5 * 6);
    buffer_done(&reader.text);
    close_bench(bench);
}

static void a_stream_stalls_and_ends_at_its_deadline_too(void **state)
{
    struct bench *bench = open_bench(
        (struct peer_script){.reply = SPAN("HTTP/1.1 200 OK\r\n\r\nevent\n"), .end = PEER_HOLDS});
    struct reader reader;

    (void)state;
    read_with(bench, &reader);
    bench->request.stall_us = 150 * MS;
    assert_fails(bench, -ETIMEDOUT, "no data for 0.15 s");
    bench->request.stall_us = 0;
    bench->request.timeout_us = 150 * MS;
    assert_fails(bench, -ETIMEDOUT, "no complete reply within 0.15 s");
    buffer_done(&reader.text);
    close_bench(bench);
}

struct canceller {
    struct http_client *client;
    struct reader *reader; /* cancel after its first data; NULL: at once */
};

static void *cancel(void *arg)
{
    struct canceller *canceller = arg;

    if (canceller->reader)
        sem_wait(&canceller->reader->heard);
    http_client_cancel(canceller->client);
    return NULL;
}

static void a_cancel_ends_a_request_that_waits(void **state)
{
    struct bench *bench = open_bench(
        (struct peer_script){.reply = SPAN("HTTP/1.1 200 OK\r\n\r\nevent\n"), .end = PEER_HOLDS});
    struct reader reader;
    struct canceller canceller = {bench->client, &reader};
    pthread_t thread;

    (void)state;
    read_with(bench, &reader);
    assert_int_equal(pthread_create(&thread, NULL, cancel, &canceller), 0);
    assert_fails(bench, -ECANCELED, "cancelled");
    assert_true(bench->took_us < LATE);
    pthread_join(thread, NULL);
    buffer_done(&reader.text);
    close_bench(bench);
}

/* At any moment: before the request, while it connects, while it waits. */
static void a_cancel_is_never_lost(void **state)
{
    struct peer *peer = peer_start(&(struct peer_script){.end = PEER_HOLDS});
    uint64_t began_us = now_us();

    (void)state;
    for (int i = 0; i < 200; i++) {
        struct bench *bench = open_bench_with(peer);
        struct canceller canceller = {bench->client, NULL};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, cancel, &canceller), 0);
        assert_fails(bench, -ECANCELED, "cancelled");
        pthread_join(thread, NULL);
        bench->peer = NULL;
        close_bench(bench);
    }
    assert_true(now_us() - began_us < 10 * SECOND);
    peer_free(peer);
}

static void a_cancelled_client_sends_nothing_more(void **state)
{
    struct bench *bench = open_bench(well_behaved);

    (void)state;
    http_client_cancel(bench->client);
    http_client_cancel(bench->client);
    assert_fails(bench, -ECANCELED, "cancelled");
    assert_fails(bench, -ECANCELED, "cancelled");
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->connections, 0);
    close_bench(bench);
}

static void a_cancel_from_the_reader_ends_the_request(void **state)
{
    struct bench *bench = open_bench((struct peer_script){.reply = SPAN("HTTP/1.1 200 OK\r\n\r\n"),
                                                          .repeat = {page, sizeof(page)}});
    struct reader reader;

    (void)state;
    read_with(bench, &reader);
    reader.cancels = bench->client;
    assert_fails(bench, -ECANCELED, "cancelled");
    assert_int_equal(reader.calls_left, -1); /* it was called once */
    buffer_done(&reader.text);
    close_bench(bench);
}

static sem_t look_up_hangs;

/* In place of glibc's, also for curl: a lookup never ends. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    (void)name;
    (void)service;
    (void)hints;
    (void)ret_list;
    sem_wait(&look_up_hangs);
    return EAI_NONAME;
}

static void a_lookup_that_hangs_ends_at_the_deadline(void **state)
{
    struct bench *bench = open_bench_with(NULL);
    struct canceller canceller = {bench->client, NULL};
    pthread_t thread;

    (void)state;
    sem_init(&look_up_hangs, 0, 0);
    bench->request.url = "http://hangs.test/";
    bench->request.timeout_us = 200 * MS;
    assert_fails(bench, -ETIMEDOUT, "no complete reply within 0.2 s");
    assert_in_range(bench->took_us, 200 * MS, 200 * MS + LATE);
    bench->request.timeout_us = 20 * SECOND;
    assert_int_equal(pthread_create(&thread, NULL, cancel, &canceller), 0);
    assert_fails(bench, -ECANCELED, "cancelled");
    assert_true(bench->took_us < LATE);
    pthread_join(thread, NULL);
    sem_post(&look_up_hangs);
    sem_post(&look_up_hangs);
    close_bench(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_gets_the_body_and_nothing_is_kept),
        cmocka_unit_test(a_reader_ends_the_request_with_its_own_result),
        cmocka_unit_test(a_stream_stalls_and_ends_at_its_deadline_too),
        cmocka_unit_test(a_cancel_ends_a_request_that_waits),
        cmocka_unit_test(a_cancel_is_never_lost),
        cmocka_unit_test(a_cancelled_client_sends_nothing_more),
        cmocka_unit_test(a_cancel_from_the_reader_ends_the_request),
        cmocka_unit_test(a_lookup_that_hangs_ends_at_the_deadline),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
