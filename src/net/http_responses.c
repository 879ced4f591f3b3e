/* Responses: the fixed replies with the landing page, its assets, and the pages of metrics. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/buffer.h"
#include "core/json.h"
#include "core/macros.h"
#include "net/http_server_private.h"

enum { REPLY_CAP_BYTES = 64 * 1024, ERROR_MAX_BYTES = 256 };

static const struct {
    unsigned status;
    const char *text;
    const char *header, *value; /* an additional one */
} fixed_replies[REPLY_COUNT] = {
    [REPLY_PAGE] = {.status = 200},
    [REPLY_ASSET] = {.status = 200},
    [REPLY_ASSET_UNCHANGED] = {.status = 304}, /* of the same response, whose body is not sent */
    [REPLY_EVENTS] = {.status = 200},
    [REPLY_LANDING] = {.status = 200},
    [REPLY_HEALTHY] = {.status = 200, .text = "healthy\n"},
    [REPLY_READY] = {.status = 200, .text = "ready\n"},
    [REPLY_NOT_FOUND] = {.status = 404, .text = "not found\n"},
    [REPLY_METHOD_NOT_ALLOWED] = {405, "only GET and HEAD are answered here\n", "Allow",
                                  "GET, HEAD"},
    [REPLY_MALFORMED] = {400, "the request is malformed (RFC 9112)\n", "Connection", "close"},
    [REPLY_REQUEST_BODY] = {413, "a request must not have a body here\n", "Connection", "close"},
    [REPLY_LARGE_HEADERS] = {431, "the request's headers are over 16 KiB\n", "Connection", "close"},
    [REPLY_NOT_READY] = {.status = 503,
                         .text = "nothing has been measured yet, try again in a few seconds\n"},
    [REPLY_FAILING] = {.status = 503,
                       .text = "the server ended several times in a row, see the exporter's log\n"},
    [REPLY_NO_ANSWER] = {.status = 503,
                         .text = "the collector does not answer, see the exporter's log\n"},
    [REPLY_FAILED] = {.status = 503,
                      .text = "the page could not be rendered, see the exporter's log\n"},
    [REPLY_NO_HISTORY] = {.status = 404, .text = "the history is switched off (--no-history)\n"},
    [REPLY_NO_CHECK] = {.status = 404, .text = "a replay has no sources of this node to check\n"},
    [REPLY_RUNNING] = {202, "{\"state\":\"running\"}", "Retry-After", "1"},
    [REPLY_STOPPING] = {503, "the exporter is stopping\n", "Connection", "close"},
    [REPLY_UNAUTHORIZED] = {401, "a user and a password are needed here\n", "WWW-Authenticate",
                            "Basic realm=\"wattribute\", charset=\"UTF-8\""},
    [REPLY_VIEWERS_FULL] = {503, "too many viewers: poll /api/v1/node instead\n", "Retry-After",
                            "60"},
    [REPLY_CHECKS_FULL] = {503, "too many passwords are being checked, try again\n", "Retry-After",
                           "1"},
};

/* Of the landing page and its assets. All that runs, is loaded or is asked is ours. no-cache: keep
 * it, and ask each time whether it still holds. */
static const struct http_server_header html_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
     "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"Referrer-Policy", "no-referrer"},
    {"Cache-Control", "no-cache"},
};

unsigned http_responses_status(enum reply reply)
{
    return fixed_replies[reply].status;
}

struct header_list {
    const struct http_server_header *items;
    size_t count;
};

static bool header_add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool header_add_configured(struct MHD_Response *response, struct header_list headers)
{
    for (size_t i = 0; i < headers.count; i++)
        if (!header_add(response, headers.items[i].name, headers.items[i].value))
            return false;
    return true;
}

/* Unless the user configured one of this name. NULL: none. */
static bool header_add_default(struct MHD_Response *response, struct header_list headers,
                               const char *name, const char *value)
{
    for (size_t i = 0; i < headers.count && name; i++)
        if (strcmp(headers.items[i].name, name) == 0)
            return true;
    return !name || header_add(response, name, value);
}

