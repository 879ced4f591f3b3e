/* Connections: accepted, limited in number and in the length of their phases, parked while they
 * shake hands, and freed. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "core/macros.h"
#include "net/http_server_private.h"

enum {
    /* Of a connection in the kernel, which would let it grow to 4 MiB for each client that does not
     * read. The kernel doubles it; that is 5 MB/s at 100 ms. */
    SEND_BUFFER_BYTES = 256 * 1024,
    LISTENERS_PER_RUN = 16,
    ACCEPTS_PER_RUN = 64,
    RESUMES_PER_RUN = 64,
};

/* After accept(2) failed. */
static const uint64_t accept_pause_us = USEC_PER_SEC / 10;

/* Prometheus scrapes at least every two minutes. */
static const uint64_t phase_limit_us[] = {
    [CONNECTION_FRESH] = 5 * USEC_PER_SEC,
    [CONNECTION_IDLE] = 120 * USEC_PER_SEC,
    [CONNECTION_BUSY] = 30 * USEC_PER_SEC,
    [CONNECTION_WATCHING] = UINT64_MAX,
};

/* How long a scrape waits for its page. */
static const uint64_t answer_limit_us = 2 * USEC_PER_SEC;

/* How long a response may take before it is cut short to make room. */
static const uint64_t BUSY_GRACE_US = USEC_PER_SEC;

static void unpark(struct http_server *server, struct http_connection *c)
{
    if (!c->is_parked)
        return;
    epoll_ctl(server->handshake_fd, EPOLL_CTL_DEL, c->fd, NULL);
    MHD_resume_connection(c->mhd);
    c->is_parked = false;
}

void http_connection_enter(struct http_server *server, struct http_connection *c,
                           enum connection_phase phase)
{
    TAILQ_REMOVE(&server->phases[c->phase], c, by_phase);
    c->phase = phase;
    c->since_us = http_server_now_us(server);
    TAILQ_INSERT_TAIL(&server->phases[phase], c, by_phase);
}

void http_connection_cut(struct http_server *server, struct http_connection *c)
{
    shutdown(c->fd, SHUT_RDWR);
    http_connection_enter(server, c, CONNECTION_CUT);
    unpark(server, c);
}

void http_connection_wait_in(struct http_connection_list *list, struct http_connection *c)
{
    c->waits_in = list;
    TAILQ_INSERT_TAIL(list, c, by_wait);
    MHD_suspend_connection(c->mhd);
}

void http_connection_stop_waiting(struct http_connection *c)
{
    if (c->waits_in)
        TAILQ_REMOVE(c->waits_in, c, by_wait);
    c->waits_in = NULL;
}

void http_connection_answer(struct http_connection *c, enum reply reply)
{
    http_connection_stop_waiting(c);
    c->request.reply = c->request.wants_readiness && reply == REPLY_PAGE ? REPLY_READY : reply;
    MHD_resume_connection(c->mhd);
}

void http_connection_answer_all(struct http_connection_list *waiting, enum reply reply)
{
    struct http_connection *c;

    while ((c = TAILQ_FIRST(waiting)))
        http_connection_answer(c, reply);
}

/* When the first of the list has been there for so long. */
static uint64_t limit_of(const struct http_connection_list *list, uint64_t limit_us)
{
    return TAILQ_EMPTY(list) || limit_us == UINT64_MAX ? UINT64_MAX
                                                       : TAILQ_FIRST(list)->since_us + limit_us;
}

void http_connections_enforce_limits(struct http_server *server)
{
    uint64_t now = http_server_now_us(server);

    for (size_t i = 0; i < HTTP_PAGES; i++)
        while (limit_of(&server->pages[i].waiting, answer_limit_us) <= now)
            http_connection_answer(TAILQ_FIRST(&server->pages[i].waiting), REPLY_NO_ANSWER);
    for (size_t phase = 0; phase < CONNECTION_CUT; phase++)
        while (limit_of(&server->phases[phase], phase_limit_us[phase]) <= now)
            http_connection_cut(server, TAILQ_FIRST(&server->phases[phase]));
}

uint64_t http_connections_next_limit_us(const struct http_server *server)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t i = 0; i < HTTP_PAGES; i++)
        next_us = MIN(next_us, limit_of(&server->pages[i].waiting, answer_limit_us));
    for (size_t phase = 0; phase < CONNECTION_CUT; phase++)
        next_us = MIN(next_us, limit_of(&server->phases[phase], phase_limit_us[phase]));
    return next_us;
}

struct http_connection *http_connections_slowest_reader(struct http_server *server)
{
    struct http_connection *c = TAILQ_FIRST(&server->phases[CONNECTION_BUSY]);

    while (c && c->waits_in) /* for us */
        c = TAILQ_NEXT(c, by_phase);
    return c;
}

/*
 * Which one to cut for a new one, or NULL: the one that has waited longest without a complete
 * request. So a crowd of idle or dripping connections pushes out its own, and a scraper that sends
 * its request is never in line. If all are being answered: the slowest reader, after a second.
 */
static struct http_connection *find_victim(struct http_server *server)
{
    struct http_connection *fresh = TAILQ_FIRST(&server->phases[CONNECTION_FRESH]);
    struct http_connection *idle = TAILQ_FIRST(&server->phases[CONNECTION_IDLE]);
    struct http_connection *reader = http_connections_slowest_reader(server);

