/*
 * HTTP server: answers scrapes with pages that another process renders. The only user of
 * libmicrohttpd.
 *
 * Single-threaded and driven by its owner's event loop: wait until http_server_fd is readable or
 * http_server_timeout_ms has passed, then call http_server_run. Nothing here blocks or logs.
 *
 * Every scrape calls `fetch` for the newest page; scrapes that come while the answer is on its way
 * wait for the same one. The owner answers later, by http_server_deliver or http_server_answer. A
 * scrape that waits 2 s for it gets a 503. /-/healthy tells whether that process is alive, /-/ready
 * also whether it has a page.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/span.h"
#include "net/assets.h"
#include "net/auth.h"
#include "net/routes.h"
#include "net/tls.h"

/* Limits in size; those in time are in http_connections.c. */
enum {
    HTTP_CONNECTIONS_MAX = 512,
    HTTP_HEADERS_MAX_BYTES = 16 * 1024,
};

struct http_server;

struct http_server_options {
    const struct clock *clock;

    /* Requests the newest page unless it is `have_generation` (0: none); must not answer before it
     * returns. At most one request for each format and encoding is out. 0 or -errno. */
    int (*fetch)(void *context, enum page_format format, enum page_encoding encoding,
                 uint64_t have_generation);
    void *fetch_context;

    const char *metrics_path;
    bool text_only; /* never OpenMetrics, whatever a request accepts */
    const char *version;
    struct span landing_template;    /* HTML with {{metrics_path}} and {{version}} */
    const struct http_asset *assets; /* what it refers to */
    size_t asset_count;
    size_t connections_max; /* at most HTTP_CONNECTIONS_MAX */
    struct tls *tls;        /* NULL: plain HTTP, for good */
    uint64_t ready_us;      /* /-/ready fails until then: servers before this one kept ending */
};

struct http_server_header {
    const char *name, *value;
};

enum http_server_answer {
    HTTP_SERVER_UNCHANGED, /* `have_generation` is the newest */
    HTTP_SERVER_NOT_READY, /* nothing has been measured yet */
    HTTP_SERVER_FAILED,    /* the page could not be rendered */
    HTTP_SERVER_ABSENT,    /* it is switched off */
    HTTP_SERVER_RUNNING,   /* it is being made */
};

/* metrics_path must outlive the server. */
int http_server_open(const struct http_server_options *options, struct http_server **ret_server);

/* Accepts NULL. Open connections are closed as they are. Listeners stay the caller's. */
void http_server_close(struct http_server *server);

/* Accept from this non-blocking listening socket, of any family, from the next run on. */
int http_server_listen(struct http_server *server, int listener_fd);

/*
 * Authentication, the certificate for new connections, and headers for every response (which
 * replace our own of the same name). `auth` and `headers` must outlive the server or the next call;
 * without `auth` every request is allowed. set_tls is for servers that were opened with TLS. On
 * failure all stays as it was.
 */
int http_server_set_auth(struct http_server *server, struct auth *auth);
void http_server_set_tls(struct http_server *server, struct tls *tls);
int http_server_set_headers(struct http_server *server, const struct http_server_header *headers,
                            size_t count);

/* To be called for each sign of life of the process that renders. Without one for 15 s, /-/healthy,
 * /-/ready and the metrics are a 503 at once. */
void http_server_note_life(struct http_server *server);
bool http_server_is_silent(const struct http_server *server); /* there was none for 15 s */

int http_server_fd(const struct http_server *server);
int http_server_timeout_ms(const struct http_server *server); /* -1: none */
void http_server_run(struct http_server *server);

/*
 * The answers to `fetch`; call http_server_run after them. -EPROTO: this page was not requested.
 * deliver maps the sealed descriptor, which stays the caller's; where that fails (-errno) the
 * scrapes that wait get a 503.
 */
int http_server_deliver(struct http_server *server, enum page_format format,
                        enum page_encoding encoding, uint64_t generation, int body_fd,
                        size_t body_bytes);
int http_server_answer(struct http_server *server, enum page_format format,
                       enum page_encoding encoding, enum http_server_answer answer);

/* No more connections and fetches: what waits gets a 503 at the next run, what is being sent goes
 * on. */
void http_server_drain(struct http_server *server);

/* Is a response being prepared or sent? */
bool http_server_busy(const struct http_server *server);
