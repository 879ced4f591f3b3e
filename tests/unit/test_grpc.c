/* client/grpc: one message or a named failure, from more or less correct HTTP/2 servers. */
#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "client/grpc.h"
#include "core/clock.h"
#include "core/macros.h"
#include "peer.h"

#define SPAN(text) ((struct span){text, sizeof(text) - 1})
#define MS         ((uint64_t)1000)
#define SECOND     USEC_PER_SEC
#define UNTOUCHED  77

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("no \"%s\" in:\n%s", part, text);                                             \
    } while (0)

/* RFC 9113, section 6. */
enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7 };
enum { END_STREAM = 1, END_HEADERS = 4 };

/* A kubelet's reply to List: one pod, one container, one replica of a GPU. */
static const char pod_list[] = "\0\0\0\0\x58\x0a\x56\x0a\x07"
                               "train-0\x12\x02"
                               "ml\x1a\x47\x0a\x06"
                               "worker\x12\x3d\x0a\x0e"
                               "nvidia.com/gpu\x12\x2b"
                               "GPU-8f6b0c1e-0000-0000-0000-000000000000::3";

static void put_frame(struct buffer *out, unsigned type, unsigned flags, unsigned stream,
                      struct span payload)
{
    const char header[] = {(char)(payload.len >> 16),
                           (char)(payload.len >> 8),
                           (char)payload.len,
                           (char)type,
                           (char)flags,
                           0,
                           0,
                           0,
                           (char)stream};

    buffer_bytes(out, header, sizeof(header));
    buffer_bytes(out, payload.data, payload.len);
}

/* HPACK: a literal without indexing, with a new name, without Huffman (RFC 7541, 6.2.2). */
static void put_field(struct buffer *block, const char *name, const char *value)
{
    buffer_char(block, 0);
    buffer_char(block, (char)strlen(name));
    buffer_str(block, name);
    buffer_char(block, (char)strlen(value));
    buffer_str(block, value);
}

static void put_headers(struct buffer *out, const char *http_status, const char *grpc_status,
                        unsigned flags)
{
    struct buffer block;

    buffer_init(&block, 4096);
    if (http_status) {
        put_field(&block, ":status", http_status);
        put_field(&block, "content-type", "application/grpc");
    }
    if (grpc_status) {
        put_field(&block, "grpc-status", grpc_status);
        put_field(&block, "grpc-message", "");
    }
    put_frame(out, HEADERS, END_HEADERS | flags, 1, (struct span){block.data, block.len});
    buffer_done(&block);
}

/* The first bytes of every server. */
static struct buffer begin(void)
{
    struct buffer out;

    buffer_init(&out, 1 << 20);
    put_frame(&out, SETTINGS, 0, 0, SPAN(""));
    return out;
}

/* A reply with `body` and `grpc_status` in the trailers. */
static struct buffer reply_with(struct span body, const char *grpc_status)
{
    struct buffer out = begin();

    put_headers(&out, "200", NULL, 0);
    put_frame(&out, DATA, 0, 1, body);
    put_headers(&out, NULL, grpc_status, END_STREAM);
    return out;
}

struct bench {
    struct buffer bytes; /* of the peer */
    struct peer *peer;
    struct http_client *client;
    struct grpc_call call;
    struct http_reply reply;
    struct span message;
    int status;
    struct error err;
    uint64_t took_us;
};

static struct bench *open_bench_with(struct buffer bytes, struct peer_script script)
{
    struct bench *bench = calloc(1, sizeof(*bench));

    assert_non_null(bench);
    assert_false(buffer_failed(&bytes));
    script.reply = (struct span){bytes.data, bytes.len};
    *bench = (struct bench){.bytes = bytes, .peer = peer_start(&script)};
    bench->call = (struct grpc_call){.socket_path = bench->peer->path,
                                     .method = "/v1.PodResourcesLister/List",
                                     .timeout_us = 20 * SECOND,
                                     .max_bytes = 1 << 20};
    assert_int_equal(http_client_new(&bench->client), 0);
    http_reply_init(&bench->reply);
    return bench;
}

/* A peer that holds the connection until we close it, as gRPC servers do. */
static struct bench *open_bench(struct buffer bytes)
{
    return open_bench_with(bytes, (struct peer_script){.end = PEER_HOLDS});
}

