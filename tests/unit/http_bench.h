/* An HTTP server on loopback, driven step by step, with a collector that answers when told to. */
#pragma once

#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/macros.h"
#include "net/http_server.h"

static const struct http_asset assets[] = {
    {"/page/a.css",
     "text/css; charset=utf-8",
     {{{"b {}", 4}, "\"1\""}, {{"\x1f\x8b", 2}, "\"1-gzip\""}}},
    {"/page/a.js",
     "text/javascript; charset=utf-8",
     {{{"f()", 3}, "\"2\""}, {{"\x1f\x8b", 2}, "\"2-gzip\""}}},
};
static const char landing[] = "<p>{{version}}<a href=\"{{metrics_path}}\">metrics</a>{{other}}";

enum { CONNECTIONS_MAX = 8 };

/* A server on loopback with a clock that stands still and a collector that answers when told to. */
struct bench {
    struct clock_manual clock;
    struct http_server *server;
    int listener_fd;
    struct sockaddr_storage address;
    socklen_t address_len;

    size_t fetch_count;
    int fetch_result;
    enum page_format format;
    enum page_encoding encoding;
    uint64_t have_generation;
};

static int fake_fetch(void *context, enum page_format format, enum page_encoding encoding,
                      uint64_t have_generation)
{
    struct bench *bench = context;

    bench->fetch_count++;
    bench->format = format;
    bench->encoding = encoding;
    bench->have_generation = have_generation;
    return bench->fetch_result;
}

static struct bench *open_bench_at(const struct sockaddr *address, socklen_t address_len,
                                   size_t connections_max)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct http_server_options options = {
        .fetch = fake_fetch,
        .fetch_context = bench,
        .metrics_path = "/metrics",
        .version = "1.0<beta> & \"co\"",
        .landing_template = {landing, sizeof(landing) - 1},
        .assets = assets,
        .asset_count = ARRAY_SIZE(assets),
        .connections_max = connections_max,
    };

    assert_non_null(bench);
    clock_manual_init(&bench->clock, 1000 * USEC_PER_SEC);
    options.clock = &bench->clock.clock;
    assert_int_equal(http_server_open(&options, &bench->server), 0);
    bench->listener_fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(bench->listener_fd, address, address_len), 0);
    assert_int_equal(listen(bench->listener_fd, 512), 0);
    bench->address_len = sizeof(bench->address);
    assert_int_equal(
        getsockname(bench->listener_fd, (struct sockaddr *)&bench->address, &bench->address_len),
        0);
    assert_int_equal(http_server_listen(bench->server, bench->listener_fd), 0);
    return bench;
}

static struct bench *open_bench_for(size_t connections_max)
{
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return open_bench_at((struct sockaddr *)&loopback, sizeof(loopback), connections_max);
}

static struct bench *open_bench(void)
{
    return open_bench_for(CONNECTIONS_MAX);
}

static void close_bench(struct bench *bench)
{
    http_server_close(bench->server);
    close(bench->listener_fd);
    free(bench);
}

/* Runs the server until it has nothing to do. Loopback delivers at once, so this never waits. */
static void settle(struct bench *bench)
{
    struct pollfd ready = {.fd = http_server_fd(bench->server), .events = POLLIN};

    for (int i = 0; i < 1000; i++) {
        http_server_run(bench->server);
        if (poll(&ready, 1, 0) == 0 && http_server_timeout_ms(bench->server) != 0)
            return;
    }
    fail_msg("the server spins");
}

static void advance(struct bench *bench, uint64_t us)
{
    bench->clock.now_us += us;
    settle(bench);
}

static int dial(struct bench *bench)
{
    int fd = socket(bench->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&bench->address, bench->address_len), 0);
    return fd;
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What has come so far, as a string that the next call overwrites. */
static const char *receive_text(int fd, char *buffer, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while (len + 1 < size && (n = recv(fd, buffer + len, size - 1 - len, MSG_DONTWAIT)) > 0)
        len += (size_t)n;
    buffer[len] = '\0';
    return buffer;
}

static bool is_closed(int fd)
{
    char c;
    ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK);

    return n == 0 || (n < 0 && errno != EAGAIN);
}

static int memfd_of(const char *text)
{
    int fd = memfd_create("body", MFD_CLOEXEC);

    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    return fd;
}

static void deliver(struct bench *bench, uint64_t generation, const char *body)
{
    int fd = memfd_of(body);

    assert_int_equal(http_server_deliver(bench->server, bench->format, bench->encoding, generation,
                                         fd, strlen(body)),
                     0);
    close(fd);
    settle(bench);
}

/* One request on a connection of its own, for paths that need no collector. */
static const char *ask_once(struct bench *bench, const char *request, char *buffer, size_t size)
{
    int fd = dial(bench);

    send_text(fd, request);
    settle(bench);
    receive_text(fd, buffer, size);
    close(fd);
    settle(bench);
    return buffer;
}

#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (!strstr(text, part))                                                                   \
            fail_msg("no \"%s\" in:\n%s", part, text);                                             \
    } while (0)
#define assert_lacks(text, part)                                                                   \
    do {                                                                                           \
        if (strstr(text, part))                                                                    \
            fail_msg("\"%s\" in:\n%s", part, text);                                                \
    } while (0)
