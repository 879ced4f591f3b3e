/*
 * Replies: what a request may get. Each is fixed, with a response that is built once, but for
 * REPLY_BODY, whose response is the variant's. And the headers that all responses have.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "net/http_server.h"

struct MHD_Response;

/* The headers that the user configured; somebody else's. */
struct http_headers {
    const struct http_server_header *list;
    size_t count;
};

/* All return false: no memory. */
bool http_headers_add(struct MHD_Response *response, const char *name, const char *value);
bool http_headers_add_configured(const struct http_headers *headers, struct MHD_Response *response);

/* One of ours, unless its name is among the configured ones. */
bool http_headers_add_own(const struct http_headers *headers, struct MHD_Response *response,
                          const char *name, const char *value);

enum reply {
    REPLY_NONE,
    REPLY_BODY, /* the variant's own response; the others are fixed */
    REPLY_LANDING,
    REPLY_HEALTHY,
    REPLY_READY,
    REPLY_NOT_FOUND,
    REPLY_METHOD_NOT_ALLOWED,
    REPLY_REQUEST_BODY,
    REPLY_LARGE_HEADERS,
    REPLY_NOT_READY,
    REPLY_FAILING,
    REPLY_NO_ANSWER,
    REPLY_FAILED,
    REPLY_STOPPING,
    REPLY_UNAUTHORIZED,
    REPLY_CHECKS_FULL,
    REPLY_COUNT,
};

/* Zeros: none are built. */
struct http_replies {
    struct MHD_Response *fixed[REPLY_COUNT];
};

/* Replaces those that there are; they stay where it fails. */
int http_replies_build(struct http_replies *replies, const struct http_server_options *options,
                       const struct http_headers *headers);
void http_replies_done(struct http_replies *replies);

unsigned http_replies_status(enum reply reply);