static void close_bench(struct bench *bench)
{
    http_client_free(bench->client);
    http_reply_done(&bench->reply);
    peer_free(bench->peer);
    buffer_done(&bench->bytes);
    free(bench);
}

static int call(struct bench *bench)
{
    uint64_t began_us = clock_system.monotonic_us(&clock_system);
    int r;

    bench->status = UNTOUCHED;
    bench->message = (struct span){NULL, UNTOUCHED};
    bench->err.text[0] = '\0';
    r = grpc_call(bench->client, &bench->call, &bench->reply, &bench->message, &bench->status,
                  &bench->err);
    bench->took_us = clock_system.monotonic_us(&clock_system) - began_us;
    return r;
}

static void assert_message(const struct bench *bench, struct span message)
{
    assert_int_equal(bench->status, 0);
    assert_int_equal(bench->message.len, message.len);
    if (message.len > 0)
        assert_memory_equal(bench->message.data, message.data, message.len);
}

static void assert_fails(struct bench *bench, int code, int status, const char *why)
{
    int r = call(bench);

    if (r != code)
        fail_msg("%s (%d) instead of %s: %s", strerror(-r), r, strerror(-code), bench->err.text);
    assert_contains(bench->err.text, bench->peer->path);
    assert_contains(bench->err.text, why);
    assert_int_equal(bench->status, status);
    assert_null(bench->message.data);
}

static void assert_call_fails(struct buffer bytes, int code, int status, const char *why)
{
    struct bench *bench = open_bench(bytes);

    assert_fails(bench, code, status, why);
    close_bench(bench);
}

static void a_call_returns_its_message(void **state)
{
    struct bench *bench = open_bench(reply_with(SPAN(pod_list), "0"));

    (void)state;
    assert_int_equal(call(bench), 0);
    assert_message(bench, (struct span){pod_list + 5, 0x58});
    assert_null(bench->err.text[0] ? bench->err.text : NULL);
    close_bench(bench);
}

static void an_empty_message_is_a_message(void **state)
{
    struct bench *bench = open_bench(reply_with(SPAN("\0\0\0\0\0"), "0"));

    (void)state;
    bench->call.max_bytes = 0; /* of the message, without its frame */
    assert_int_equal(call(bench), 0);
    assert_message(bench, SPAN(""));
    close_bench(bench);
}

static void a_message_may_come_in_pieces(void **state)
{
    struct buffer bytes = begin();
    struct bench *bench;

    (void)state;
    put_headers(&bytes, "200", NULL, 0);
    for (size_t i = 0; i < sizeof(pod_list) - 1; i++)
        put_frame(&bytes, DATA, 0, 1, (struct span){pod_list + i, 1});
    put_frame(&bytes, DATA, 0, 1, SPAN(""));
    put_frame(&bytes, PING, 0, 0, SPAN("12345678"));
    put_headers(&bytes, NULL, "0", END_STREAM);
    bench = open_bench(bytes);
    assert_int_equal(call(bench), 0);
    assert_message(bench, (struct span){pod_list + 5, 0x58});
    close_bench(bench);
}

/* The second HTTP/2 request on a kept connection is where curl 7.88 fails. */
static void calls_follow_each_other(void **state)
{
    struct bench *bench = open_bench(reply_with(SPAN(pod_list), "0"));

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(call(bench), 0);
        assert_message(bench, (struct span){pod_list + 5, 0x58});
    }
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->connections, 20);
    close_bench(bench);
}

static const char *find(const struct buffer *text, struct span part)
{
    return memmem(text->data, text->len, part.data, part.len);
}

/* Values as HPACK's Huffman code has them, behind their length (RFC 7541, appendix B). */
static void a_call_has_its_type_and_timeout(void **state)
{
    static const struct {
        uint64_t timeout_us;
        struct span value;
    } cases[] = {
        {20 * SECOND, SPAN("\x84\x10\0\0\x53")},                /* 20000m */
        {100 * SECOND, SPAN("\x85\x08\0\0\x02\x9f")},           /* 100000m */
        {UINT64_MAX, SPAN("\x87\x7d\xf7\xdf\x7d\xf7\xdf\xa7")}, /* 99999999m */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench *bench = open_bench(reply_with(SPAN(pod_list), "0"));
        const struct buffer *request = &bench->peer->request;

        bench->call.timeout_us = cases[i].timeout_us;
        assert_int_equal(call(bench), 0);
        peer_stop(bench->peer);
        assert_non_null(find(request, SPAN("\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64")));
        assert_non_null(find(request, SPAN("\x02te\x86\x4d\x83\x35\x05\xb1\x1f")));
        assert_non_null(find(request, cases[i].value));
        close_bench(bench);
    }
}

