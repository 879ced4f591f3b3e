/* Connections: the phase of each, how long it may last, and which one goes if there are too many.
 */
#include <sys/socket.h>

#include "core/macros.h"
#include "net/http_server_private.h"

/* Prometheus scrapes at most every two minutes. */
static const uint64_t phase_limit_us[] = {
    [CONNECTION_FRESH] = 5 * USEC_PER_SEC,
    [CONNECTION_IDLE] = 120 * USEC_PER_SEC,
    [CONNECTION_BUSY] = 30 * USEC_PER_SEC,
};

/* How long a response may take before it is cut short to make room. */
static const uint64_t BUSY_GRACE_US = USEC_PER_SEC;

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
    http_handshake_unpark(server, c);
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

void http_connections_enforce_limits(struct http_server *server)
{
    uint64_t now = http_server_now_us(server);
    struct http_connection *c;

    for (size_t phase = 0; phase < CONNECTION_CUT; phase++)
        while ((c = TAILQ_FIRST(&server->phases[phase])) &&
               now - c->since_us >= phase_limit_us[phase])
            http_connection_cut(server, c);
}

uint64_t http_connections_next_limit_us(const struct http_server *server)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t phase = 0; phase < CONNECTION_CUT; phase++) {
        const struct http_connection *c = TAILQ_FIRST(&server->phases[phase]);

        if (c)
            next_us = MIN(next_us, c->since_us + phase_limit_us[phase]);
    }
    return next_us;
}

struct http_connection *http_connections_slowest_reader(struct http_server *server)
{
    struct http_connection *c = TAILQ_FIRST(&server->phases[CONNECTION_BUSY]);

    while (c && c->waits_in) /* it is we who are slow */
        c = TAILQ_NEXT(c, by_phase);
    return c;
}

struct http_connection *http_connections_victim(struct http_server *server)
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
