/* Headers of responses: those that the user configured, and ours. All return false: no memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "net/http_server.h"

struct MHD_Response;

/* The configured ones; somebody else's. */
struct http_headers {
    const struct http_server_header *list;
    size_t count;
};

bool http_headers_add(struct MHD_Response *response, const char *name, const char *value);
bool http_headers_add_configured(const struct http_headers *headers, struct MHD_Response *response);

/* One of ours, unless its name is among the configured ones. */
bool http_headers_add_own(const struct http_headers *headers, struct MHD_Response *response,
                          const char *name, const char *value);
