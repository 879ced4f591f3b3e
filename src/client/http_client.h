/*
 * HTTP requests to runtimes on unix sockets and to APIs over TLS. The one user of libcurl.
 *
 * One client belongs to one thread and makes one request at a time; another thread may cancel it.
 * Whatever the peer does, a request ends at its deadline, and nothing longer than its limit is
 * kept.
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
    const char *const *headers;     /* "Name: value", ended by NULL; may be NULL */
    struct span body;               /* POST if it has data (also of length 0), else GET */
    const char *method;             /* another than these; may be NULL */
    bool http2;                     /* with prior knowledge, as gRPC wants it */
    const char *ca_path;            /* https: the PEM file that the peer must be signed by */
    const struct http_trust *trust; /* who the peer must be, instead of by ca_path; may be NULL */
    const char *resolve;            /* "HOST:PORT:ADDRESS": no look-up; NULL, "": none is known */
    bool proxy_by_environment;      /* as https_proxy, all_proxy and no_proxy say; else by none */
    uint64_t timeout_us;            /* for all of it */
    uint64_t connect_timeout_us;    /* up to the end of TLS' handshake; 0: none but timeout_us */
    uint64_t stall_us;              /* the longest silence of the peer; 0: none but timeout_us */
    size_t max_bytes;               /* of the reply's body */
    const char *wanted_header;      /* a header or trailer to return, the last one; may be NULL */

    /* If not NULL, the body is handed over as it comes and not kept, whatever the status. Not 0
     * (a negative errno) ends the request with that and without a text. max_bytes does not
     * apply. */
    int (*on_data)(void *context, struct span data);

    /* If not NULL: called with each header of the final reply, when all of it has come. */
    void (*on_header)(void *context, const char *name, const char *value);
    void *context;
};

struct http_reply {
    int status;
    struct buffer body;
    bool has_header;
    char header[64]; /* the value of wanted_header, or its first bytes */
};

/* Loads libcurl if nobody has: not before there is somebody to ask. 0 or -ENOMEM. */
int http_client_new(struct http_client **ret_client);
void http_client_free(struct http_client *client);

/*
 * Blocks. 0: there was a reply, whatever its status; redirects are not followed. Else one of
 *
 * -ENOENT, -ECONNREFUSED   nobody is there, or the proxy does not let us
 * -EACCES                  not allowed to connect
 * -EPROTO                  somebody is there, but that is not HTTP, or it broke off
 * -ETIMEDOUT               a limit of time is over, wherever it was
 * -EFBIG                   the body is longer than max_bytes, or says that it will be
 * -EKEYREJECTED            TLS: the peer is not who it should be, or ca_path cannot be read
 * -ECANCELED               http_client_cancel was called
 * -EINVAL, -ENAMETOOLONG   no such request can be made
 * -ELIBACC                 there is no libcurl
 * -ENOMEM, -EMFILE, ...    the system has no room for it
 *
 * with a text that says what was tried and why it failed, without the URL's query and password and
 * the proxy's.
 * `ret_reply` is initialised by the caller (http_reply_init) and may be used again; after a failure
 * it is empty.
 */
int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err);

/* From any thread, while the client lives: the request in progress, and every later one, ends with
 * -ECANCELED at once. */
void http_client_cancel(struct http_client *client);

/* By the client's own thread: requests can be made again. */
void http_client_resume(struct http_client *client);

void http_reply_init(struct http_reply *reply);
void http_reply_done(struct http_reply *reply);
