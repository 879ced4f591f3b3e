#include "net/http_replies.h"

#include <errno.h>
#include <microhttpd.h>
#include <string.h>

#include "core/buffer.h"
#include "net/landing.h"

enum { LANDING_CAP_BYTES = 64 * 1024 };

static const struct {
    unsigned status;
    bool closes;
    const char *text;
} fixed_replies[REPLY_COUNT] = {
    [REPLY_BODY] = {200, false, NULL},    /* the variant's */
    [REPLY_LANDING] = {200, false, NULL}, /* rendered at start */
    [REPLY_HEALTHY] = {200, false, "healthy\n"},
    [REPLY_READY] = {200, false, "ready\n"},
    [REPLY_NOT_FOUND] = {404, false, "not found\n"},
    [REPLY_METHOD_NOT_ALLOWED] = {405, false, "only GET and HEAD are answered here\n"},
    [REPLY_REQUEST_BODY] = {413, true, "a request must not have a body here\n"},
    [REPLY_LARGE_HEADERS] = {431, true, "the request's headers are over 16 KiB\n"},
    [REPLY_NOT_READY] = {503, false, "nothing has been measured yet, try again in a few seconds\n"},
    [REPLY_FAILING] = {503, false,
                       "the server ended several times in a row, see the exporter's log\n"},
    [REPLY_NO_ANSWER] = {503, false, "the collector does not answer, see the exporter's log\n"},
    [REPLY_FAILED] = {503, false, "the metrics could not be rendered, see the exporter's log\n"},
    [REPLY_STOPPING] = {503, true, "the exporter is stopping\n"},
    [REPLY_UNAUTHORIZED] = {401, false, "a user and a password are needed here\n"},
    [REPLY_CHECKS_FULL] = {503, false, "too many passwords are being checked, try again\n"},
};

static struct MHD_Response *fixed_response(enum reply reply, const struct buffer *landing,
                                           const struct http_headers *headers)
{
    const bool html = reply == REPLY_LANDING;
    const char *text = html ? landing->data : fixed_replies[reply].text;
    size_t len = html ? landing->len : strlen(text);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, (void *)text, MHD_RESPMEM_MUST_COPY);
    bool ok;

    if (!response)
        return NULL;
    ok = http_headers_add(response, "Content-Type",
                          html ? "text/html; charset=utf-8" : "text/plain; charset=utf-8") &&
         http_headers_add_configured(headers, response) &&
         http_headers_add_own(headers, response, "X-Content-Type-Options", "nosniff");
    if (ok && html)
        ok = http_headers_add_own(headers, response, "Content-Security-Policy",
                                  "default-src 'none'; style-src 'unsafe-inline'");
    if (ok && reply == REPLY_METHOD_NOT_ALLOWED)
        ok = http_headers_add(response, "Allow", "GET, HEAD");
    if (ok && reply == REPLY_UNAUTHORIZED)
        ok = http_headers_add(response, "WWW-Authenticate",
                              "Basic realm=\"wattribute\", charset=\"UTF-8\"");
    if (ok && reply == REPLY_CHECKS_FULL)
        ok = http_headers_add(response, "Retry-After", "1");
    if (ok && fixed_replies[reply].closes)
        ok = http_headers_add(response, "Connection", "close");
    if (ok)
        return response;
    MHD_destroy_response(response);
    return NULL;
}

int http_replies_build(struct http_replies *replies, const struct http_server_options *options,
                       const struct http_headers *headers)
{
    struct http_replies built = {.fixed = {NULL}};
    struct buffer landing;
    int r = 0;

    buffer_init(&landing, LANDING_CAP_BYTES);
    landing_render(options->landing_template, options->metrics_path, options->version, &landing);
    if (buffer_failed(&landing) || landing.len == 0)
        r = -ENOMEM;
    for (size_t reply = REPLY_LANDING; reply < REPLY_COUNT && r == 0; reply++) {
        built.fixed[reply] = fixed_response(reply, &landing, headers);
        if (!built.fixed[reply])
            r = -ENOMEM;
    }
    buffer_done(&landing);
    http_replies_done(r == 0 ? replies : &built);
    if (r == 0)
        *replies = built;
    return r;
}

void http_replies_done(struct http_replies *replies)
{
    for (size_t i = 0; i < REPLY_COUNT; i++)
        if (replies->fixed[i])
            MHD_destroy_response(replies->fixed[i]);
}

unsigned http_replies_status(enum reply reply)
{
    return fixed_replies[reply].status;
}

/* From here on: headers. */

bool http_headers_add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

bool http_headers_add_configured(const struct http_headers *headers, struct MHD_Response *response)
{
    for (size_t i = 0; i < headers->count; i++)
        if (!http_headers_add(response, headers->list[i].name, headers->list[i].value))
            return false;
    return true;
}

bool http_headers_add_own(const struct http_headers *headers, struct MHD_Response *response,
                          const char *name, const char *value)
{
    for (size_t i = 0; i < headers->count; i++)
        if (strcmp(headers->list[i].name, name) == 0)
            return true;
    return http_headers_add(response, name, value);
}
