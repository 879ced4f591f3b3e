#include "net/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/macros.h"
#include "net/connections.h"
#include "net/landing.h"

enum {
    HEADERS_CAP_BYTES = 16 * 1024,
    /* libmicrohttpd keeps the headers, its index of them and the reply's headers in one block. */
    CONNECTION_MEMORY_BYTES = 32 * 1024,
    LANDING_CAP_BYTES = 64 * 1024,
    /* Of a connection in the kernel, which would let it grow to 4 MiB for each client that does not
     * read. The kernel doubles it; that is 5 MB/s at 100 ms. */
    SEND_BUFFER_BYTES = 256 * 1024,
    /* The newest of each variant, and as many older ones that are still being sent. */
    BODIES_MAX = 8,
    ACCEPTS_PER_RUN = 64,
    VARIANT_COUNT = ROUTE_FORMAT_COUNT * ROUTE_ENCODING_COUNT,
};

/* How long a scrape waits for its body, and how long we do not accept after accept(2) failed. */
static const uint64_t answer_limit_us = 2 * USEC_PER_SEC;
static const uint64_t accept_pause_us = USEC_PER_SEC / 10;

enum reply {
    REPLY_NONE,
    REPLY_BODY, /* the variant's own response; the others are fixed */
    REPLY_LANDING,
    REPLY_HEALTHY,
    REPLY_READY,
    REPLY_NOT_FOUND,
    REPLY_METHOD_NOT_ALLOWED,
    REPLY_REQUEST_BODY,
    REPLY_LARGE_HEADERS,
    REPLY_NOT_READY,
    REPLY_NO_ANSWER,
    REPLY_FAILED,
    REPLY_STOPPING,
    REPLY_UNAUTHORIZED,
    REPLY_CHECKS_FULL,
    REPLY_COUNT,
};

static const struct {
    unsigned status;
    bool closes;
    const char *text;
} fixed_replies[REPLY_COUNT] = {
    [REPLY_LANDING] = {200, false, NULL}, /* rendered at start */
    [REPLY_HEALTHY] = {200, false, "healthy\n"},
    [REPLY_READY] = {200, false, "ready\n"},
    [REPLY_NOT_FOUND] = {404, false, "not found\n"},
    [REPLY_METHOD_NOT_ALLOWED] = {405, false, "only GET and HEAD are answered here\n"},
    [REPLY_REQUEST_BODY] = {413, true, "a request must not have a body here\n"},
    [REPLY_LARGE_HEADERS] = {431, true, "the request's headers are over 16 KiB\n"},
    [REPLY_NOT_READY] = {503, false, "nothing has been measured yet, try again in a few seconds\n"},
    [REPLY_NO_ANSWER] = {503, false, "the collector does not answer, see the exporter's log\n"},
    [REPLY_FAILED] = {503, false, "the metrics could not be rendered, see the exporter's log\n"},
    [REPLY_STOPPING] = {503, true, "the exporter is stopping\n"},
    [REPLY_UNAUTHORIZED] = {401, false, "a user and a password are needed here\n"},
    [REPLY_CHECKS_FULL] = {503, false, "too many passwords are being checked, try again\n"},
};

struct connection {
    struct connection_state state;
    TAILQ_ENTRY(connection) by_wait;
    struct connection_list *waits_in; /* suspended, and in this list; NULL: not */
    struct MHD_Connection *mhd;
    struct tls_session tls;  /* zeros: none */
    bool is_parked;          /* suspended in the middle of its handshake */
    uint64_t check_id;       /* of its password, while that is being checked */
    bool is_admitted;        /* the request in hand may be answered */
    struct variant *variant; /* what the request in hand is about, or NULL */
    bool wants_readiness;    /* all it asks is whether there is a body */
    enum reply reply;        /* what it gets, once that is known */
};

TAILQ_HEAD(connection_list, connection);

struct variant {
    struct MHD_Response *response; /* the newest body that came, or NULL */
    uint64_t generation;
    bool asked;                     /* and not yet answered */
    struct connection_list waiting; /* the longest first */
};