static bool header_add_html(struct MHD_Response *response, struct header_list headers)
{
    for (size_t i = 0; i < ARRAY_SIZE(html_headers); i++)
        if (!header_add_default(response, headers, html_headers[i].name, html_headers[i].value))
            return false;
    return true;
}

static void append_escaped(struct buffer *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

    for (; *text; text++) {
        const char *at = strchr(special, *text);

        if (at)
            buffer_str(out, entities[at - special]);
        else
            buffer_char(out, *text);
    }
}

/* The template with {{metrics_path}} and {{version}} replaced, escaped for HTML. */
static void render_landing(const struct http_server_options *options, struct buffer *out)
{
    struct span rest = options->landing_template;

    while (rest.len > 0) {
        if (span_strip_prefix(&rest, "{{metrics_path}}")) {
            append_escaped(out, options->metrics_path);
        } else if (span_strip_prefix(&rest, "{{version}}")) {
            append_escaped(out, options->version);
        } else {
            buffer_char(out, *rest.data++);
            rest.len--;
        }
    }
}

/* "not found\n" as {"error":"not found"}. */
static void render_error(enum reply reply, struct buffer *out)
{
    char text[ERROR_MAX_BYTES];

    snprintf(text, sizeof(text), "%.*s", (int)strcspn(fixed_replies[reply].text, "\n"),
             fixed_replies[reply].text);
    buffer_char(out, '{');
    json_member(out, "error", text);
    buffer_char(out, '}');
}

static void render_reply(const struct http_server_options *options, enum reply reply,
                         enum reply_syntax syntax, struct buffer *out)
{
    if (reply == REPLY_LANDING)
        render_landing(options, out);
    else if (syntax == REPLY_JSON && fixed_replies[reply].status >= 400)
        render_error(reply, out);
    else
        buffer_str(out, fixed_replies[reply].text);
}

static struct MHD_Response *build_reply(const struct http_server_options *options, enum reply reply,
                                        enum reply_syntax syntax, struct header_list headers)
{
    const char *type = reply == REPLY_LANDING ? "text/html; charset=utf-8"
                       : syntax == REPLY_JSON ? "application/json"
                                              : "text/plain; charset=utf-8";
    struct MHD_Response *response = NULL;
    struct buffer body;

    buffer_init(&body, REPLY_CAP_BYTES);
    render_reply(options, reply, syntax, &body);
    if (!buffer_failed(&body) && body.len > 0)
        response = MHD_create_response_from_buffer(body.len, body.data, MHD_RESPMEM_MUST_COPY);
    buffer_done(&body);
    if (!response)
        return NULL;
    if (header_add(response, "Content-Type", type) && header_add_configured(response, headers) &&
        (reply != REPLY_LANDING || header_add_html(response, headers)) &&
        header_add_default(response, headers, "X-Content-Type-Options", "nosniff") &&
        header_add_default(response, headers, syntax == REPLY_JSON ? "Cache-Control" : NULL,
                           "no-store") &&
        header_add_default(response, headers, fixed_replies[reply].header,
                           fixed_replies[reply].value))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

static struct MHD_Response *build_asset(const struct http_asset *asset, enum page_encoding encoding,
                                        struct header_list headers)
{
    struct span body = asset->variants[encoding].body;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(body.len, (void *)body.data, MHD_RESPMEM_PERSISTENT);

    if (!response)
        return NULL;
    if (header_add(response, "Content-Type", asset->content_type) &&
        header_add(response, "Vary", "Accept-Encoding") &&
        header_add(response, "ETag", asset->variants[encoding].etag) &&
        (encoding != PAGE_GZIP || header_add(response, "Content-Encoding", "gzip")) &&
        header_add_configured(response, headers) && header_add_html(response, headers) &&
        header_add_default(response, headers, "X-Content-Type-Options", "nosniff"))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

static void destroy_assets(struct MHD_Response **responses, size_t count)
{
    for (size_t i = 0; i < count && responses; i++)
        if (responses[i])
            MHD_destroy_response(responses[i]);
    free(responses);
}

/* NULL: out of memory. */
static struct MHD_Response **build_assets(const struct http_server_options *options,
                                          struct header_list headers)
{
    size_t count = options->asset_count * PAGE_ENCODINGS;
    struct MHD_Response **built = calloc(count + 1, sizeof(struct MHD_Response *));

