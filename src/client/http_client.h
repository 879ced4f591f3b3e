/*
 * HTTP requests to runtimes on unix sockets and to APIs over TLS. The only user of libcurl.
 *
 * A client belongs to one thread and makes one request at a time; another thread may cancel it.
 * Whatever the peer does, a request ends at its deadline and keeps no more than its limit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"
#include "core/span.h"

struct http_client;
struct http_trust;

struct http_request {
    const char *url;                /* "http://localhost/..." for unix sockets */
    const char *socket_path;        /* NULL: TCP */
    const char *const *headers;     /* "Name: value", NULL-terminated; may be NULL */
    struct span body;               /* POST if its data is not NULL, else GET */
    const char *method;             /* overrides these; may be NULL */
    bool http2;                     /* with prior knowledge, for gRPC */
    const char *ca_path;            /* https: PEM file of CAs; NULL: the system's */
    const struct http_trust *trust; /* verifies the peer instead of ca_path; may be NULL */
    const char *resolve;            /* "HOST:PORT:ADDRESS" replaces the lookup; NULL or "": none */
    bool proxy_by_environment;      /* honours https_proxy, all_proxy and no_proxy; else no proxy */
    uint64_t timeout_us;            /* of the whole request */
    uint64_t connect_timeout_us;    /* up to the end of the TLS handshake; 0: none */
    uint64_t stall_us;              /* the longest silence of the peer; 0: none */
    size_t max_bytes;               /* of the reply's body */

    /* If not NULL, gets the body piece by piece, whatever the status; nothing is kept, and
     * max_bytes does not apply. A negative errno ends the request with it, without a text. */
    int (*on_data)(void *context, struct span data);

    /* If not NULL, called with each header and trailer of the final reply, once it is complete. */
    void (*on_header)(void *context, const char *name, const char *value);
    void *context;
};

struct http_reply {
    int status;
    struct buffer body;
};

void http_reply_init(struct http_reply *reply);
void http_reply_done(struct http_reply *reply);

/* Loads libcurl, unless it is loaded already; without it every request fails. 0 or -ENOMEM. */
int http_client_new(struct http_client **ret_client);
void http_client_free(struct http_client *client);

/*
 * Blocks. 0: there was a reply, whatever its status; redirects are not followed. Else one of
 *
 * -ENOENT, -ECONNREFUSED   no such peer, or the proxy does not let us
 * -EACCES                  not allowed to connect
 * -EPROTO                  the peer does not speak HTTP, or broke off
 * -ETIMEDOUT               a time limit has passed
 * -EFBIG                   the body is longer than max_bytes, or announced to be
 * -EKEYREJECTED            TLS: the peer cannot be verified
 * -ECANCELED               http_client_cancel was called, or the watched descriptor hung up
 * -EINVAL, -ENAMETOOLONG   the request is malformed
 * -ELIBACC                 there is no libcurl
 * -ENOMEM, -EMFILE, ...    out of resources
 *
 * with a text that contains neither the URL's query nor a password of it or of the proxy.
 * `ret_reply` is initialised by the caller and may be used again; after a failure it is empty.
 */
int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err);

/* From any thread: the request in progress, and every later one, ends with -ECANCELED at once. */
void http_client_cancel(struct http_client *client);

/* Before and during each request `attend` is called when `fd` is readable or has hung up. It reads
 * all that is there; true: the request ends with -ECANCELED. -1: watches nothing. */
void http_client_watch(struct http_client *client, int fd, bool (*attend)(int fd));

/* Appends the header of basic authentication, NUL-terminated. */
void http_put_basic(struct buffer *header, const char *user, const char *password);

/* Appends "?name=value", or "&name=value" after the first, percent-encoded. */
void http_put_parameter(struct buffer *url, const char *name, const char *value);
