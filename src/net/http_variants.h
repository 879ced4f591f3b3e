/*
 * Variants of the page: the newest body of each format and encoding, who waits for the next, and
 * its way here from whom we ask for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http_connection.h"
#include "net/http_replies.h"
#include "net/http_server.h"

enum { HTTP_VARIANT_COUNT = PAGE_FORMATS * PAGE_ENCODINGS };

struct http_variant {
    struct MHD_Response *response; /* the newest body that came, or NULL */
    uint64_t generation;
    bool asked;                          /* and not yet answered */
    struct http_connection_list waiting; /* the longest first */
};

/* To be embedded by its owner, who must not move it: bodies point here. */
struct http_variants {
    const struct http_server_options *options; /* whose fetch is asked */
    const struct http_headers *headers;        /* that bodies get when they come */
    size_t body_count;                         /* mapped */
    struct http_variant list[HTTP_VARIANT_COUNT];
};

/* Both must outlive it. */
void http_variants_init(struct http_variants *variants, const struct http_server_options *options,
                        const struct http_headers *headers);

/* When nobody waits or reads any more. */
void http_variants_done(struct http_variants *variants);

struct http_variant *http_variants_get(struct http_variants *variants, enum page_format format,
                                       enum page_encoding encoding);

/* Asks for the newest body, unless that is on its way. REPLY_NONE: who asks is to wait for it. */
enum reply http_variants_ask(struct http_variants *variants, struct http_variant *variant);

/* The three answers, as in http_server.h. */
int http_variants_deliver(struct http_variants *variants, enum page_format format,
                          enum page_encoding encoding, uint64_t generation, int body_fd,
                          size_t body_bytes);
int http_variants_unchanged(struct http_variants *variants, enum page_format format,
                            enum page_encoding encoding);
int http_variants_unavailable(struct http_variants *variants, enum page_format format,
                              enum page_encoding encoding, enum http_server_reason reason);

/* Forgets which bodies we have: each is asked for once more. */
void http_variants_expire(struct http_variants *variants);

/* Answers all that wait, for whatever variant. */
void http_variants_answer_all(struct http_variants *variants, enum reply reply);

/* Answers all that have waited for too long. */
void http_variants_enforce_limit(struct http_variants *variants, uint64_t now_us);

/* When that is next due; UINT64_MAX: never, as things stand. */
uint64_t http_variants_next_limit_us(const struct http_variants *variants);

/* Are more bodies mapped than slow readers may hold? */
bool http_variants_hold_too_many(const struct http_variants *variants);
