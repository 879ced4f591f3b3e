/* Span: a view of bytes with another owner. Parsers take spans and never write to them. */
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

/* Cuts off the front up to the next `delimiter`, which is dropped. The last piece leaves the rest
 * empty. */
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

/* Finds the first line that begins with `prefix`, and returns what follows it; else an empty span.
 */
static inline struct span span_find_line(struct span text, const char *prefix)
{
    while (text.len > 0) {
        struct span line = span_cut(&text, '\n');

        if (span_strip_prefix(&line, prefix))
            return line;
    }
    return (struct span){"", 0};
}
