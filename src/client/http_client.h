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

struct http_request {
    const char *url;            /* "http://localhost/..." for unix sockets */
    const char *socket_path;    /* NULL: TCP */
    const char *const *headers; /* "Name: value", ended by NULL; may be NULL */
    struct span body;           /* POST if it has data (also of length 0), else GET */
    bool http2;                 /* with prior knowledge, as gRPC wants it */
    const char *ca_path;        /* https: the PEM file that the peer must be signed by */
    const char *resolve;        /* "HOST:PORT:ADDRESS": no look-up; may be NULL */
    uint64_t timeout_us;        /* for all of it */
    uint64_t stall_us;          /* the longest silence of the peer; 0: none but timeout_us */
    size_t max_bytes;           /* of the reply's body */
    const char *wanted_header;  /* a header or trailer to return; may be NULL */

    /* If not NULL, the body is handed over as it comes and not kept. Not 0 ends the request with
     * that (a negative errno). max_bytes does not apply. */
    int (*on_data)(void *context, struct span data);
    void *context;
};

struct http_reply {
    int status;
    struct buffer body;
    bool has_header;
    char header[64]; /* of wanted_header: the first bytes */
};

int http_client_new(struct http_client **ret_client);
void http_client_free(struct http_client *client);

/*
 * 0: there was a reply, whatever its status. -ENOENT or -ECONNREFUSED: nobody is there.
 * -EACCES: not allowed to connect. -ETIMEDOUT, -EFBIG (over max_bytes), -ECANCELED, -EPROTO (not
 * HTTP, or it broke off), -EKEYREJECTED (TLS: the peer is not who it should be), -ENOMEM. With a
 * text that says what was tried and why it failed. `ret_reply` is initialised by the caller
 * (http_reply_init) and may be used again.
 */
int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err);

/* From any thread: the request in progress, and every later one, ends with -ECANCELED at once. */
void http_client_cancel(struct http_client *client);

void http_reply_init(struct http_reply *reply);
void http_reply_done(struct http_reply *reply);