    if (fresh && (!idle || fresh->since_us <= idle->since_us))
        return fresh;
    if (idle)
        return idle;
    return reader && http_server_now_us(server) - reader->since_us >= BUSY_GRACE_US ? reader : NULL;
}

int http_server_listen(struct http_server *server, int listener_fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener_fd};
    const int size_bytes = SEND_BUFFER_BYTES;

    /* The sockets that it accepts inherit this. */
    if (setsockopt(listener_fd, SOL_SOCKET, SO_SNDBUF, &size_bytes, sizeof(size_bytes)) < 0 ||
        epoll_ctl(server->listeners_fd, EPOLL_CTL_ADD, listener_fd, &event) < 0)
        return -errno;
    return 0;
}

static void pause_accepting(struct http_server *server, bool paused)
{
    struct epoll_event event = {.events = paused ? 0 : EPOLLIN};

    epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, server->listeners_fd, &event);
    server->accept_again_us = paused ? http_server_now_us(server) + accept_pause_us : 0;
}

void http_server_drain(struct http_server *server)
{
    struct http_connection *c;

    server->draining = true;
    http_events_end(server);
    pause_accepting(server, true);
    server->accept_again_us = 0;
    for (size_t phase = 0; phase < CONNECTION_PHASES; phase++)
        for (c = TAILQ_FIRST(&server->phases[phase]); c; c = TAILQ_NEXT(c, by_phase)) {
            if (c->waits_in)
                http_connection_answer(c, REPLY_STOPPING);
            unpark(server, c);
        }
}

static bool is_full(const struct http_server *server)
{
    return server->connection_count >= server->options.connections_max;
}

static void accept_from(struct http_server *server, int listener_fd)
{
    for (size_t i = 0; i < ACCEPTS_PER_RUN; i++) {
        struct sockaddr_storage address;
        socklen_t address_len = sizeof(address);
        struct http_connection *victim = NULL;
        int fd;

        /* Closes those that were cut, and reads the requests that have come: a connection that sent
         * one by now is not a victim. */
        if (is_full(server))
            MHD_run(server->daemon);
        if (is_full(server)) {
            victim = find_victim(server);
            if (!victim) {
                pause_accepting(server, true);
                return;
            }
        }
        fd = accept4(listener_fd, (struct sockaddr *)&address, &address_len,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            size_t count = server->connection_count;

            if (victim)
                http_connection_cut(server, victim);
            /* It closes the descriptor itself where it fails. From 1.0 on it queues the connection
             * for its next run, without which we would not know that there is one more. */
            (void)MHD_add_connection(server->daemon, fd, (struct sockaddr *)&address, address_len);
            if (server->connection_count == count)
                MHD_run(server->daemon);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The listener stays readable: trying again at once would spin. */
            victim = find_victim(server);
            if (victim)
                http_connection_cut(server, victim);
            pause_accepting(server, true);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
        /* Any other error is about one connection that is gone already. */
    }
}

void http_server_accept(struct http_server *server)
{
    struct epoll_event events[LISTENERS_PER_RUN];
    int n;

    if (server->draining)
        return;
    if (server->accept_again_us != 0 && http_server_now_us(server) >= server->accept_again_us)
        pause_accepting(server, false);
    n = epoll_wait(server->listeners_fd, events, ARRAY_SIZE(events), 0);
    for (int i = 0; i < n && server->accept_again_us == 0; i++)
        accept_from(server, events[i].data.fd);
}

void http_handshakes_park(struct http_server *server)
{
    struct http_connection *c;

    if (server->handshake_fd < 0)
        return;
    for (c = TAILQ_FIRST(&server->phases[CONNECTION_FRESH]); c; c = TAILQ_NEXT(c, by_phase)) {
        struct epoll_event event = {.data.ptr = c};

        if (!c->tls.is_shaking_hands || c->is_parked)
            continue;
        event.events = tls_session_wants_to_write(&c->tls) ? EPOLLOUT : EPOLLIN;
        if (epoll_ctl(server->handshake_fd, EPOLL_CTL_ADD, c->fd, &event) < 0)
            continue;
        MHD_suspend_connection(c->mhd);
        c->is_parked = true;
    }
}

void http_handshakes_resume(struct http_server *server)
{
    struct epoll_event events[RESUMES_PER_RUN];
    int n = server->handshake_fd < 0
                ? 0
                : epoll_wait(server->handshake_fd, events, ARRAY_SIZE(events), 0);

    for (int i = 0; i < n; i++)
        unpark(server, events[i].data.ptr);
}

void http_server_on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode code)
{
    struct http_server *server = cls;
    struct http_connection *c = *socket_context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

        c = calloc(1, sizeof(*c));
        if (!c) {
            shutdown(info->connect_fd, SHUT_RDWR);
            return;
        }
        c->mhd = mhd;
        c->fd = info->connect_fd;
        c->since_us = http_server_now_us(server);
        TAILQ_INSERT_TAIL(&server->phases[CONNECTION_FRESH], c, by_phase);
        server->connection_count++;
        *socket_context = c;
        if (!server->tls)
            return;
        info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        if (!info || tls_session_init(&c->tls, server->tls, info->tls_session) < 0)
            http_connection_cut(server, c);
    } else if (c) {
        http_connection_stop_waiting(c);
        TAILQ_REMOVE(&server->phases[c->phase], c, by_phase);
        server->connection_count--;
        tls_session_done(&c->tls);
        free(c);
    }
}