struct http_server {
    struct http_server_options options;
    struct MHD_Daemon *daemon;
    int epoll_fd;  /* the listeners, libmicrohttpd's own epoll, and those below */
    int parked_fd; /* with TLS: an epoll of handshakes that wait for the client */
    int listener_fds[HTTP_SERVER_LISTENERS_MAX];
    size_t listener_count;
    uint64_t accept_again_us; /* 0: accepting */
    bool draining;
    struct connections connections;
    struct auth *auth;               /* NULL: everybody may ask */
    struct connection_list checking; /* whose password is being checked */
    struct tls *tls;                 /* for newcomers */
    const struct http_server_header *headers;
    size_t header_count;
    size_t body_count; /* mapped */
    struct variant variants[VARIANT_COUNT];
    struct MHD_Response *fixed[REPLY_COUNT];
};

static size_t variant_index(enum route_format format, enum route_encoding encoding)
{
    return (size_t)format * ROUTE_ENCODING_COUNT + encoding;
}

static uint64_t now_us(const struct http_server *server)
{
    return server->options.clock->monotonic_us(server->options.clock);
}

static void stop_waiting(struct connection *c)
{
    if (c->waits_in)
        TAILQ_REMOVE(c->waits_in, c, by_wait);
    c->waits_in = NULL;
    c->state.waits_for_body = false;
}

static enum MHD_Result wait_in(struct connection_list *list, struct connection *c)
{
    c->waits_in = list;
    c->state.waits_for_body = true;
    TAILQ_INSERT_TAIL(list, c, by_wait);
    MHD_suspend_connection(c->mhd);
    return MHD_YES;
}

static void answer(struct connection *c, enum reply reply)
{
    stop_waiting(c);
    c->reply = c->wants_readiness && reply == REPLY_BODY ? REPLY_READY : reply;
    MHD_resume_connection(c->mhd);
}

static void answer_all(struct connection_list *waiting, enum reply reply)
{
    struct connection *c;

    while ((c = TAILQ_FIRST(waiting)))
        answer(c, reply);
}

static enum reply ask(struct http_server *server, struct variant *variant)
{
    size_t index = (size_t)(variant - server->variants);
    int r;

    if (server->draining)
        return REPLY_STOPPING;
    if (variant->asked)
        return REPLY_NONE;
    r = server->options.fetch(server->options.fetch_context, index / ROUTE_ENCODING_COUNT,
                              index % ROUTE_ENCODING_COUNT, variant->generation);
    variant->asked = r >= 0;
    return r < 0 ? REPLY_NO_ANSWER : REPLY_NONE;
}

static enum MHD_Result send_reply(struct http_server *server, struct connection *c)
{
    struct MHD_Response *response =
        c->reply == REPLY_BODY ? c->variant->response : server->fixed[c->reply];
    unsigned status = c->reply == REPLY_BODY ? 200 : fixed_replies[c->reply].status;

    return MHD_queue_response(c->mhd, status, response);
}

static const char *header(const struct connection *c, const char *name)
{
    return MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, name);
}

/* What is refused before libmicrohttpd would read a request's body. */
static enum reply refuse_early(const struct connection *c)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *length = header(c, "Content-Length");

    if (size && size->header_size > HEADERS_CAP_BYTES)
        return REPLY_LARGE_HEADERS;
    if (header(c, "Transfer-Encoding") || (length && strcmp(length, "0") != 0))
        return REPLY_REQUEST_BODY;
    return REPLY_NONE;
}

static enum reply decide(struct http_server *server, struct connection *c, const char *url,
                         const char *method)
{
    struct route_request request = {method, url, header(c, "Accept"), header(c, "Accept-Encoding")};
    struct route_decision decision = routes_decide(&request, server->options.metrics_path);

    switch (decision.route) {
    case ROUTE_LANDING:
        return REPLY_LANDING;
    case ROUTE_HEALTHY:
        return REPLY_HEALTHY;
    case ROUTE_NOT_FOUND:
        return REPLY_NOT_FOUND;
    case ROUTE_METHOD_NOT_ALLOWED:
        return REPLY_METHOD_NOT_ALLOWED;
    case ROUTE_READY:
    case ROUTE_METRICS:
        break;
    }
    c->wants_readiness = decision.route == ROUTE_READY;
    c->variant = &server->variants[variant_index(decision.format, decision.encoding)];
    return ask(server, c->variant);
}

