#include "net/http_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "core/macros.h"
#include "net/http_server_private.h"

/* libmicrohttpd keeps the headers, its index of them and the reply's headers in one block. */
enum { CONNECTION_MEMORY_BYTES = 2 * HTTP_HEADERS_MAX_BYTES };

/*
 * The collector pings each 5 s, unless it is busy: it renders the page of 16,000 workloads in a few
 * seconds. Whoever restarts it for this (the kubelet, after three failures) should not do so for a
 * loaded machine.
 */
static const uint64_t SILENCE_MAX_US = 15 * USEC_PER_SEC;

static enum MHD_Result send_events(struct http_server *server, struct http_connection *c)
{
    struct MHD_Response *response = http_events_open(server, c);
    enum MHD_Result r;

    if (!response)
        return MHD_NO;
    r = http_responses_describe_events(server, response)
            ? MHD_queue_response(c->mhd, http_responses_status(REPLY_EVENTS), response)
            : MHD_NO;
    MHD_destroy_response(response);
    return r;
}

static enum MHD_Result send_reply(struct http_server *server, struct http_connection *c)
{
    enum reply reply = c->request.reply;
    struct MHD_Response *response = server->replies[c->request.is_of_api][reply];

    if (reply == REPLY_EVENTS)
        return send_events(server, c);
    if (reply == REPLY_PAGE)
        response = c->request.page->response;
    else if (reply == REPLY_ASSET || reply == REPLY_ASSET_UNCHANGED)
        response = server->asset_responses[c->request.asset];
    return MHD_queue_response(c->mhd, http_responses_status(reply), response);
}

static const char *find_header(const struct http_connection *c, const char *name)
{
    return MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, name);
}

static struct http_connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

/* libmicrohttpd calls this before it decodes the target. What it returns is the state of the
 * request: none yet. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *mhd)
{
    struct http_connection *c = connection_of(mhd);

    (void)cls;
    if (c) {
        c->request.check = (struct request_check){0};
        request_check_add_target(&c->request.check, span_of(target ? target : ""));
    }
    return NULL;
}

static enum MHD_Result add_field(void *cls, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    struct request_check *check = cls;

    (void)kind;
    request_check_add_field(check, span_of(name), span_of(value ? value : ""));
    return MHD_YES;
}

static bool is_malformed(const struct http_server *server, struct http_connection *c,
                         const char *method, const char *version, size_t head_bytes)
{
    struct request_check *check = &c->request.check;

    MHD_get_connection_values(c->mhd, MHD_HEADER_KIND, add_field, check);
    return request_check_is_malformed(check, span_of(version)) ||
           (server->hides_bytes &&
            request_check_has_hidden_bytes(check, span_of(method), span_of(version), head_bytes));
}

/* Before libmicrohttpd would read the request's body. */
static enum reply refuse_early(const struct http_server *server, struct http_connection *c,
                               const char *method, const char *version)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *length = find_header(c, "Content-Length");

    if (size && size->header_size > HTTP_HEADERS_MAX_BYTES)
        return REPLY_LARGE_HEADERS;
    if (!size || is_malformed(server, c, method, version, size->header_size))
        return REPLY_MALFORMED;
    if (find_header(c, "Transfer-Encoding") || (length && strcmp(length, "0") != 0))
        return REPLY_REQUEST_BODY;
    return REPLY_NONE;
}

static enum reply route_asset(const struct http_server *server, struct http_connection *c,
                              const char *path, enum page_encoding encoding)
{
    const struct http_server_options *options = &server->options;
    const struct http_asset *asset = assets_find(options->assets, options->asset_count, path);

    if (!asset)
        return REPLY_NOT_FOUND;
    c->request.asset = (size_t)(asset - options->assets) * PAGE_ENCODINGS + encoding;
    return assets_match_etag(find_header(c, "If-None-Match"), asset->variants[encoding].etag)
               ? REPLY_ASSET_UNCHANGED
               : REPLY_ASSET;
}

