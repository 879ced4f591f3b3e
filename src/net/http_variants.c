#include "net/http_variants.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/clock.h"
#include "core/macros.h"

/* The newest of each variant, and as many older ones that are still being sent. */
enum { BODIES_MAX = 8 };

/* How long a scrape waits for its body. */
static const uint64_t answer_limit_us = 2 * USEC_PER_SEC;

/* A body's, until its last reader is done. */
struct mapping {
    void *data;
    size_t len;
    size_t *count; /* the variants' */
};

void http_variants_init(struct http_variants *variants, const struct http_server_options *options,
                        const struct http_headers *headers)
{
    *variants = (struct http_variants){.options = options, .headers = headers};
    for (size_t i = 0; i < HTTP_VARIANT_COUNT; i++)
        TAILQ_INIT(&variants->list[i].waiting);
}

void http_variants_done(struct http_variants *variants)
{
    for (size_t i = 0; i < HTTP_VARIANT_COUNT; i++)
        if (variants->list[i].response)
            MHD_destroy_response(variants->list[i].response);
}

struct http_variant *http_variants_get(struct http_variants *variants, enum page_format format,
                                       enum page_encoding encoding)
{
    return &variants->list[(size_t)format * PAGE_ENCODINGS + encoding];
}

enum reply http_variants_ask(struct http_variants *variants, struct http_variant *variant)
{
    size_t index = (size_t)(variant - variants->list);
    int r;

    if (variant->asked)
        return REPLY_NONE;
    r = variants->options->fetch(variants->options->fetch_context, index / PAGE_ENCODINGS,
                                 index % PAGE_ENCODINGS, variant->generation);
    variant->asked = r >= 0;
    return r < 0 ? REPLY_NO_ANSWER : REPLY_NONE;
}

static void unmap_body(void *cls)
{
    struct mapping *mapping = cls;

    munmap(mapping->data, mapping->len);
    (*mapping->count)--;
    free(mapping);
}

/* The response holds the mapping, and drops it when its last reader is done. */
static int map_body(struct http_variants *variants, int fd, size_t len, enum page_format format,
                    enum page_encoding encoding, struct MHD_Response **ret_response)
{
    /* Private: before Linux 6.7 a memfd sealed against writing cannot be mapped shared. */
    void *data = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    struct MHD_Response *response;
    struct mapping *mapping;

    if (data == MAP_FAILED)
        return -errno;
    mapping = malloc(sizeof(*mapping));
    if (!mapping) {
        munmap(data, len);
        return -ENOMEM;
    }
    *mapping = (struct mapping){data, len, &variants->body_count};
    variants->body_count++;
    response =
        MHD_create_response_from_buffer_with_free_callback_cls(len, data, unmap_body, mapping);
    if (!response) {
        unmap_body(mapping);
        return -ENOMEM;
    }
    /* Better no body than a compressed one that does not say so. */
    if (!http_headers_add(response, "Content-Type", routes_content_type(format)) ||
        !http_headers_add(response, "Vary", "Accept, Accept-Encoding") ||
        !http_headers_add_configured(variants->headers, response) ||
        (encoding == PAGE_GZIP && !http_headers_add(response, "Content-Encoding", "gzip"))) {
        MHD_destroy_response(response);
        return -ENOMEM;
    }
    *ret_response = response;
    return 0;
}

int http_variants_deliver(struct http_variants *variants, enum page_format format,
                          enum page_encoding encoding, uint64_t generation, int body_fd,
                          size_t body_bytes)
{
    struct http_variant *variant = http_variants_get(variants, format, encoding);
    struct MHD_Response *response = NULL;
    int r;

    if (!variant->asked)
        return -EPROTO;
    variant->asked = false;
    r = map_body(variants, body_fd, body_bytes, format, encoding, &response);
    if (r < 0) {
        http_connection_answer_all(&variant->waiting, REPLY_FAILED);
        return r;
    }
    if (variant->response)
        MHD_destroy_response(variant->response);
    variant->response = response;
    variant->generation = generation;
    http_connection_answer_all(&variant->waiting, REPLY_BODY);
    return 0;
}

int http_variants_unchanged(struct http_variants *variants, enum page_format format,
                            enum page_encoding encoding)
{
    struct http_variant *variant = http_variants_get(variants, format, encoding);

    if (!variant->asked || !variant->response)
        return -EPROTO;
    variant->asked = false;
    http_connection_answer_all(&variant->waiting, REPLY_BODY);
    return 0;
}

int http_variants_unavailable(struct http_variants *variants, enum page_format format,
                              enum page_encoding encoding, enum http_server_reason reason)
{
    struct http_variant *variant = http_variants_get(variants, format, encoding);

    if (!variant->asked)
        return -EPROTO;
    variant->asked = false;
    http_connection_answer_all(&variant->waiting,
                               reason == HTTP_SERVER_NOT_READY ? REPLY_NOT_READY : REPLY_FAILED);
    return 0;
}

void http_variants_expire(struct http_variants *variants)
{
    for (size_t i = 0; i < HTTP_VARIANT_COUNT; i++)
        variants->list[i].generation = 0;
}

void http_variants_answer_all(struct http_variants *variants, enum reply reply)
{
    for (size_t i = 0; i < HTTP_VARIANT_COUNT; i++)
        http_connection_answer_all(&variants->list[i].waiting, reply);
}

void http_variants_enforce_limit(struct http_variants *variants, uint64_t now_us)
{
    struct http_connection *c;

    for (size_t i = 0; i < HTTP_VARIANT_COUNT; i++)
        while ((c = TAILQ_FIRST(&variants->list[i].waiting)) &&
               now_us - c->state.since_us >= answer_limit_us)
            http_connection_answer(c, REPLY_NO_ANSWER);
}

uint64_t http_variants_next_limit_us(const struct http_variants *variants)
{
    uint64_t next_us = UINT64_MAX;

    for (size_t i = 0; i < HTTP_VARIANT_COUNT; i++) {
        const struct http_connection *c = TAILQ_FIRST(&variants->list[i].waiting);

        if (c)
            next_us = MIN(next_us, c->state.since_us + answer_limit_us);
    }
    return next_us;
}

bool http_variants_hold_too_many(const struct http_variants *variants)
{
    return variants->body_count > BODIES_MAX;
}
