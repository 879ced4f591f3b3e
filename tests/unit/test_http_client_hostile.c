/* client/http_client: whatever the peer does, a request ends in time, and within its limits. */
#include "http_client_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char page[4096];

static uint64_t cpu_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec / 1000;
}

static void assert_ends_at_the_deadline(struct peer_script script)
{
    struct bench *bench = open_bench(script);
    uint64_t began_us = cpu_us();

    bench->request.timeout_us = 300 * MS;
    assert_fails(bench, -ETIMEDOUT, "no complete reply within 0.3 s");
    assert_in_range(bench->took_us, 300 * MS, 300 * MS + LATE);
    assert_true(cpu_us() - began_us < 150 * MS); /* it waits, it does not spin */
    close_bench(bench);
}

static void silence_ends_at_the_deadline(void **state)
{
    (void)state;
    assert_ends_at_the_deadline((struct peer_script){.end = PEER_HOLDS});
    assert_ends_at_the_deadline(
        (struct peer_script){.end = PEER_HOLDS, .reply = SPAN("HTTP/1.1 200 OK\r\n")});
    assert_ends_at_the_deadline((struct peer_script){
        .end = PEER_HOLDS, .reply = SPAN("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")});
}

static void a_drip_ends_at_the_deadline(void **state)
{
    (void)state;
    assert_ends_at_the_deadline(
        (struct peer_script){.reply = SPAN("HTTP/1.1 200 O"), .repeat = SPAN("K"), .pause_ms = 5});
    assert_ends_at_the_deadline((struct peer_script){
        .reply = SPAN("HTTP/1.1 200 OK\r\nA: b"), .repeat = SPAN("b"), .pause_ms = 5});
    assert_ends_at_the_deadline((struct peer_script){
        .reply = SPAN("HTTP/1.1 200 OK\r\n"), .repeat = SPAN("A: b\r\n"), .pause_ms = 5});
    assert_ends_at_the_deadline((struct peer_script){
        .reply = SPAN("HTTP/1.1 200 OK\r\n\r\n"), .repeat = SPAN("b"), .pause_ms = 5});
    assert_ends_at_the_deadline(
        (struct peer_script){.reply = SPAN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                             .repeat = SPAN("1\r\nb\r\n"),
                             .pause_ms = 5});
}

static void a_request_without_time_ends_at_once(void **state)
{
    struct bench *bench = open_bench(well_behaved);

    (void)state;
    bench->request.timeout_us = 0;
    assert_fails(bench, -ETIMEDOUT, "");
    bench->request.timeout_us = UINT64_MAX; /* no overflow */
    bench->request.stall_us = UINT64_MAX;
    assert_int_equal(ask(bench), 0);
    close_bench(bench);
}