static enum auth_verdict authenticate(struct http_server *server, struct connection *c)
{
    return server->auth ? auth_check(server->auth, header(c, "Authorization"), &c->check_id)
                        : AUTH_YES;
}

static void admit(struct http_server *server, struct connection *c)
{
    c->is_admitted = true;
    /* How long the check took is not the collector's fault: its time begins here. */
    connections_enter(&server->connections, &c->state, CONNECTION_BUSY);
}

static struct connection *find_check(struct http_server *server, uint64_t id)
{
    struct connection *c = TAILQ_FIRST(&server->checking);

    while (c && c->check_id != id)
        c = TAILQ_NEXT(c, by_wait);
    return c;
}

static void take_verdicts(struct http_server *server)
{
    uint64_t id;
    bool ok;

    while (server->auth && auth_next(server->auth, &id, &ok)) {
        struct connection *c = find_check(server, id); /* NULL: it is gone */

        if (!c)
            continue;
        if (ok)
            admit(server, c);
        answer(c, ok ? REPLY_NONE : REPLY_UNAUTHORIZED);
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
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *c = info ? info->socket_context : NULL;

    (void)version;
    (void)upload;
    if (!c || *upload_len > 0)
        return MHD_NO;
    if (!*request_state) {
        *request_state = c;
        connections_enter(&server->connections, &c->state, CONNECTION_BUSY);
        c->reply = refuse_early(c);
        return c->reply == REPLY_NONE ? MHD_YES : send_reply(server, c);
    }
    if (c->reply == REPLY_NONE && !c->is_admitted)
        switch (authenticate(server, c)) {
        case AUTH_YES:
            admit(server, c);
            break;
        case AUTH_NO:
            c->reply = REPLY_UNAUTHORIZED;
            break;
        case AUTH_BUSY:
            c->reply = REPLY_CHECKS_FULL;
            break;
        case AUTH_LATER:
            return wait_in(&server->checking, c);
        }
    if (c->reply == REPLY_NONE)
        c->reply = decide(server, c, url, method);
    if (c->reply != REPLY_NONE)
        return send_reply(server, c);
    return wait_in(&c->variant->waiting, c);
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **request_state,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *server = cls;
    struct connection *c = *request_state;

    (void)mhd;
    (void)code;
    if (!c)
        return;
    stop_waiting(c);
    c->reply = REPLY_NONE;
    c->variant = NULL;
    c->wants_readiness = false;
    c->is_admitted = false;
    if (c->state.phase == CONNECTION_BUSY)
        connections_enter(&server->connections, &c->state, CONNECTION_IDLE);
}

static int set_up_session(struct http_server *server, struct connection *c)
{
    const union MHD_ConnectionInfo *info;

    if (!server->tls)
        return 0;
    info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (!info)
        return -EIO;
    return tls_session_init(&c->tls, server->tls, info->tls_session);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = cls;
    struct connection *c = *socket_context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

        c = calloc(1, sizeof(*c));
        if (!c) {
            shutdown(info->connect_fd, SHUT_RDWR);
            return;
        }
        c->mhd = mhd;
        connections_add(&server->connections, &c->state, info->connect_fd);
        *socket_context = c;
        if (set_up_session(server, c) < 0)
            connections_cut(&server->connections, &c->state);
    } else if (c) {
        stop_waiting(c);
        connections_remove(&server->connections, &c->state);
        tls_session_done(&c->tls);
        free(c);
    }
}

static struct connection *connection_of(struct connection_state *state)
{
    return (struct connection *)((char *)state - offsetof(struct connection, state));
}