    for (size_t i = 0; i < count && built; i++) {
        built[i] = build_asset(&options->assets[i / PAGE_ENCODINGS], i % PAGE_ENCODINGS, headers);
        if (!built[i]) {
            destroy_assets(built, count);
            return NULL;
        }
    }
    return built;
}

static void destroy_replies(struct MHD_Response *replies[REPLY_SYNTAXES][REPLY_COUNT])
{
    for (size_t syntax = 0; syntax < REPLY_SYNTAXES; syntax++)
        for (size_t i = 0; i < REPLY_COUNT; i++)
            if (replies[syntax][i])
                MHD_destroy_response(replies[syntax][i]);
}

int http_server_set_headers(struct http_server *server, const struct http_server_header *headers,
                            size_t count)
{
    struct header_list list = {headers, count};
    struct MHD_Response *built[REPLY_SYNTAXES][REPLY_COUNT] = {0};
    struct MHD_Response **assets = build_assets(&server->options, list);
    size_t asset_count = server->options.asset_count * PAGE_ENCODINGS;
    bool ok = assets != NULL;

    for (size_t syntax = 0; syntax < REPLY_SYNTAXES; syntax++)
        for (size_t reply = REPLY_LANDING; reply < REPLY_COUNT && ok; reply++) {
            built[syntax][reply] = build_reply(&server->options, reply, syntax, list);
            ok = built[syntax][reply] != NULL;
        }
    destroy_replies(ok ? server->replies : built);
    destroy_assets(ok ? server->asset_responses : assets, asset_count);
    if (!ok)
        return -ENOMEM;
    memcpy(server->replies, built, sizeof(built));
    server->asset_responses = assets;
    server->headers = headers;
    server->header_count = count;
    /* Pages have headers, too: each is fetched once more. */
    for (size_t i = 0; i < HTTP_PAGES; i++)
        server->pages[i].generation = 0;
    http_events_end(server); /* so have streams, and the password may be another one */
    return 0;
}

void http_responses_done(struct http_server *server)
{
    destroy_replies(server->replies);
    destroy_assets(server->asset_responses, server->options.asset_count * PAGE_ENCODINGS);
    for (size_t i = 0; i < HTTP_PAGES; i++)
        if (server->pages[i].response)
            MHD_destroy_response(server->pages[i].response);
}

struct http_mapping *http_mapping_ref(struct http_mapping *mapping)
{
    mapping->refs++;
    return mapping;
}

void http_mapping_unref(struct http_mapping *mapping)
{
    if (--mapping->refs > 0)
        return;
    munmap(mapping->data, mapping->len);
    (*mapping->count)--;
    free(mapping);
}

static void unmap_page(void *cls)
{
    http_mapping_unref(cls);
}

bool http_responses_describe_events(const struct http_server *server, struct MHD_Response *response)
{
    const struct header_list headers = {server->headers, server->header_count};

    return header_add(response, "Content-Type", "text/event-stream") &&
           header_add_configured(response, headers) &&
           header_add_default(response, headers, "Cache-Control", "no-store") &&
           header_add_default(response, headers, "X-Content-Type-Options", "nosniff") &&
           /* nginx would collect events for a while. */
           header_add_default(response, headers, "X-Accel-Buffering", "no");
}

/* The response owns the mapping. */
static int map_page(struct http_server *server, const struct http_page *page, int fd, size_t len,
                    struct MHD_Response **ret_response, struct http_mapping **ret_mapping)
{
    size_t index = (size_t)(page - server->pages);
    const struct header_list headers = {server->headers, server->header_count};
    enum page_format format = index / PAGE_ENCODINGS;
    /* Private: before Linux 6.7 a memfd sealed against writing cannot be mapped shared. */
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    struct MHD_Response *response;
    struct http_mapping *mapping;

