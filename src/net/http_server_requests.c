/* Requests, from their headers to their replies. */
#include <string.h>

#include "net/http_server_private.h"

enum { HEADERS_CAP_BYTES = 16 * 1024 };

static enum MHD_Result send_reply(struct http_server *server, struct http_connection *c)
{
    enum reply reply = c->request.reply;

    return MHD_queue_response(c->mhd, http_responses_status(reply),
                              reply == REPLY_PAGE ? c->request.page->response
                                                  : server->replies[reply]);
}

static const char *find_header(const struct http_connection *c, const char *name)
{
    return MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, name);
}

/* Before libmicrohttpd would read the request's body. */
static enum reply refuse_early(const struct http_connection *c)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *length = find_header(c, "Content-Length");

    if (size && size->header_size > HEADERS_CAP_BYTES)
        return REPLY_LARGE_HEADERS;
    if (find_header(c, "Transfer-Encoding") || (length && strcmp(length, "0") != 0))
        return REPLY_REQUEST_BODY;
    return REPLY_NONE;
}

static enum reply route(struct http_server *server, struct http_connection *c, const char *url,
                        const char *method)
{
    static const enum reply replies[] = {
        [ROUTE_LANDING] = REPLY_LANDING,     [ROUTE_HEALTHY] = REPLY_HEALTHY,
        [ROUTE_NOT_FOUND] = REPLY_NOT_FOUND, [ROUTE_METHOD_NOT_ALLOWED] = REPLY_METHOD_NOT_ALLOWED,
        [ROUTE_METRICS] = REPLY_NONE,        [ROUTE_READY] = REPLY_NONE,
    };
    struct route_request request = {method, url, find_header(c, "Accept"),
                                    find_header(c, "Accept-Encoding")};
    struct route_decision decision =
        routes_decide(&request, server->options.metrics_path, server->options.text_only);

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

void http_server_finish_checks(struct http_server *server)
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
        http_connection_enter(server, c, CONNECTION_BUSY);
        c->request.reply = refuse_early(c);
        return c->request.reply == REPLY_NONE ? MHD_YES : send_reply(server, c);
    }
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
    memset(&c->request, 0, sizeof(c->request));
    if (c->phase == CONNECTION_BUSY)
        http_connection_enter(server, c, CONNECTION_IDLE);
}