static enum reply route(struct http_server *server, struct http_connection *c, const char *url,
                        const char *method)
{
    static const enum reply replies[] = {
        [ROUTE_LANDING] = REPLY_LANDING,
        [ROUTE_HEALTHY] = REPLY_HEALTHY,
        [ROUTE_NOT_FOUND] = REPLY_NOT_FOUND,
        [ROUTE_METHOD_NOT_ALLOWED] = REPLY_METHOD_NOT_ALLOWED,
        [ROUTE_METRICS] = REPLY_NONE,
        [ROUTE_READY] = REPLY_NONE,
        [ROUTE_API] = REPLY_NONE,
        [ROUTE_EVENTS] = REPLY_EVENTS,
    };
    struct route_request request = {method, request_check_path(url), find_header(c, "Accept"),
                                    find_header(c, "Accept-Encoding")};
    struct route_decision decision =
        routes_decide(&request, server->options.metrics_path, server->options.text_only);

    if (http_server_is_silent(server) &&
        (decision.route == ROUTE_HEALTHY || decision.route == ROUTE_READY ||
         decision.route == ROUTE_METRICS || decision.route == ROUTE_API ||
         decision.route == ROUTE_EVENTS))
        return REPLY_NO_ANSWER;
    if (decision.route == ROUTE_NOT_FOUND)
        return route_asset(server, c, request.path, decision.encoding);
    if (decision.route == ROUTE_EVENTS && http_events_are_full(server))
        return REPLY_VIEWERS_FULL;
    if (replies[decision.route] != REPLY_NONE)
        return replies[decision.route];
    c->request.wants_readiness = decision.route == ROUTE_READY;
    if (c->request.wants_readiness && http_server_now_us(server) < server->options.ready_us)
        return REPLY_FAILING;
    c->request.page = &server->pages[(size_t)decision.format * PAGE_ENCODINGS + decision.encoding];
    return server->draining ? REPLY_STOPPING : http_page_fetch(server, c->request.page);
}

static void admit(struct http_server *server, struct http_connection *c)
{
    c->request.is_admitted = true;
    /* The collector's time begins here, however long the check took. */
    http_connection_enter(server, c, CONNECTION_BUSY);
}

/* REPLY_NONE: it is admitted, or waits for the check of its password. */
static enum reply authenticate(struct http_server *server, struct http_connection *c)
{
    switch (server->auth
                ? auth_check(server->auth, find_header(c, "Authorization"), &c->request.check_id)
                : AUTH_YES) {
    case AUTH_YES:
        admit(server, c);
        break;
    case AUTH_NO:
        return REPLY_UNAUTHORIZED;
    case AUTH_BUSY:
        return REPLY_CHECKS_FULL;
    case AUTH_PENDING:
        http_connection_wait_in(&server->checking, c);
        break;
    }
    return REPLY_NONE;
}

static void finish_checks(struct http_server *server)
{
    uint64_t id;
    bool ok;

    while (server->auth && auth_next(server->auth, &id, &ok)) {
        struct http_connection *c = TAILQ_FIRST(&server->checking);

        while (c && c->request.check_id != id)
            c = TAILQ_NEXT(c, by_wait);
        if (!c) /* closed meanwhile */
            continue;
        if (ok)
            admit(server, c);
        http_connection_answer(c, ok ? REPLY_NONE : REPLY_UNAUTHORIZED);
    }
}

/*
 * libmicrohttpd calls this when the headers are complete (*request_state is NULL), again when the
 * request is (for us at once, as there are no bodies), and again after each resume.
 */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **request_state)
{
    struct http_server *server = cls;
    struct http_connection *c = connection_of(mhd);

    (void)upload;
    if (!c || *upload_len > 0)
        return MHD_NO;
    if (!*request_state) {
        *request_state = c;
        http_connection_enter(server, c, CONNECTION_BUSY);
        c->request.reply = refuse_early(server, c, method, version);
        return c->request.reply == REPLY_NONE ? MHD_YES : send_reply(server, c);
    }
    c->request.is_of_api = routes_is_of_api(request_check_path(url));
    if (c->request.reply == REPLY_NONE && !c->request.is_admitted) {
        c->request.reply = authenticate(server, c);
        if (c->waits_in)
            return MHD_YES;
    }
    if (c->request.reply == REPLY_NONE)
        c->request.reply = route(server, c, url, method);
    if (c->request.reply != REPLY_NONE)
        return send_reply(server, c);
    http_connection_wait_in(&c->request.page->waiting, c);
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **request_state,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *server = cls;
    struct http_connection *c = *request_state;

    (void)mhd;
    (void)code;
    if (!c)
        return;
    http_connection_stop_waiting(c);
    memset(&c->request, 0, sizeof(c->request));
    if (c->phase != CONNECTION_CUT)
        http_connection_enter(server, c, CONNECTION_IDLE);
}