static void a_request_is_framed(void **state)
{
    struct bench *bench = open_bench(reply_with(SPAN(pod_list), "0"));

    (void)state;
    bench->call.request = SPAN("\x0a\x02\x08\x01");
    assert_int_equal(call(bench), 0);
    peer_stop(bench->peer);
    assert_non_null(find(&bench->peer->request, SPAN("\0\0\x09\0\x01\0\0\0\x01"
                                                     "\0\0\0\0\x04\x0a\x02\x08\x01")));
    close_bench(bench);
}

static void an_empty_request_is_a_frame_too(void **state)
{
    struct bench *bench = open_bench(reply_with(SPAN(pod_list), "0"));

    (void)state;
    assert_int_equal(call(bench), 0);
    peer_stop(bench->peer);
    assert_non_null(find(&bench->peer->request, SPAN("\0\0\x05\0\x01\0\0\0\x01\0\0\0\0\0")));
    close_bench(bench);
}

static void a_status_other_than_ok_is_named(void **state)
{
    static const struct {
        const char *status, *why;
        int value;
    } cases[] = {
        {"1", "status 1, CANCELLED", 1},
        {"4", "status 4, DEADLINE_EXCEEDED", 4},
        {"8", "status 8, RESOURCE_EXHAUSTED", 8},
        {"12", "status 12, UNIMPLEMENTED", 12},
        {"16", "status 16, UNAUTHENTICATED", 16},
        {"17", "status 17, unknown", 17},
        {"2147483647", "status 2147483647", INT_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_call_fails(reply_with(SPAN(""), cases[i].status), -EREMOTEIO, cases[i].value,
                          cases[i].why);
    assert_call_fails(reply_with(SPAN(pod_list), "8"), -EREMOTEIO, 8,
                      "/v1.PodResourcesLister/List");
}

static void a_status_in_the_first_headers_counts(void **state)
{
    struct buffer bytes = begin();

    (void)state;
    put_headers(&bytes, "200", "12", END_STREAM);
    assert_call_fails(bytes, -EREMOTEIO, 12, "UNIMPLEMENTED");
}

static void the_last_status_counts(void **state)
{
    struct buffer bytes = begin();

    (void)state;
    put_headers(&bytes, "200", "0", 0);
    put_frame(&bytes, DATA, 0, 1, SPAN(pod_list));
    put_headers(&bytes, NULL, "8", END_STREAM);
    assert_call_fails(bytes, -EREMOTEIO, 8, "RESOURCE_EXHAUSTED");
}

static void a_reply_without_a_status_is_an_error(void **state)
{
    static const char *const statuses[] = {"", "x", "-1", "0x0", "0 0", "2147483648"};
    struct buffer bytes = begin();

    (void)state;
    put_headers(&bytes, "200", NULL, 0);
    put_frame(&bytes, DATA, END_STREAM, 1, SPAN(pod_list));
    assert_call_fails(bytes, -EPROTO, UNTOUCHED, "no grpc-status");
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        assert_call_fails(reply_with(SPAN(pod_list), statuses[i]), -EPROTO, UNTOUCHED,
                          "no grpc-status");
}

static void an_http_status_other_than_200_is_an_error(void **state)
{
    struct buffer bytes = begin();

    (void)state;
    put_headers(&bytes, "404", "0", END_STREAM);
    assert_call_fails(bytes, -EPROTO, UNTOUCHED, "HTTP status 404");
}

static void a_body_that_is_not_one_message_is_an_error(void **state)
{
    static const struct span bodies[] = {
        {"", 0},
        {"\0\0\0\0", 4}, /* cut in the frame */
        {"\0\0\0\0\x02"
         "a",
         6}, /* cut in the message */
        {"\x01\0\0\0\x01"
         "a",
         6}, /* compressed */
        {"\0\0\0\0\x01"
         "ab",
         7}, /* more than it says */
        {"\0\0\0\0\x01"
         "a\0\0\0\0\x01"
         "b",
         12}, /* two */
        {"\0\xff\xff\xff\xff", 5},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
        assert_call_fails(reply_with(bodies[i], "0"), -EBADMSG, 0, "other than one message");
}

static void a_broken_stream_is_an_error(void **state)
{
    struct buffer bytes = begin();

    (void)state;
    put_headers(&bytes, "200", NULL, 0);
    put_frame(&bytes, DATA, 0, 1, SPAN(pod_list));
    put_frame(&bytes, RST_STREAM, 0, 1, SPAN("\0\0\0\x02"));
    assert_call_fails(bytes, -EPROTO, UNTOUCHED, "");

    bytes = begin();
    put_frame(&bytes, RST_STREAM, 0, 1, SPAN("\0\0\0\x07"));
    assert_call_fails(bytes, -EPROTO, UNTOUCHED, "");
}

static void a_server_that_goes_away_is_an_error(void **state)
{
    struct buffer bytes = begin();
    struct bench *bench;

    (void)state;
    put_frame(&bytes, GOAWAY, 0, 0, SPAN("\0\0\0\0\0\0\0\0"));
    bench = open_bench_with(bytes, (struct peer_script){.end = PEER_CLOSES});
    assert_fails(bench, -EPROTO, UNTOUCHED, "");
    close_bench(bench);

    bytes = begin();
    put_headers(&bytes, "200", NULL, 0);
    put_frame(&bytes, DATA, 0, 1, SPAN(pod_list));
    bench = open_bench_with(bytes, (struct peer_script){.end = PEER_CLOSES});
    assert_fails(bench, -EPROTO, UNTOUCHED, "");
    close_bench(bench);
}

static void what_is_not_http2_is_an_error(void **state)
{
    struct buffer bytes;
    struct bench *bench;

    (void)state;
    buffer_init(&bytes, 1 << 10);
    buffer_str(&bytes, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    bench = open_bench_with(bytes, (struct peer_script){.end = PEER_CLOSES});
    assert_fails(bench, -EPROTO, UNTOUCHED, "");
    close_bench(bench);

    bytes = begin();
    put_frame(&bytes, HEADERS, END_HEADERS | END_STREAM, 1, SPAN("\xff\xff\xff\xff\xff\xff"));
    assert_call_fails(bytes, -EPROTO, UNTOUCHED, "");

    bytes = begin();
    put_frame(&bytes, DATA, END_STREAM, 1, SPAN(pod_list)); /* before any headers */
    assert_call_fails(bytes, -EPROTO, UNTOUCHED, "");
}

static void silence_ends_at_the_deadline(void **state)
{
    struct buffer bytes = begin();
    struct bench *bench;

    (void)state;
    bench = open_bench(bytes);
    bench->call.timeout_us = 200 * MS;
    assert_fails(bench, -ETIMEDOUT, UNTOUCHED, "");
    assert_in_range(bench->took_us, 200 * MS, 3 * SECOND);
    close_bench(bench);

    bytes = reply_with(SPAN(pod_list), "0");
    bytes.len -= 20; /* the trailers never come whole */
    bench = open_bench(bytes);
    bench->call.timeout_us = 200 * MS;
    assert_fails(bench, -ETIMEDOUT, UNTOUCHED, "");
    close_bench(bench);
}

static void pings_do_not_put_off_the_deadline(void **state)
{
    struct buffer ping;
    struct bench *bench;

    (void)state;
    buffer_init(&ping, 64);
    put_frame(&ping, PING, 0, 0, SPAN("12345678"));
    bench = open_bench_with(begin(),
                            (struct peer_script){.repeat = {ping.data, ping.len}, .pause_ms = 5});
    bench->call.timeout_us = 200 * MS;
    assert_fails(bench, -ETIMEDOUT, UNTOUCHED, "");
    assert_in_range(bench->took_us, 200 * MS, 3 * SECOND);
    close_bench(bench);
    buffer_done(&ping);
}

static void an_endless_message_ends_at_its_limit(void **state)
{
    static const char page[4096];
    struct buffer bytes = begin(), more;
    struct bench *bench;

    (void)state;
    buffer_init(&more, 1 << 16);
    put_frame(&more, DATA, 0, 1, (struct span){page, sizeof(page)});
    put_headers(&bytes, "200", NULL, 0);
    bench = open_bench_with(bytes, (struct peer_script){.repeat = {more.data, more.len}});
    assert_fails(bench, -EFBIG, UNTOUCHED, "longer than");
    assert_true(bench->reply.body.capacity <= bench->call.max_bytes + 5);
    assert_true(bench->took_us < 3 * SECOND);
    close_bench(bench);
    buffer_done(&more);
}

static void endless_headers_are_an_error(void **state)
{
    struct buffer block, bytes, more;
    struct bench *bench;

    (void)state;
    buffer_init(&block, 1 << 16);
    while (block.len < 8000)
        put_field(&block, "a", "0123456789012345678901234567890123456789");
    for (int continued = 0; continued <= 1; continued++) {
        enum { CONTINUATION = 9 };

        bytes = begin();
        buffer_init(&more, 1 << 16);
        put_frame(&bytes, HEADERS, continued ? 0 : END_HEADERS, 1, SPAN("\x88"));
        put_frame(&more, continued ? CONTINUATION : HEADERS, continued ? 0 : END_HEADERS, 1,
                  (struct span){block.data, block.len});
        bench = open_bench_with(bytes, (struct peer_script){.repeat = {more.data, more.len}});
        assert_fails(bench, -EPROTO, UNTOUCHED, "");
        assert_true(bench->took_us < 3 * SECOND);
        close_bench(bench);
        buffer_done(&more);
    }
    buffer_done(&block);
}

static void an_absent_server_is_named(void **state)
{
    struct bench *bench = open_bench(begin());

    (void)state;
    bench->call.socket_path = "/nonexistent/kubelet.sock";
    assert_int_equal(call(bench), -ENOENT);
    assert_contains(bench->err.text, "/nonexistent/kubelet.sock failed: no such socket");
    assert_int_equal(bench->status, UNTOUCHED);
    close_bench(bench);
}

static void a_cancelled_client_makes_no_call(void **state)
{
    struct bench *bench = open_bench(begin());

    (void)state;
    http_client_cancel(bench->client);
    assert_fails(bench, -ECANCELED, UNTOUCHED, "cancelled");
    close_bench(bench);
}

static void status_and_text_are_optional(void **state)
{
    struct bench *bench = open_bench(reply_with(SPAN(pod_list), "12"));

    (void)state;
    assert_int_equal(
        grpc_call(bench->client, &bench->call, &bench->reply, &bench->message, NULL, NULL),
        -EREMOTEIO);
    close_bench(bench);
}

static void a_message_lies_inside_its_body(void **state)
{
    static const char body[] = "\0\0\0\0\x03"
                               "abc";
    struct span message = {NULL, UNTOUCHED};

    (void)state;
    assert_int_equal(grpc_unframe((struct span){body, 8}, &message), 0);
    assert_ptr_equal(message.data, body + 5);
    assert_int_equal(message.len, 3);
    message = (struct span){NULL, UNTOUCHED};
    assert_int_equal(grpc_unframe((struct span){NULL, 0}, &message), -EBADMSG);
    for (size_t len = 0; len < 8; len++)
        assert_int_equal(grpc_unframe((struct span){body, len}, &message), -EBADMSG);
    assert_int_equal(message.len, UNTOUCHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_returns_its_message),
        cmocka_unit_test(an_empty_message_is_a_message),
        cmocka_unit_test(a_message_may_come_in_pieces),
        cmocka_unit_test(calls_follow_each_other),
        cmocka_unit_test(a_call_has_its_type_and_timeout),
        cmocka_unit_test(a_request_is_framed),
        cmocka_unit_test(an_empty_request_is_a_frame_too),
        cmocka_unit_test(a_status_other_than_ok_is_named),
        cmocka_unit_test(a_status_in_the_first_headers_counts),
        cmocka_unit_test(the_last_status_counts),
        cmocka_unit_test(a_reply_without_a_status_is_an_error),
        cmocka_unit_test(an_http_status_other_than_200_is_an_error),
        cmocka_unit_test(a_body_that_is_not_one_message_is_an_error),
        cmocka_unit_test(a_broken_stream_is_an_error),
        cmocka_unit_test(a_server_that_goes_away_is_an_error),
        cmocka_unit_test(what_is_not_http2_is_an_error),
        cmocka_unit_test(silence_ends_at_the_deadline),
        cmocka_unit_test(pings_do_not_put_off_the_deadline),
        cmocka_unit_test(an_endless_message_ends_at_its_limit),
        cmocka_unit_test(endless_headers_are_an_error),
        cmocka_unit_test(an_absent_server_is_named),
        cmocka_unit_test(a_cancelled_client_makes_no_call),
        cmocka_unit_test(status_and_text_are_optional),
        cmocka_unit_test(a_message_lies_inside_its_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
