/* Requests, from their headers to their replies: who may ask, what is asked, what is answered. */
#include <string.h>

#include "net/http_server_private.h"

enum { HEADERS_CAP_BYTES = 16 * 1024 };

static enum MHD_Result send_reply(struct http_server *server, struct http_connection *c)
{
    struct MHD_Response *response =
        c->reply == REPLY_BODY ? c->variant->response : server->replies.fixed[c->reply];

    return MHD_queue_response(c->mhd, http_replies_status(c->reply), response);
}

static const char *header(const struct http_connection *c, const char *name)
{
    return MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, name);
}

/* What is refused before libmicrohttpd would read a request's body. */
static enum reply refuse_early(const struct http_connection *c)
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

static enum reply decide(struct http_server *server, struct http_connection *c, const char *url,
                         const char *method)
{
    struct route_request request = {method, url, header(c, "Accept"), header(c, "Accept-Encoding")};
    struct route_decision decision =
        routes_decide(&request, server->options.metrics_path, server->options.text_only);

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
        if (http_server_now_us(server) < server->options.ready_us)
            return REPLY_FAILING;
        break;
    case ROUTE_METRICS:
        break;
    }
    c->wants_readiness = decision.route == ROUTE_READY;
    c->variant = http_variants_get(&server->variants, decision.format, decision.encoding);
    return server->draining ? REPLY_STOPPING : http_variants_ask(&server->variants, c->variant);
}

static enum auth_verdict authenticate(struct http_server *server, struct http_connection *c)
{
    return server->auth ? auth_check(server->auth, header(c, "Authorization"), &c->check_id)
                        : AUTH_YES;
}

static void admit(struct http_server *server, struct http_connection *c)
{
    c->is_admitted = true;
    /* How long the check took is not the collector's fault: its time begins here. */
    connections_enter(&server->connections, &c->state, CONNECTION_BUSY);
}

static struct http_connection *find_check(struct http_server *server, uint64_t id)
{
    struct http_connection *c = TAILQ_FIRST(&server->checking);

    while (c && c->check_id != id)
        c = TAILQ_NEXT(c, by_wait);
    return c;
}

void http_server_take_verdicts(struct http_server *server)
{
    uint64_t id;
    bool ok;

    while (server->auth && auth_next(server->auth, &id, &ok)) {
        struct http_connection *c = find_check(server, id); /* NULL: it is gone */

        if (!c)
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
enum MHD_Result http_server_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                       const char *method, const char *version, const char *upload,
                                       size_t *upload_len, void **request_state)
{
    struct http_server *server = cls;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct http_connection *c = info ? info->socket_context : NULL;

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
            http_connection_wait_in(&server->checking, c);
            return MHD_YES;
        }
    if (c->reply == REPLY_NONE)
        c->reply = decide(server, c, url, method);
    if (c->reply != REPLY_NONE)
        return send_reply(server, c);
    http_connection_wait_in(&c->variant->waiting, c);
    return MHD_YES;
}

void http_server_on_completed(void *cls, struct MHD_Connection *mhd, void **request_state,
                              enum MHD_RequestTerminationCode code)
{
    struct http_server *server = cls;
    struct http_connection *c = *request_state;

    (void)mhd;
    (void)code;
    if (!c)
        return;
    http_connection_stop_waiting(c);
    c->reply = REPLY_NONE;
    c->variant = NULL;
    c->wants_readiness = false;
    c->is_admitted = false;
    if (c->state.phase == CONNECTION_BUSY)
        connections_enter(&server->connections, &c->state, CONNECTION_IDLE);
}
