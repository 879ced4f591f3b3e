/* Span: a view of bytes that somebody else owns. Parsers take spans and never write to them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *data;
    size_t len;
};

static inline struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

static inline bool span_equals(struct span span, const char *text)
{
    return strlen(text) == span.len && (span.len == 0 || memcmp(span.data, text, span.len) == 0);
}

/* Cuts `prefix` off the front, or `suffix` off the end, if it is there. */
static inline bool span_strip_prefix(struct span *span, const char *prefix)
{
    size_t len = strlen(prefix);

    if (span->len < len || memcmp(span->data, prefix, len) != 0)
        return false;
    *span = (struct span){span->data + len, span->len - len};
    return true;
}

static inline bool span_strip_suffix(struct span *span, const char *suffix)
{
    size_t len = strlen(suffix);

    if (span->len < len || memcmp(span->data + span->len - len, suffix, len) != 0)
        return false;
    span->len -= len;
    return true;
}

/* Cuts what stands before the next `delimiter` off the front; the rest is what follows it. The last
 * piece leaves the rest empty. */
static inline struct span span_cut(struct span *rest, char delimiter)
{
    const char *at = rest->len ? memchr(rest->data, delimiter, rest->len) : NULL;
    struct span piece = *rest;

    if (!at) {
        *rest = (struct span){piece.data ? piece.data + piece.len : NULL, 0};
        return piece;
    }
    piece.len = (size_t)(at - rest->data);
    *rest = (struct span){at + 1, rest->len - piece.len - 1};
    return piece;
}
