/* The HTTP server from inside: what its files share. */
#pragma once

#include <microhttpd.h>
#include <sys/queue.h>

#include "net/http_server.h"
#include "net/request_check.h"

/* What a request gets. All but REPLY_PAGE and REPLY_EVENTS are built once, by http_responses.c. */
enum reply {
    REPLY_NONE,
    REPLY_PAGE,
    REPLY_ASSET,
    REPLY_ASSET_UNCHANGED,
    REPLY_EVENTS,
    REPLY_LANDING,
    REPLY_HEALTHY,
    REPLY_READY,
    REPLY_NOT_FOUND,
    REPLY_METHOD_NOT_ALLOWED,
    REPLY_MALFORMED,
    REPLY_REQUEST_BODY,
    REPLY_LARGE_HEADERS,
    REPLY_NOT_READY,
    REPLY_FAILING,
    REPLY_NO_ANSWER,
    REPLY_FAILED,
    REPLY_NO_HISTORY,
    REPLY_NO_CHECK,
    REPLY_RUNNING,
    REPLY_STOPPING,
    REPLY_UNAUTHORIZED,
    REPLY_CHECKS_FULL,
    REPLY_VIEWERS_FULL,
    REPLY_COUNT,
};

/* How their texts are written. */
enum reply_syntax { REPLY_PLAIN, REPLY_JSON, REPLY_SYNTAXES };

enum connection_phase {
    CONNECTION_FRESH,    /* from accept to the end of the first request's headers */
    CONNECTION_IDLE,     /* from a response to the end of the next request's headers */
    CONNECTION_BUSY,     /* from there to the end of the response; of a stream, of an event */
    CONNECTION_WATCHING, /* a stream, between two events */
    CONNECTION_CUT,      /* shut down; libmicrohttpd reads an end of file and closes it */
    CONNECTION_PHASES,
};

struct http_connection {
    TAILQ_ENTRY(http_connection) by_phase, by_wait;
    struct MHD_Connection *mhd;
    int fd; /* libmicrohttpd's */
    enum connection_phase phase;
    uint64_t since_us;                     /* when the phase began */
    struct http_connection_list *waits_in; /* suspended, and in this list; NULL: not */
    struct tls_session tls;                /* zeros: none */
    bool is_parked;                        /* suspended in the middle of its handshake */
    struct {
        uint64_t check_id;          /* of its password, while that is being checked */
        bool is_admitted;           /* may be answered */
        bool wants_readiness;       /* GET /-/ready: is there a page? */
        bool is_of_api;             /* errors are JSON */
        struct http_page *page;     /* that it requests, or NULL */
        struct http_viewer *viewer; /* of events, or NULL */
        size_t asset;               /* that it requests: index of asset_responses */
        enum reply reply;
        struct request_check check; /* of its head */
    } request;                      /* the current one */
};

TAILQ_HEAD(http_connection_list, http_connection);

/* A page in memory, until its last reader is done. */
struct http_mapping {
    char *data;
    size_t len;
    size_t refs;
    size_t *count; /* the server's */
};

/* The newest page of one format and encoding. */
struct http_page {
    struct MHD_Response *response; /* NULL: none came yet */
    struct http_mapping *mapping;  /* the response's */
    uint64_t generation;
    uint64_t confirmed_us;               /* when the collector last said that it is the newest */
    bool is_requested;                   /* and has not come yet */
    struct http_connection_list waiting; /* the longest first */
};

enum {
    HTTP_PAGES = PAGE_FORMATS * PAGE_ENCODINGS,
    /* That are still being sent, beside the newest of each. */
    HTTP_OLD_PAGES_MAX = 7,
};

