/* The server's life: it is opened, configured, run, drained and closed. */
#include "net/http_server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "core/macros.h"
#include "net/http_server_private.h"

enum {
    /* libmicrohttpd keeps the headers, its index of them and the reply's headers in one block. */
    CONNECTION_MEMORY_BYTES = 32 * 1024,
};

/* libmicrohttpd wants one; but it is http_server_on_connection that gives each session its
 * certificate. */
static int no_certificate(void)
{
    return -1;
}

static int start_daemon(struct http_server *server)
{
    /* -1 tells it from a listener. */
    struct epoll_event event = {.events = EPOLLIN, .data.fd = -1};
    const union MHD_DaemonInfo *info;
    int r;

    /* No MHD_USE_ERROR_LOG: it writes a line for every client that goes away. No timeout: see
     * connections.h. One connection more than we allow: a newcomer is added before its victim is
     * gone. */
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
            (server->tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, http_server_on_request, server, MHD_OPTION_NOTIFY_CONNECTION,
        http_server_on_connection, server, MHD_OPTION_NOTIFY_COMPLETED, http_server_on_completed,
        server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)server->options.connections_max + 1,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
        server->tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, no_certificate,
        MHD_OPTION_END);
    if (!server->daemon)
        return -EIO;
    info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || info->epoll_fd < 0)
        return -EIO;
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll_fd < 0)
        return -errno;
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &event) < 0)
        return -errno;
    if (!server->tls)
        return 0;
    r = http_handshakes_open(&server->handshakes);
    if (r < 0)
        return r;
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->handshakes.epoll_fd, &event) < 0)
        return -errno;
    return 0;
}

int http_server_open(const struct http_server_options *options, struct http_server **ret_server)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return -ENOMEM;
    server->options = *options;
    server->epoll_fd = -1;
    server->handshakes.epoll_fd = -1;
    server->tls = options->tls ? tls_ref(options->tls) : NULL;
    TAILQ_INIT(&server->checking);
    connections_init(&server->connections, options->clock);
    http_variants_init(&server->variants, &server->options, &server->headers);
    r = http_replies_build(&server->replies, &server->options, &server->headers);
    if (r == 0)
        r = start_daemon(server);
    if (r < 0) {
        http_server_close(server);
        return r;
    }
    *ret_server = server;
    return 0;
}

void http_server_close(struct http_server *server)
{
    if (!server)
        return;
    if (server->daemon) {
        /* It panics when it is stopped with suspended connections. */
        http_server_drain(server);
        MHD_stop_daemon(server->daemon);
    }
    cleanup_close(&server->epoll_fd);
    http_handshakes_close(&server->handshakes);
    http_variants_done(&server->variants);
    http_replies_done(&server->replies);
    tls_unref(server->tls);
    free(server);
}

int http_server_set_auth(struct http_server *server, struct auth *auth)
{
    /* -1 tells it from a listener. */
    struct epoll_event event = {.events = EPOLLIN, .data.fd = -1};

    if (auth && epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, auth_fd(auth), &event) < 0)
        return -errno;
    server->auth = auth;
    return 0;
}

void http_server_set_tls(struct http_server *server, struct tls *tls)
{
    tls_ref(tls);
    tls_unref(server->tls);
    server->tls = tls;
}

int http_server_set_headers(struct http_server *server, const struct http_server_header *headers,
                            size_t count)
{
    const struct http_headers new_headers = {headers, count};
    int r = http_replies_build(&server->replies, &server->options, &new_headers);

    if (r < 0)
        return r;
    server->headers = new_headers;
    /* The bodies that we have were given the old ones: each is asked for once more. */
    http_variants_expire(&server->variants);
    return 0;
}

int http_server_fd(const struct http_server *server)
{
    return server->epoll_fd;
}

int http_server_timeout_ms(const struct http_server *server)
{
    uint64_t next_us = server->accept_again_us ? server->accept_again_us : UINT64_MAX, now;
    MHD_UNSIGNED_LONG_LONG mhd_ms;

    /* It has no timers of its own here: an answer means that work is left from the last run. */
    if (MHD_get_timeout(server->daemon, &mhd_ms) == MHD_YES)
        return 0;
    next_us = MIN(next_us, http_variants_next_limit_us(&server->variants));
    next_us = MIN(next_us, connections_next_limit_us(&server->connections));
    if (next_us == UINT64_MAX)
        return -1;
    now = http_server_now_us(server);
    return next_us <= now ? 0 : (int)((next_us - now + 999) / 1000);
}

/* Each reader holds the body that it was promised; readers that take their time must not hold one
 * of every second. */
static void release_old_bodies(struct http_server *server)
{
    struct connection_state *reader;

    while (http_variants_hold_too_many(&server->variants) &&
           (reader = connections_slowest_reader(&server->connections))) {
        http_server_cut(server, reader);
        MHD_run(server->daemon);
    }
}

void http_server_run(struct http_server *server)
{
    http_server_take_verdicts(server);
    http_variants_enforce_limit(&server->variants, http_server_now_us(server));
    connections_enforce_limits(&server->connections);
    http_handshakes_resume(&server->handshakes);
    http_server_accept(server);
    MHD_run(server->daemon);
    release_old_bodies(server);
    if (!server->draining)
        http_handshakes_park(&server->handshakes, &server->connections);
}

int http_server_deliver(struct http_server *server, enum page_format format,
                        enum page_encoding encoding, uint64_t generation, int body_fd,
                        size_t body_bytes)
{
    return http_variants_deliver(&server->variants, format, encoding, generation, body_fd,
                                 body_bytes);
}

int http_server_unchanged(struct http_server *server, enum page_format format,
                          enum page_encoding encoding)
{
    return http_variants_unchanged(&server->variants, format, encoding);
}

int http_server_unavailable(struct http_server *server, enum page_format format,
                            enum page_encoding encoding, enum http_server_reason reason)
{
    return http_variants_unavailable(&server->variants, format, encoding, reason);
}

void http_server_drain(struct http_server *server)
{
    server->draining = true;
    http_server_stop_accepting(server);
    http_variants_answer_all(&server->variants, REPLY_STOPPING);
    http_connection_answer_all(&server->checking, REPLY_STOPPING);
    http_handshakes_unpark_all(&server->handshakes, &server->connections);
}

bool http_server_busy(const struct http_server *server)
{
    return connections_any_busy(&server->connections);
}
