/*
 * Routes: what a request wants, decided from its method, path and two headers alone. Pure: no I/O,
 * no locale, and bounded work whatever the client sends.
 */
#pragma once

#include <stdbool.h>

enum route {
    ROUTE_LANDING,
    ROUTE_METRICS,
    ROUTE_HEALTHY,
    ROUTE_READY,
    ROUTE_NOT_FOUND,
    ROUTE_METHOD_NOT_ALLOWED,
};

/* A body's variant: its format and its encoding. */
enum route_format { ROUTE_TEXT, ROUTE_OPENMETRICS, ROUTE_FORMAT_COUNT };
enum route_encoding { ROUTE_IDENTITY, ROUTE_GZIP, ROUTE_ENCODING_COUNT };

struct route_request {
    const char *method;
    const char *path;            /* without the query */
    const char *accept;          /* NULL: no such header */
    const char *accept_encoding; /* NULL: no such header */
};

struct route_decision {
    enum route route;
    enum route_format format;     /* meaningful for ROUTE_METRICS */
    enum route_encoding encoding; /* meaningful for ROUTE_METRICS */
};

/* `metrics_path` wins over every built-in path, also over "/". With `text_only`, the format is text
 * 0.0.4 whatever the request accepts. */
struct route_decision routes_decide(const struct route_request *request, const char *metrics_path,
                                    bool text_only);

const char *routes_content_type(enum route_format format);