/* libmicrohttpd wants one, but http_server_on_connection sets the certificate of each session. */
static int no_certificate(void)
{
    return -1;
}

static int watch(const struct http_server *server, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* An epoll in that of the server. */
static int open_epoll(const struct http_server *server, int *ret_fd)
{
    *ret_fd = epoll_create1(EPOLL_CLOEXEC);
    return *ret_fd < 0 ? -errno : watch(server, *ret_fd);
}

static int start_daemon(struct http_server *server)
{
    const union MHD_DaemonInfo *info;
    int r;

    /* Not that of the headers that we are built with: the library may be newer. */
    server->hides_bytes = strncmp(MHD_get_version(), "0.", 2) == 0;
    /* No MHD_USE_ERROR_LOG: it writes a line for every client that goes away. No timeout: see
     * http_connections.c. One connection more than we allow: a new one is added before its victim
     * is gone. Strict only from 1.0 on: before, it would add nothing to our own checks, and answer
     * a request without Host twice. */
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
            (server->tls ? MHD_USE_TLS : 0),
        0, NULL, NULL, on_request, server, MHD_OPTION_NOTIFY_CONNECTION, http_server_on_connection,
        server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_URI_LOG_CALLBACK,
        on_target, NULL, MHD_OPTION_STRICT_FOR_CLIENT, server->hides_bytes ? 0 : 1,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)server->options.connections_max + 1,
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
    r = watch(server, info->epoll_fd);
    if (r == 0)
        r = open_epoll(server, &server->listeners_fd);
    return r == 0 && server->tls ? open_epoll(server, &server->handshake_fd) : r;
}

int http_server_open(const struct http_server_options *options, struct http_server **ret_server)
{
    struct http_server *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return -ENOMEM;
    server->options = *options;
    http_server_note_life(server);
    server->epoll_fd = server->listeners_fd = server->handshake_fd = -1;
    server->tls = options->tls ? tls_ref(options->tls) : NULL;
    TAILQ_INIT(&server->checking);
    TAILQ_INIT(&server->viewers);
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
    cleanup_close(&server->listeners_fd);
    cleanup_close(&server->handshake_fd);
    http_responses_done(server);
    tls_unref(server->tls);
    free(server);
}

int http_server_set_auth(struct http_server *server, struct auth *auth)
{
    int r = watch(server, auth_fd(auth));

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

void http_server_note_life(struct http_server *server)
{
    server->alive_us = http_server_now_us(server);
}

bool http_server_is_silent(const struct http_server *server)
{
    return http_server_now_us(server) - server->alive_us >= SILENCE_MAX_US;
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
    next_us = MIN(next_us, http_connections_next_limit_us(server));
    next_us = MIN(next_us, http_events_next_us(server));
    if (next_us == UINT64_MAX)
        return -1;
    now = http_server_now_us(server);
    return next_us <= now ? 0 : (int)((next_us - now + 999) / 1000);
}

void http_server_run(struct http_server *server)
{
    struct http_connection *reader;

    finish_checks(server);
    http_connections_enforce_limits(server);
    http_events_run(server);
    http_handshakes_resume(server);
    http_server_accept(server);
    MHD_run(server->daemon);
    /* Each reader holds the page that it was promised; slow ones must not hold one of every second.
     */
    while (server->mapped_count > server->page_count + HTTP_OLD_PAGES_MAX &&
           (reader = http_connections_slowest_reader(server))) {
        http_connection_cut(server, reader);
        MHD_run(server->daemon);
    }
    if (!server->draining)
        http_handshakes_park(server);
}

bool http_server_busy(const struct http_server *server)
{
    return !TAILQ_EMPTY(&server->phases[CONNECTION_BUSY]);
}