/* A listener with a full queue: the connection is neither refused nor accepted. */
static void a_full_queue_is_an_error(void **state)
{
    struct peer *peer = peer_start(&well_behaved);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct bench *bench;
    int fds[8], count = 0;

    (void)state;
    peer_stop(peer);
    assert_int_equal(listen(peer->listener_fd, 0), 0);
    strcpy(address.sun_path, peer->path);
    do {
        fds[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    } while (connect(fds[count++], (struct sockaddr *)&address, sizeof(address)) == 0 && count < 8);
    assert_int_equal(errno, EAGAIN);
    bench = open_bench_with(peer);
    bench->request.timeout_us = 300 * MS;
    assert_fails(bench, -EPROTO, "it accepts no connection");
    while (count > 0)
        close(fds[--count]);
    close_bench(bench);
}

static void a_stall_ends_the_request_before_its_deadline(void **state)
{
    static const char *const replies[] = {"", "HTTP/1.1 200 OK\r\n",
                                          "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
        struct bench *bench =
            open_bench((struct peer_script){.reply = span_of(replies[i]), .end = PEER_HOLDS});

        bench->request.stall_us = 150 * MS;
        assert_fails(bench, -ETIMEDOUT, "no data for 0.15 s");
        assert_in_range(bench->took_us, 150 * MS, 150 * MS + LATE);
        close_bench(bench);
    }
}

/* Even where no header line is ever complete. */
static void every_byte_puts_off_the_stall(void **state)
{
    struct bench *bench = open_bench((struct peer_script){
        .reply = SPAN("HTTP/1.1 200 OK\r\nA: b"), .repeat = SPAN("b"), .pause_ms = 5});

    (void)state;
    bench->request.stall_us = 1000 * MS;
    bench->request.timeout_us = 1500 * MS;
    assert_fails(bench, -ETIMEDOUT, "no complete reply within 1.5 s");
    assert_true(bench->took_us >= 1500 * MS);
    close_bench(bench);
}

static int read_byte_count;

/* As the collector does, with a ping for each byte. */
static void *send_bytes(void *argument)
{
    const int *fd = argument;

    for (int i = 0; i < 20; i++) {
        usleep(20000);
        (void)send(*fd, "x", 1, MSG_NOSIGNAL);
    }
    return NULL;
}

static bool read_bytes(int fd)
{
    char byte;

    while (recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
        read_byte_count++;
    return false;
}

static void a_watched_socket_is_attended_to_and_puts_off_no_stall(void **state)
{
    struct bench *bench = open_bench((struct peer_script){.end = PEER_HOLDS});
    pthread_t thread;
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    http_client_watch(bench->client, fds[0], read_bytes);
    assert_int_equal(pthread_create(&thread, NULL, send_bytes, &fds[1]), 0);
    bench->request.stall_us = 150 * MS;
    assert_fails(bench, -ETIMEDOUT, "no data for 0.15 s");
    assert_true(read_byte_count > 0);
    pthread_join(thread, NULL);
    close_bench(bench);
    close(fds[0]);
    close(fds[1]);
}

static void a_body_of_exactly_the_limit_is_kept(void **state)
{
    struct bench *bench = open_bench(well_behaved);

    (void)state;
    bench->request.max_bytes = 5;
    assert_int_equal(ask(bench), 0);
    assert_body(bench, "hello");
    bench->request.max_bytes = 4;
    assert_fails(bench, -EFBIG, "reply is longer than");
    bench->request.max_bytes = 0;
    assert_fails(bench, -EFBIG, "reply is longer than");
    bench->request.max_bytes = SIZE_MAX;
    assert_int_equal(ask(bench), 0);
    assert_body(bench, "hello");
    close_bench(bench);
}

static void an_endless_body_ends_at_its_limit(void **state)
{
    static const char *const headers[] = {
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        struct bench *bench = open_bench(
            (struct peer_script){.reply = span_of(headers[i]), .repeat = {page, sizeof(page)}});

        assert_fails(bench, -EFBIG, "longer than 1048576 bytes");
        assert_true(bench->reply.body.capacity <= bench->request.max_bytes);
        assert_true(bench->took_us < LATE);
        close_bench(bench);
    }
}

static void endless_headers_end_at_their_limit(void **state)
{
    static const struct {
        const char *reply, *repeat, *why;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\n", "A: b\r\n", "its headers "},
        {"HTTP/1.1 200 OK\r\nA: ", "bbbbbbbbbbbbbbbb", "its headers "},
        {"", "HTTP/1.1 100 Continue\r\n\r\n", "its headers "},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n", "its headers "},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench *bench = open_bench((struct peer_script){.reply = span_of(cases[i].reply),
                                                              .repeat = span_of(cases[i].repeat)});

        assert_fails(bench, -EPROTO, cases[i].why);
        assert_true(bench->took_us < LATE);
        close_bench(bench);
    }
}

static void a_reply_that_breaks_off_is_an_error(void **state)
{
    static const char *const replies[] = {
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
        struct bench *bench = open_bench((struct peer_script){.reply = span_of(replies[i])});

        assert_fails(bench, -EPROTO, "");
        close_bench(bench);
    }
}

static void a_length_that_is_too_short_ends_the_body(void **state)
{
    struct bench *bench = open_bench((struct peer_script){
        .reply = SPAN("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhello"), .end = PEER_SERVES_ON});

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask(bench), 0);
        assert_body(bench, "hel");
    }
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->connections, 3); /* excess bytes belong to no reply */
    close_bench(bench);
}

