/* An HTTP client and the peer that it asks, for the tests of http_client. */
#pragma once

#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "client/http_client.h"
#include "core/clock.h"
#include "core/macros.h"
#include "peer.h"

#define SPAN(text) ((struct span){text, sizeof(text) - 1})
#define MS         ((uint64_t)1000)
#define SECOND     USEC_PER_SEC

/* A busy machine may be late, but not by as much as a limit that was not kept. */
#define LATE (3 * SECOND)

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("no \"%s\" in:\n%s", part, text);                                             \
    } while (0)
#define assert_lacks(text, part)                                                                   \
    do {                                                                                           \
        if (strcasestr(text, part))                                                                \
            fail_msg("\"%s\" in:\n%s", part, text);                                                \
    } while (0)

struct bench {
    struct peer *peer; /* NULL: none is there */
    struct http_client *client;
    struct http_request request;
    struct http_reply reply;
    struct error err;
    uint64_t took_us; /* the last ask() */
};

static uint64_t now_us(void)
{
    return clock_system.monotonic_us(&clock_system);
}

static struct bench *open_bench_with(struct peer *peer)
{
    struct bench *bench = calloc(1, sizeof(*bench));

    assert_non_null(bench);
    *bench = (struct bench){
        .peer = peer,
        .request = {.url = peer && !peer->path[0] ? peer->url : "http://localhost/",
                    .socket_path = peer && peer->path[0] ? peer->path : NULL,
                    .timeout_us = 20 * SECOND,
                    .max_bytes = 1 << 20},
    };
    assert_int_equal(http_client_new(&bench->client), 0);
    http_reply_init(&bench->reply);
    return bench;
}

static struct bench *open_bench(struct peer_script script)
{
    return open_bench_with(peer_start(&script));
}

static struct bench *open_tcp_bench(struct peer_script script)
{
    return open_bench_with(peer_start_tcp(&script));
}

static void close_bench(struct bench *bench)
{
    http_client_free(bench->client);
    http_reply_done(&bench->reply);
    if (bench->peer)
        peer_free(bench->peer);
    free(bench);
}

static int ask(struct bench *bench)
{
    uint64_t began_us = now_us();
    int r;

    bench->err.text[0] = '\0';
    r = http_client_do(bench->client, &bench->request, &bench->reply, &bench->err);
    bench->took_us = now_us() - began_us;
    return r;
}

static void assert_body(const struct bench *bench, const char *text)
{
    assert_int_equal(bench->reply.body.len, strlen(text));
    if (text[0])
        assert_memory_equal(bench->reply.body.data, text, strlen(text));
}

/* `code`, a text that names the peer, and nothing in the reply. */
static void assert_fails(struct bench *bench, int code, const char *why)
{
    int r = ask(bench);

    if (r != code)
        fail_msg("%s (%d) instead of %s: %s", strerror(-r), r, strerror(-code), bench->err.text);
    assert_contains(bench->err.text, "request to ");
    if (bench->peer)
        assert_contains(bench->err.text,
                        bench->peer->path[0] ? bench->peer->path : bench->peer->url);
    assert_contains(bench->err.text, why);
    assert_int_equal(bench->reply.status, 0);
    assert_int_equal(bench->reply.body.len, 0);
}

/* What the peer heard, as a string that the caller frees. */
static char *heard(struct bench *bench)
{
    char *text;

    peer_stop(bench->peer);
    text = strndup(bench->peer->request.data, bench->peer->request.len);
    assert_non_null(text);
    return text;
}

static const struct peer_script well_behaved = {
    .reply = SPAN("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nApi-Version: 1.41\r\n\r\nhello"),
    .end = PEER_SERVES_ON,
};
