/* Protobuf messages for tests, made from the inside out. */
#pragma once

#include <string.h>

#include "client/protobuf.h"

enum { WIRE_CAP_BYTES = 64 << 20 };

static inline struct buffer wire_new(void)
{
    struct buffer message;

    buffer_init(&message, WIRE_CAP_BYTES);
    return message;
}

static inline struct span wire_span(const struct buffer *message)
{
    assert_false(buffer_failed(message));
    return (struct span){message->data, message->len};
}

static inline void wire_text(struct buffer *out, uint32_t number, const char *text)
{
    protobuf_put_bytes(out, number, span_of(text));
}

/* Ends `inner`. */
static inline void wire_message(struct buffer *out, uint32_t number, struct buffer *inner)
{
    protobuf_put_bytes(out, number, wire_span(inner));
    buffer_done(inner);
}

/* One entry of a map. */
static inline void wire_entry(struct buffer *out, uint32_t number, const char *key,
                              const char *value)
{
    struct buffer entry = wire_new();

    wire_text(&entry, 1, key);
    wire_text(&entry, 2, value);
    wire_message(out, number, &entry);
}

/* A field of every wire type under numbers that nobody has yet. */
static inline void wire_unknown(struct buffer *out)
{
    static const char fixed32[] = "\xf5\x3f\x01\x02\x03\x04";
    static const char fixed64[] = "\xf1\x3f\x01\x02\x03\x04\x05\x06\x07\x08";

    protobuf_put_varint(out, 1000, 7);
    wire_text(out, 1001, "newer");
    buffer_bytes(out, fixed32, sizeof(fixed32) - 1);
    buffer_bytes(out, fixed64, sizeof(fixed64) - 1);
}

/* A copy of exactly `len` bytes, so that the sanitizer sees a reader that goes beyond them. */
static inline char *wire_cut(struct span message, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);

    assert_non_null(copy);
    if (len > 0)
        memcpy(copy, message.data, len);
    return copy;
}