struct http_server {
    struct http_server_options options;
    struct MHD_Daemon *daemon;
    int epoll_fd;             /* of libmicrohttpd's own epoll, the two below, and auth */
    int listeners_fd;         /* epoll */
    int handshake_fd;         /* epoll of the parked connections; -1: no TLS */
    uint64_t accept_again_us; /* 0: accepting */
    uint64_t alive_us;        /* the last sign of life of the process that renders */
    bool draining;
    bool hides_bytes; /* libmicrohttpd does: see request_check.h */
    size_t connection_count;
    struct http_connection_list phases[CONNECTION_PHASES]; /* the oldest first */
    struct http_connection_list checking;                  /* their passwords */
    struct auth *auth;                                     /* NULL: none is needed */
    struct tls *tls;                                       /* for new connections */
    const struct http_server_header *headers;              /* configured by the user */
    size_t header_count;
    struct MHD_Response *replies[REPLY_SYNTAXES][REPLY_COUNT];
    struct MHD_Response **asset_responses; /* [asset_count * PAGE_ENCODINGS] */
    struct http_page pages[HTTP_PAGES];
    size_t mapped_count; /* pages: the newest, and old ones that are still being sent */
    size_t page_count;   /* the newest alone */
    size_t viewer_count; /* of events */
    struct http_connection_list viewers; /* that wait for the next one */
    uint64_t news_us; /* when the collector is asked next, if there are viewers */
};

static inline uint64_t http_server_now_us(const struct http_server *server)
{
    return server->options.clock->monotonic_us(server->options.clock);
}

/*
 * http_connections.c: phases and their limits, which are absolute. libmicrohttpd's own timeout
 * starts over with every byte, so a client that drips one byte a second would stay for ever.
 */
void http_server_accept(struct http_server *server);
void http_server_on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode code);
void http_connection_enter(struct http_server *server, struct http_connection *c,
                           enum connection_phase phase);

/* Shuts the socket down; at the next run of libmicrohttpd it is gone. */
void http_connection_cut(struct http_server *server, struct http_connection *c);

/* Suspends it, in this list, until it is answered. */
void http_connection_wait_in(struct http_connection_list *list, struct http_connection *c);
void http_connection_stop_waiting(struct http_connection *c);
void http_connection_answer(struct http_connection *c, enum reply reply);
void http_connection_answer_all(struct http_connection_list *waiting, enum reply reply);

/* Cuts those past the limit of their phase, and answers those that have waited too long for a page;
 * and when that is next due (UINT64_MAX: never). */
void http_connections_enforce_limits(struct http_server *server);
uint64_t http_connections_next_limit_us(const struct http_server *server);
struct http_connection *http_connections_slowest_reader(struct http_server *server);

/*
 * libmicrohttpd 0.9.75 takes a connection whose handshake waits for the client for one that can be
 * read, and asks to be run again at once: half a handshake would keep a core busy until its
 * deadline. So a connection in the middle of one is suspended ("parked"), and we watch its socket.
 */
void http_handshakes_park(struct http_server *server);   /* all, after libmicrohttpd has run */
void http_handshakes_resume(struct http_server *server); /* those that can go on */

/* http_responses.c: fixed replies, built by http_server_set_headers, and pages. */
void http_responses_done(struct http_server *server);
unsigned http_responses_status(enum reply reply);

struct http_mapping *http_mapping_ref(struct http_mapping *mapping);
void http_mapping_unref(struct http_mapping *mapping);

/* Adds the headers of a stream. */
bool http_responses_describe_events(const struct http_server *server,
                                    struct MHD_Response *response);

/* Fetches the newest page, unless it is on its way. REPLY_NONE: wait for it. */
enum reply http_page_fetch(struct http_server *server, struct http_page *page);

/* http_events.c: streams of documents. The response of a new one, or NULL; the newest document for
 * those who have not seen it; all of them are to end. */
bool http_events_are_full(const struct http_server *server);
struct MHD_Response *http_events_open(struct http_server *server, struct http_connection *c);
void http_events_publish(struct http_server *server, const struct http_page *page);
void http_events_end(struct http_server *server);

/* Asks the collector for news if it is time, and pings viewers; and when that is next due. */
void http_events_run(struct http_server *server);
uint64_t http_events_next_us(const struct http_server *server);