/*
 * libmicrohttpd 0.9.75 takes a connection whose handshake waits for the client for one that can be
 * read, and asks to be run again at once: one half of a handshake would keep a core busy until its
 * deadline. So whoever is in the middle of one is suspended, and we watch the socket.
 */
static void park(struct http_server *server, struct connection *c)
{
    struct epoll_event event = {.events = tls_session_wants_to_write(&c->tls) ? EPOLLOUT : EPOLLIN,
                                .data.ptr = c};

    if (epoll_ctl(server->parked_fd, EPOLL_CTL_ADD, c->state.fd, &event) < 0)
        return;
    MHD_suspend_connection(c->mhd);
    c->is_parked = true;
}

static void unpark(struct http_server *server, struct connection *c)
{
    if (!c->is_parked)
        return;
    epoll_ctl(server->parked_fd, EPOLL_CTL_DEL, c->state.fd, NULL);
    MHD_resume_connection(c->mhd);
    c->is_parked = false;
}

static void park_handshakes(struct http_server *server)
{
    struct connection_state *state = TAILQ_FIRST(&server->connections.phases[CONNECTION_FRESH]);

    if (!server->tls || server->draining)
        return;
    for (; state; state = TAILQ_NEXT(state, by_phase)) {
        struct connection *c = connection_of(state);

        if (c->tls.is_shaking_hands && !c->is_parked)
            park(server, c);
    }
}

static void resume_handshakes(struct http_server *server)
{
    struct epoll_event events[ACCEPTS_PER_RUN];
    int n;

    if (!server->tls)
        return;
    n = epoll_wait(server->parked_fd, events, ARRAY_SIZE(events), 0);
    for (int i = 0; i < n; i++)
        unpark(server, events[i].data.ptr);
}

/* At the next run of libmicrohttpd it is gone. */
static void cut(struct http_server *server, struct connection_state *state)
{
    connections_cut(&server->connections, state);
    unpark(server, connection_of(state));
}

static void enforce_deadlines(struct http_server *server)
{
    uint64_t now = now_us(server);
    struct connection *c;

    for (size_t i = 0; i < VARIANT_COUNT; i++) {
        struct variant *variant = &server->variants[i];

        while ((c = TAILQ_FIRST(&variant->waiting)) && now - c->state.since_us >= answer_limit_us)
            answer(c, REPLY_NO_ANSWER);
    }
    connections_enforce_limits(&server->connections);
}

/* Each reader holds the body that it was promised; readers that take their time must not hold one
 * of every second. */
static void release_old_bodies(struct http_server *server)
{
    struct connection_state *reader;

    while (server->body_count > BODIES_MAX &&
           (reader = connections_slowest_reader(&server->connections))) {
        cut(server, reader);
        MHD_run(server->daemon);
    }
}

static void arm_listeners(struct http_server *server, bool armed)
{
    for (size_t i = 0; i < server->listener_count; i++) {
        struct epoll_event event = {.events = armed ? EPOLLIN : 0,
                                    .data.fd = server->listener_fds[i]};

        epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, server->listener_fds[i], &event);
    }
    server->accept_again_us = armed ? 0 : now_us(server) + accept_pause_us;
}

static bool is_full(const struct http_server *server)
{
    return server->connections.count >= server->options.connections_max;
}

