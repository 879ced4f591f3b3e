/* The HTTP server from inside: its parts, and what its own files share. */
#pragma once

#include <microhttpd.h>

#include "net/connections.h"
#include "net/http_connection.h"
#include "net/http_handshakes.h"
#include "net/http_replies.h"
#include "net/http_server.h"
#include "net/http_variants.h"

struct http_server {
    struct http_server_options options;
    struct MHD_Daemon *daemon;
    int epoll_fd; /* the listeners, libmicrohttpd's own epoll, the handshakes' and auth's */
    int listener_fds[HTTP_SERVER_LISTENERS_MAX];
    size_t listener_count;
    uint64_t accept_again_us; /* 0: accepting */
    bool draining;
    struct connections connections;
    struct http_handshakes handshakes;
    struct auth *auth;                    /* NULL: everybody may ask */
    struct http_connection_list checking; /* whose password is being checked */
    struct tls *tls;                      /* for newcomers */
    struct http_headers headers;
    struct http_replies replies;
    struct http_variants variants;
};

static inline uint64_t http_server_now_us(const struct http_server *server)
{
    return server->options.clock->monotonic_us(server->options.clock);
}

/* Of http_server_accept.c: connections that come and go. */
void http_server_accept(struct http_server *server);
void http_server_stop_accepting(struct http_server *server);
void http_server_on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode code);

/* At the next run of libmicrohttpd it is gone. */
void http_server_cut(struct http_server *server, struct connection_state *state);

/* Of http_server_requests.c: requests, from their headers to their replies. */
enum MHD_Result http_server_on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                       const char *method, const char *version, const char *upload,
                                       size_t *upload_len, void **request_state);
void http_server_on_completed(void *cls, struct MHD_Connection *mhd, void **request_state,
                              enum MHD_RequestTerminationCode code);
void http_server_take_verdicts(struct http_server *server);
