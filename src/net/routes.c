#include "net/routes.h"

#include <strings.h>

#include "core/macros.h"
#include "core/span.h"

/* Prometheus sends about 200 bytes; more than this is not negotiated with. */
enum { HEADER_CAP_BYTES = 4096, ELEMENTS_MAX = 64 };

enum { Q_MAX = 1000 };

/* One element of an Accept or Accept-Encoding header: "text/plain;version=0.0.4;q=0.5". */
struct element {
    struct span name;
    struct span version; /* empty: none */
    unsigned q;          /* in thousandths */
};

/* How much something is wanted, by the most specific element that matches it (RFC 9110, 12.5.1). */
struct preference {
    enum { MATCH_NONE, MATCH_ANY, MATCH_TYPE, MATCH_EXACT } match;
    unsigned q;
};

static struct span trim(struct span text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

static struct span unquote(struct span text)
{
    if (text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"')
        return (struct span){text.data + 1, text.len - 2};
    return text;
}

static bool equals_caseless(struct span text, const char *name)
{
    return text.len == strlen(name) && strncasecmp(text.data, name, text.len) == 0;
}

/* RFC 9110, 12.4.2: "0" or "1", and up to three digits after a point, at most 1. */
static bool parse_q(struct span text, unsigned *ret_q)
{
    unsigned q, scale = 100;

    if (text.len == 0 || text.len > 5 || (text.data[0] != '0' && text.data[0] != '1'))
        return false;
    if (text.len > 1 && text.data[1] != '.')
        return false;
    q = text.data[0] == '1' ? Q_MAX : 0;
    for (size_t i = 2; i < text.len; i++, scale /= 10) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        q += (unsigned)(text.data[i] - '0') * scale;
    }
    *ret_q = q;
    return q <= Q_MAX;
}

static bool parse_element(struct span text, struct element *ret_element)
{
    struct element element = {.q = Q_MAX};

    element.name = trim(span_cut(&text, ';'));
    while (text.len > 0) {
        struct span value = span_cut(&text, ';');
        struct span key = trim(span_cut(&value, '='));

        value = trim(value);
        if (equals_caseless(key, "version"))
            element.version = unquote(value);
        else if (equals_caseless(key, "q") && !parse_q(value, &element.q))
            return false;
    }
    *ret_element = element;
    return element.name.len > 0;
}

/* The next well-formed element; others are skipped. */
static bool next_element(struct span *rest, unsigned *budget, struct element *ret_element)
{
    while (rest->len > 0 && (*budget)-- > 0)
        if (parse_element(span_cut(rest, ','), ret_element))
            return true;
    return false;
}

static struct span header_span(const char *header)
{
    size_t len = header ? strnlen(header, HEADER_CAP_BYTES + 1) : 0;

    return len > HEADER_CAP_BYTES ? (struct span){header, 0} : (struct span){header, len};
}

static void prefer(struct preference *preference, unsigned match, unsigned q)
{
    if (match < preference->match)
        return;
    if (match > preference->match)
        *preference = (struct preference){match, q};
    preference->q = MAX(preference->q, q);
}

static enum page_format negotiate_format(const char *accept)
{
    struct span rest = header_span(accept);
    struct preference text = {0}, open = {0};
    unsigned budget = ELEMENTS_MAX;
    struct element e;

    while (next_element(&rest, &budget, &e)) {
        if (equals_caseless(e.name, "*/*")) {
            prefer(&text, MATCH_ANY, e.q);
            prefer(&open, MATCH_ANY, e.q);
        } else if (equals_caseless(e.name, "text/*")) {
            prefer(&text, MATCH_TYPE, e.q);
        } else if (equals_caseless(e.name, "application/*")) {
            prefer(&open, MATCH_TYPE, e.q);
        } else if (equals_caseless(e.name, "text/plain")) {
            if (e.version.len == 0 || span_equals(e.version, "0.0.4"))
                prefer(&text, MATCH_EXACT, e.q);
        } else if (equals_caseless(e.name, "application/openmetrics-text")) {
            if (e.version.len == 0 || span_equals(e.version, "1.0.0") ||
                span_equals(e.version, "0.0.1"))
                prefer(&open, MATCH_EXACT, e.q);
        }
    }
    if (open.q == 0)
        return PAGE_TEXT; /* also where neither is accepted: a 406 would not help */
    if (open.q == text.q)
        return open.match == MATCH_EXACT ? PAGE_OPENMETRICS : PAGE_TEXT;
    return open.q > text.q ? PAGE_OPENMETRICS : PAGE_TEXT;
}

static enum page_encoding negotiate_encoding(const char *accept_encoding)
{
    struct span rest = header_span(accept_encoding);
    struct preference gzip = {0};
    unsigned budget = ELEMENTS_MAX;
    struct element e;

    while (next_element(&rest, &budget, &e)) {
        if (equals_caseless(e.name, "*"))
            prefer(&gzip, MATCH_ANY, e.q);
        else if (equals_caseless(e.name, "gzip") || equals_caseless(e.name, "x-gzip"))
            prefer(&gzip, MATCH_EXACT, e.q);
    }
    return gzip.q > 0 ? PAGE_GZIP : PAGE_IDENTITY;
}

struct route_decision routes_decide(const struct route_request *request, const char *metrics_path,
                                    bool text_only)
{
    static const struct {
        const char *path;
        enum route route;
        enum page_format format;
    } routes[] = {
        {"/", ROUTE_LANDING, 0},
        {"/-/healthy", ROUTE_HEALTHY, 0},
        {"/health", ROUTE_HEALTHY, 0}, /* for liveness probes of other exporters */
        {"/-/ready", ROUTE_READY, 0},
        {"/api/v1/node", ROUTE_API, PAGE_NODE},
        {"/api/v1/history", ROUTE_API, PAGE_HISTORY},
        {"/api/v1/events", ROUTE_EVENTS, 0},
        {"/api/v1/check", ROUTE_API, PAGE_CHECK},
    };
    struct route_decision decision = {.route = ROUTE_NOT_FOUND};

    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        decision.route = ROUTE_METHOD_NOT_ALLOWED;
    } else if (strcmp(request->path, metrics_path) == 0) {
        decision.route = ROUTE_METRICS;
        decision.format = text_only ? PAGE_TEXT : negotiate_format(request->accept);
        decision.encoding = negotiate_encoding(request->accept_encoding);
    } else {
        decision.encoding = negotiate_encoding(request->accept_encoding);
        for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
            if (strcmp(request->path, routes[i].path) == 0) {
                decision.route = routes[i].route;
                decision.format = routes[i].format;
            }
    }
    return decision;
}

bool routes_is_of_api(const char *path)
{
    return strncmp(path, "/api/", strlen("/api/")) == 0;
}

const char *routes_content_type(enum page_format format)
{
    if (page_is_of_api(format))
        return "application/json";
    return format == PAGE_OPENMETRICS ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                      : "text/plain; version=0.0.4; charset=utf-8";
}