static void accept_from(struct http_server *server, int listener_fd)
{
    for (size_t i = 0; i < ACCEPTS_PER_RUN; i++) {
        struct sockaddr_storage address;
        socklen_t address_len = sizeof(address);
        struct connection_state *victim = NULL;
        int fd;

        /* Closes who was cut before, and reads the requests that are there: who sent one by now is
         * not waiting any more. */
        if (is_full(server))
            MHD_run(server->daemon);
        if (is_full(server)) {
            victim = connections_victim(&server->connections);
            if (!victim) {
                arm_listeners(server, false);
                return;
            }
        }
        fd = accept4(listener_fd, (struct sockaddr *)&address, &address_len,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            if (victim)
                cut(server, victim);
            /* Closes the descriptor itself where it fails. */
            (void)MHD_add_connection(server->daemon, fd, (struct sockaddr *)&address, address_len);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The listener stays readable: to ask again at once would spin. */
            victim = connections_victim(&server->connections);
            if (victim)
                cut(server, victim);
            arm_listeners(server, false);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
        /* Any other error is about one connection that is gone already. */
    }
}

static void accept_newcomers(struct http_server *server)
{
    struct epoll_event events[HTTP_SERVER_LISTENERS_MAX + 1];
    int n;

    if (server->draining)
        return;
    if (server->accept_again_us != 0 && now_us(server) >= server->accept_again_us)
        arm_listeners(server, true);
    n = epoll_wait(server->epoll_fd, events, ARRAY_SIZE(events), 0);
    for (int i = 0; i < n && server->accept_again_us == 0; i++)
        if (events[i].data.fd >= 0)
            accept_from(server, events[i].data.fd);
}

void http_server_run(struct http_server *server)
{
    take_verdicts(server);
    enforce_deadlines(server);
    resume_handshakes(server);
    accept_newcomers(server);
    MHD_run(server->daemon);
    release_old_bodies(server);
    park_handshakes(server);
}

int http_server_fd(const struct http_server *server)
{
    return server->epoll_fd;
}

int http_server_timeout_ms(const struct http_server *server)
{
    uint64_t next_us = server->accept_again_us ? server->accept_again_us : UINT64_MAX, now;
    const struct connection *c;
    MHD_UNSIGNED_LONG_LONG mhd_ms;

    /* It has no timers of its own here: an answer means that work is left from the last run. */
    if (MHD_get_timeout(server->daemon, &mhd_ms) == MHD_YES)
        return 0;
    for (size_t i = 0; i < VARIANT_COUNT; i++) {
        c = TAILQ_FIRST(&server->variants[i].waiting);
        if (c)
            next_us = MIN(next_us, c->state.since_us + answer_limit_us);
    }
    next_us = MIN(next_us, connections_next_limit_us(&server->connections));
    if (next_us == UINT64_MAX)
        return -1;
    now = now_us(server);
    return next_us <= now ? 0 : (int)((next_us - now + 999) / 1000);
}

struct mapping {
    void *data;
    size_t len;
    size_t *count; /* the server's */
};

static void unmap_body(void *cls)
{
    struct mapping *mapping = cls;

    munmap(mapping->data, mapping->len);
    (*mapping->count)--;
    free(mapping);
}

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_configured_headers(const struct http_server *server, struct MHD_Response *response)
{
    for (size_t i = 0; i < server->header_count; i++)
        if (!add_header(response, server->headers[i].name, server->headers[i].value))
            return false;
    return true;
}

/* One of ours, unless its name is among the configured ones. */
static bool add_own_header(const struct http_server *server, struct MHD_Response *response,
                           const char *name, const char *value)
{
    for (size_t i = 0; i < server->header_count; i++)
        if (strcmp(server->headers[i].name, name) == 0)
            return true;
    return add_header(response, name, value);
}

/* The response holds the mapping, and drops it when its last reader is done. */
static int map_body(struct http_server *server, int fd, size_t len, enum route_format format,
                    enum route_encoding encoding, struct MHD_Response **ret_response)
{
    /* Private: before Linux 6.7 a memfd sealed against writing cannot be mapped shared. */
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    struct MHD_Response *response;
    struct mapping *mapping;

    if (data == MAP_FAILED)
        return -errno;
    mapping = malloc(sizeof(*mapping));
    if (!mapping) {
        munmap(data, len);
        return -ENOMEM;
    }
    *mapping = (struct mapping){data, len, &server->body_count};
    server->body_count++;
    response =
        MHD_create_response_from_buffer_with_free_callback_cls(len, data, unmap_body, mapping);
    if (!response) {
        unmap_body(mapping);
        return -ENOMEM;
    }
    /* Better no body than a compressed one that does not say so. */
    if (!add_header(response, "Content-Type", routes_content_type(format)) ||
        !add_header(response, "Vary", "Accept, Accept-Encoding") ||
        !add_configured_headers(server, response) ||
        (encoding == ROUTE_GZIP && !add_header(response, "Content-Encoding", "gzip"))) {
        MHD_destroy_response(response);
        return -ENOMEM;
    }
    *ret_response = response;
    return 0;
}

int http_server_deliver(struct http_server *server, enum route_format format,
                        enum route_encoding encoding, uint64_t generation, int body_fd,
                        size_t body_bytes)
{
    struct variant *variant = &server->variants[variant_index(format, encoding)];
    struct MHD_Response *response = NULL;
    int r;

    if (!variant->asked)
        return -EPROTO;
    variant->asked = false;
    r = map_body(server, body_fd, body_bytes, format, encoding, &response);
    if (r < 0) {
        answer_all(&variant->waiting, REPLY_FAILED);
        return r;
    }
    if (variant->response)
        MHD_destroy_response(variant->response);
    variant->response = response;
    variant->generation = generation;
    answer_all(&variant->waiting, REPLY_BODY);
    return 0;
}

int http_server_unchanged(struct http_server *server, enum route_format format,
                          enum route_encoding encoding)
{
    struct variant *variant = &server->variants[variant_index(format, encoding)];

    if (!variant->asked || !variant->response)
        return -EPROTO;
    variant->asked = false;
    answer_all(&variant->waiting, REPLY_BODY);
    return 0;
}

int http_server_unavailable(struct http_server *server, enum route_format format,
                            enum route_encoding encoding, enum http_server_reason reason)
{
    struct variant *variant = &server->variants[variant_index(format, encoding)];

    if (!variant->asked)
        return -EPROTO;
    variant->asked = false;
    answer_all(&variant->waiting, reason == HTTP_SERVER_NOT_READY ? REPLY_NOT_READY : REPLY_FAILED);
    return 0;
}

void http_server_drain(struct http_server *server)
{
    server->draining = true;
    arm_listeners(server, false);
    server->accept_again_us = 0;
    for (size_t i = 0; i < VARIANT_COUNT; i++)
        answer_all(&server->variants[i].waiting, REPLY_STOPPING);
    answer_all(&server->checking, REPLY_STOPPING);
    for (size_t phase = 0; phase < CONNECTION_PHASES; phase++) {
        struct connection_state *state = TAILQ_FIRST(&server->connections.phases[phase]);

        for (; state; state = TAILQ_NEXT(state, by_phase))
            unpark(server, connection_of(state));
    }
}

bool http_server_busy(const struct http_server *server)
{
    return connections_any_busy(&server->connections);
}

static struct MHD_Response *fixed_response(const struct http_server *server, enum reply reply,
                                           const struct buffer *landing)
{
    const bool html = reply == REPLY_LANDING;
    const char *text = html ? landing->data : fixed_replies[reply].text;
    size_t len = html ? landing->len : strlen(text);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, (void *)text, MHD_RESPMEM_MUST_COPY);
    bool ok;

    if (!response)
        return NULL;
    ok = add_header(response, "Content-Type",
                    html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8") &&
         add_configured_headers(server, response) &&
         add_own_header(server, response, "X-Content-Type-Options", "nosniff");
    if (ok && html)
        ok = add_own_header(server, response, "Content-Security-Policy",
                            "default-src 'none'; style-src 'unsafe-inline'");
    if (ok && reply == REPLY_METHOD_NOT_ALLOWED)
        ok = add_header(response, "Allow", "GET, HEAD");
    if (ok && reply == REPLY_UNAUTHORIZED)
        ok = add_header(response, "WWW-Authenticate",
                        "Basic realm=\"wattribute\", charset=\"UTF-8\"");
    if (ok && reply == REPLY_CHECKS_FULL)
        ok = add_header(response, "Retry-After", "1");
    if (ok && fixed_replies[reply].closes)
        ok = add_header(response, "Connection", "close");
    if (ok)
        return response;
    MHD_destroy_response(response);
    return NULL;
}

static void destroy_responses(struct MHD_Response **responses)
{
    for (size_t i = 0; i < REPLY_COUNT; i++)
        if (responses[i])
            MHD_destroy_response(responses[i]);
}

/* Replaces those that there are; they stay where it fails. */
static int build_fixed_responses(struct http_server *server)
{
    struct MHD_Response *built[REPLY_COUNT] = {NULL};
    struct buffer landing;
    int r = 0;

    buffer_init(&landing, LANDING_CAP_BYTES);
    landing_render(server->options.landing_template, server->options.metrics_path,
                   server->options.version, &landing);
    if (buffer_failed(&landing) || landing.len == 0)
        r = -ENOMEM;
    for (size_t reply = REPLY_LANDING; reply < REPLY_COUNT && r == 0; reply++) {
        built[reply] = fixed_response(server, reply, &landing);
        if (!built[reply])
            r = -ENOMEM;
    }
    buffer_done(&landing);
    destroy_responses(r == 0 ? server->fixed : built);
    if (r == 0)
        memcpy(server->fixed, built, sizeof(built));
    return r;
}

int http_server_set_headers(struct http_server *server, const struct http_server_header *headers,
                            size_t count)
{
    const struct http_server_header *old = server->headers;
    size_t old_count = server->header_count;
    int r;

    server->headers = headers;
    server->header_count = count;
    r = build_fixed_responses(server);
    if (r < 0) {
        server->headers = old;
        server->header_count = old_count;
        return r;
    }
    /* The bodies that we have were given the old ones: each is asked for once more. */
    for (size_t i = 0; i < VARIANT_COUNT; i++)
        server->variants[i].generation = 0;
    return 0;
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

/* libmicrohttpd wants one; but it is set_up_session that gives each session its certificate. */
static int no_certificate(void)
{
    return -1;
}

static int start_daemon(struct http_server *server)
{
    /* -1 tells it from a listener. */
    struct epoll_event event = {.events = EPOLLIN, .data.fd = -1};
    const union MHD_DaemonInfo *info;

    /* No MHD_USE_ERROR_LOG: it writes a line for every client that goes away. No timeout: see
     * connections.h. One connection more than we allow: a newcomer is added before its victim is
     * gone. */
    server->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                             (server->tls ? MHD_USE_TLS : 0),
                         0, NULL, NULL, on_request, server, MHD_OPTION_NOTIFY_CONNECTION,
                         on_connection, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)server->options.connections_max + 1,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY_BYTES,
                         server->tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END,
                         no_certificate, MHD_OPTION_END);
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
    server->parked_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->parked_fd < 0 ||
        epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->parked_fd, &event) < 0)
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
    server->parked_fd = -1;
    server->tls = options->tls ? tls_ref(options->tls) : NULL;
    TAILQ_INIT(&server->checking);
    connections_init(&server->connections, options->clock);
    for (size_t i = 0; i < VARIANT_COUNT; i++)
        TAILQ_INIT(&server->variants[i].waiting);
    r = build_fixed_responses(server);
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
    cleanup_close(&server->parked_fd);
    for (size_t i = 0; i < VARIANT_COUNT; i++)
        if (server->variants[i].response)
            MHD_destroy_response(server->variants[i].response);
    destroy_responses(server->fixed);
    tls_unref(server->tls);
    free(server);
}

int http_server_listen(struct http_server *server, int listener_fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener_fd};
    const int size_bytes = SEND_BUFFER_BYTES;

    if (server->listener_count == HTTP_SERVER_LISTENERS_MAX)
        return -ENOSPC;
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, listener_fd, &event) < 0)
        return -errno;
    /* What it accepts inherits this. */
    if (setsockopt(listener_fd, SOL_SOCKET, SO_SNDBUF, &size_bytes, sizeof(size_bytes)) < 0)
        return -errno;
    server->listener_fds[server->listener_count++] = listener_fd;
    return 0;
}
