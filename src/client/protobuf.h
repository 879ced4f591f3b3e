/*
 * Protobuf's wire format, as far as the kubelet and CRI use it: a reader of one message, and a
 * writer for small requests. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/span.h"

/* A reader. Nested messages and map entries are fields whose `bytes` are a message again. */
struct protobuf {
    struct span rest;
    bool broken; /* malformed from here on; what was read before counts */
};

struct protobuf_field {
    uint32_t number;
    bool is_bytes;  /* length-delimited: `bytes`; else `value` */
    uint64_t value; /* varint, 32 and 64 bits */
    struct span bytes;
};

static inline struct protobuf protobuf_message(struct span bytes)
{
    return (struct protobuf){.rest = bytes};
}

/* The next field, in wire order. False at the end, or where the message is malformed. */
bool protobuf_next(struct protobuf *message, struct protobuf_field *ret_field);

/* The last length-delimited field with this number; empty if there is none, or if the message is
 * malformed anywhere. */
struct span protobuf_find_bytes(struct span message, uint32_t number);

void protobuf_put_varint(struct buffer *out, uint32_t number, uint64_t value);
void protobuf_put_bytes(struct buffer *out, uint32_t number, struct span bytes);