static void a_length_that_is_too_long_is_not_waited_for(void **state)
{
    static const char *const lengths[] = {"1048577", "9223372036854775807", "18446744073709551616",
                                          "99999999999999999999999999999999"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        char reply[128];
        struct bench *bench;

        snprintf(reply, sizeof(reply), "HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\nhello",
                 lengths[i]);
        bench = open_bench((struct peer_script){.reply = span_of(reply), .end = PEER_HOLDS});
        assert_fails(bench, -EFBIG, "reply is longer than");
        assert_true(bench->took_us < LATE);
        close_bench(bench);
    }
}

static void a_reset_is_an_error(void **state)
{
    struct bench *bench = open_tcp_bench((struct peer_script){
        .reply = SPAN("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello"), .end = PEER_RESETS});

    (void)state;
    assert_fails(bench, -EPROTO, "");
    close_bench(bench);
    bench = open_tcp_bench((struct peer_script){.ignores_request = true, .end = PEER_RESETS});
    assert_fails(bench, -EPROTO, "");
    close_bench(bench);
}

/* Nor does a write to a closed connection raise a signal. */
static void a_peer_that_leaves_during_the_request_is_an_error(void **state)
{
    struct bench *bench =
        open_bench((struct peer_script){.ignores_request = true, .end = PEER_RESETS});
    size_t len = 16 << 20;
    _cleanup_free_ char *body = calloc(1, len);

    (void)state;
    bench->request.body = (struct span){body, len};
    for (int i = 0; i < 10; i++)
        assert_fails(bench, -EPROTO, "");
    close_bench(bench);
}

static void what_is_not_http_is_an_error(void **state)
{
    static const char *const replies[] = {
        "\n",
        "hello\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2p1\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000000\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
        struct bench *bench = open_bench((struct peer_script){.reply = span_of(replies[i])});

        assert_fails(bench, -EPROTO, "");
        close_bench(bench);
    }
}

static size_t count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void requests_leave_no_descriptors_behind(void **state)
{
    static const struct peer_script scripts[] = {
        {.reply = SPAN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), .end = PEER_SERVES_ON},
        {.reply = SPAN("HTTP/1.1 200 OK\r\n\r\nhello")},
        {.reply = SPAN("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello")},
        {.reply = SPAN("garbage\r\n")},
        {.reply = SPAN("HTTP/1.1 200 OK\r\n\r\n"), .repeat = {page, sizeof(page)}},
        {.end = PEER_HOLDS},
    };
    size_t before = count_descriptors();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
        struct bench *bench = open_bench(scripts[i]);
        size_t with_client = count_descriptors();

        bench->request.timeout_us = scripts[i].end == PEER_HOLDS ? 2 * MS : 20 * SECOND;
        for (int n = 0; n < 50; n++) {
            bench->request.http2 = n % 2 && scripts[i].end != PEER_SERVES_ON;
            (void)ask(bench);
        }
        peer_stop(bench->peer);
        assert_in_range(count_descriptors(), with_client, with_client + 1); /* one may be kept */
        close_bench(bench);
    }
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_ends_at_the_deadline),
        cmocka_unit_test(a_drip_ends_at_the_deadline),
        cmocka_unit_test(a_request_without_time_ends_at_once),
        cmocka_unit_test(a_full_queue_is_an_error),
        cmocka_unit_test(a_stall_ends_the_request_before_its_deadline),
        cmocka_unit_test(every_byte_puts_off_the_stall),
        cmocka_unit_test(a_watched_socket_is_attended_to_and_puts_off_no_stall),
        cmocka_unit_test(a_body_of_exactly_the_limit_is_kept),
        cmocka_unit_test(an_endless_body_ends_at_its_limit),
        cmocka_unit_test(endless_headers_end_at_their_limit),
        cmocka_unit_test(a_reply_that_breaks_off_is_an_error),
        cmocka_unit_test(a_length_that_is_too_short_ends_the_body),
        cmocka_unit_test(a_length_that_is_too_long_is_not_waited_for),
        cmocka_unit_test(a_reset_is_an_error),
        cmocka_unit_test(a_peer_that_leaves_during_the_request_is_an_error),
        cmocka_unit_test(what_is_not_http_is_an_error),
        cmocka_unit_test(requests_leave_no_descriptors_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
