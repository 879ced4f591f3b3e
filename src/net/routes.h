/*
 * Routes: what a request wants, decided from its method, path and two headers alone. Pure: no I/O,
 * no locale, and bounded work whatever the client sends.
 */
#pragma once

#include <stdbool.h>

#include "metrics/page_format.h"

enum route {
    ROUTE_LANDING,
    ROUTE_METRICS,
    ROUTE_API, /* a document of it */
    ROUTE_EVENTS,
    ROUTE_HEALTHY,
    ROUTE_READY,
    ROUTE_NOT_FOUND, /* an asset, or nothing */
    ROUTE_METHOD_NOT_ALLOWED,
};

struct route_request {
    const char *method;
    const char *path;            /* without the query */
    const char *accept;          /* NULL: no such header */
    const char *accept_encoding; /* NULL: no such header */
};

struct route_decision {
    enum route route;
    enum page_format format;     /* meaningful for ROUTE_METRICS and ROUTE_API */
    enum page_encoding encoding; /* likewise, and for an asset */
};

/* `metrics_path` wins over every built-in path, also over "/". With `text_only`, the format is text
 * 0.0.4 whatever the request accepts. */
struct route_decision routes_decide(const struct route_request *request, const char *metrics_path,
                                    bool text_only);

/* Is it below the API, where errors are JSON, too? */
bool routes_is_of_api(const char *path);

const char *routes_content_type(enum page_format format);