    if (data == MAP_FAILED)
        return -errno;
    mapping = malloc(sizeof(*mapping));
    if (!mapping) {
        munmap(data, len);
        return -ENOMEM;
    }
    *mapping = (struct http_mapping){data, len, 1, &server->mapped_count};
    server->mapped_count++;
    response =
        MHD_create_response_from_buffer_with_free_callback_cls(len, data, unmap_page, mapping);
    if (!response) {
        unmap_page(mapping);
        return -ENOMEM;
    }
    /* Better no page than a compressed one without its header. */
    if (!header_add(response, "Content-Type", routes_content_type(format)) ||
        !header_add(response, "Vary", "Accept, Accept-Encoding") ||
        !header_add_configured(response, headers) ||
        !header_add_default(response, headers, page_is_of_api(format) ? "Cache-Control" : NULL,
                            "no-store") ||
        !header_add_default(response, headers,
                            page_is_of_api(format) ? "X-Content-Type-Options" : NULL, "nosniff") ||
        (index % PAGE_ENCODINGS == PAGE_GZIP &&
         !header_add(response, "Content-Encoding", "gzip"))) {
        MHD_destroy_response(response);
        return -ENOMEM;
    }
    *ret_response = response;
    *ret_mapping = mapping;
    return 0;
}

enum reply http_page_fetch(struct http_server *server, struct http_page *page)
{
    size_t index = (size_t)(page - server->pages);

    if (!page->is_requested)
        page->is_requested =
            server->options.fetch(server->options.fetch_context, index / PAGE_ENCODINGS,
                                  index % PAGE_ENCODINGS, page->generation) == 0;
    return page->is_requested ? REPLY_NONE : REPLY_NO_ANSWER;
}

int http_server_deliver(struct http_server *server, enum page_format format,
                        enum page_encoding encoding, uint64_t generation, int body_fd,
                        size_t body_bytes)
{
    struct http_page *page = &server->pages[(size_t)format * PAGE_ENCODINGS + encoding];
    struct MHD_Response *response = NULL;
    struct http_mapping *mapping = NULL;
    int r;

    if (!page->is_requested)
        return -EPROTO;
    page->is_requested = false;
    r = map_page(server, page, body_fd, body_bytes, &response, &mapping);
    if (r == 0) {
        if (page->response)
            MHD_destroy_response(page->response);
        else
            server->page_count++;
        page->response = response;
        page->mapping = mapping;
        page->generation = generation;
        page->confirmed_us = http_server_now_us(server);
        http_events_publish(server, page);
    }
    http_connection_answer_all(&page->waiting, r == 0 ? REPLY_PAGE : REPLY_FAILED);
    return r;
}

int http_server_answer(struct http_server *server, enum page_format format,
                       enum page_encoding encoding, enum http_server_answer answer)
{
    const enum reply replies[] = {
        [HTTP_SERVER_UNCHANGED] = REPLY_PAGE,
        [HTTP_SERVER_NOT_READY] = REPLY_NOT_READY,
        [HTTP_SERVER_FAILED] = REPLY_FAILED,
        [HTTP_SERVER_ABSENT] = format == PAGE_CHECK ? REPLY_NO_CHECK : REPLY_NO_HISTORY,
        [HTTP_SERVER_RUNNING] = REPLY_RUNNING,
    };
    struct http_page *page = &server->pages[(size_t)format * PAGE_ENCODINGS + encoding];

    if (!page->is_requested || (answer == HTTP_SERVER_UNCHANGED && !page->response))
        return -EPROTO;
    page->is_requested = false;
    if (answer == HTTP_SERVER_UNCHANGED) {
        page->confirmed_us = http_server_now_us(server);
        http_events_publish(server, page);
    }
    http_connection_answer_all(&page->waiting, replies[answer]);
    return 0;
}
