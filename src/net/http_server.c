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

/* libmicrohttpd wants one, but http_server_on_connection sets the certificate of each session. */
static int no_certificate(void)
{
    return -1;
}

int http_server_watch(const struct http_server *server, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = -1}; /* no listener */

    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int start_daemon(struct http_server *server)
{
    const union MHD_DaemonInfo *info;
    int r;

    /* No MHD_USE_ERROR_LOG: it writes a line for every client that goes away. No timeout: see
     * http_connections.c. One connection more than we allow: a new one is added before its victim
     * is gone. */
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
    r = http_server_watch(server, info->epoll_fd);
    return r == 0 && server->tls ? http_handshakes_open(server) : r;
}

int http_server_open(const struct http_server_options *options, struct http_server **ret_server)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return -ENOMEM;
    server->options = *options;
    server->epoll_fd = -1;
    server->handshake_fd = -1;
    server->tls = options->tls ? tls_ref(options->tls) : NULL;
    TAILQ_INIT(&server->checking);
    for (size_t i = 0; i < CONNECTION_PHASES; i++)
        TAILQ_INIT(&server->phases[i]);
    for (size_t i = 0; i < HTTP_PAGES; i++)
        TAILQ_INIT(&server->pages[i].waiting);
    r = http_server_set_headers(server, NULL, 0);
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
    cleanup_close(&server->handshake_fd);
    http_responses_done(server);
    tls_unref(server->tls);
    free(server);
}

int http_server_set_auth(struct http_server *server, struct auth *auth)
{
    int r = auth ? http_server_watch(server, auth_fd(auth)) : 0;

    if (r == 0)
        server->auth = auth;
    return r;
}

void http_server_set_tls(struct http_server *server, struct tls *tls)
{
    tls_ref(tls);
    tls_unref(server->tls);
    server->tls = tls;
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
    next_us = MIN(next_us, http_pages_next_limit_us(server));
    next_us = MIN(next_us, http_connections_next_limit_us(server));
    if (next_us == UINT64_MAX)
        return -1;
    now = http_server_now_us(server);
    return next_us <= now ? 0 : (int)((next_us - now + 999) / 1000);
}

void http_server_run(struct http_server *server)
{
    struct http_connection *reader;

    http_server_finish_checks(server);
    http_pages_enforce_limit(server);
    http_connections_enforce_limits(server);
    http_handshakes_resume(server);
    http_server_accept(server);
    MHD_run(server->daemon);
    /* Each reader holds the page that it was promised; slow ones must not hold one of every second.
     */
    while (http_pages_are_too_many(server) && (reader = http_connections_slowest_reader(server))) {
        http_connection_cut(server, reader);
        MHD_run(server->daemon);
    }
    if (!server->draining)
        http_handshakes_park(server);
}

void http_server_drain(struct http_server *server)
{
    server->draining = true;
    http_server_stop_accepting(server);
    http_pages_answer_all(server, REPLY_STOPPING);
    http_connection_answer_all(&server->checking, REPLY_STOPPING);
    http_handshakes_unpark_all(server);
}

bool http_server_busy(const struct http_server *server)
{
    return !TAILQ_EMPTY(&server->phases[CONNECTION_BUSY]);
}
