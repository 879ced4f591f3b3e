/*
 * Buffer: bytes that grow at the end, for rendering. A failed append marks the buffer and drops
 * every later one, so that a renderer checks once, at its end (buffer_failed).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/macros.h"
#include "core/span.h"

struct buffer {
    char *data; /* not NUL-terminated */
    size_t len;
    size_t capacity;
    size_t cap_bytes; /* it never holds more */
    bool failed;
    bool is_full; /* it failed because of `cap_bytes` */
};

void buffer_init(struct buffer *buffer, size_t cap_bytes);
void buffer_done(struct buffer *buffer);
/* As buffer_done, for secrets: overwrites them first. */
void buffer_wipe(struct buffer *buffer);
bool buffer_failed(const struct buffer *buffer);
/* As if an append had failed: for errors of the renderer itself. */
void buffer_fail(struct buffer *buffer);

void buffer_bytes(struct buffer *buffer, const char *bytes, size_t len);
void buffer_str(struct buffer *buffer, const char *text);
/* For a terminal: what would control it, or is not UTF-8, becomes '?'. */
void buffer_printable(struct buffer *buffer, struct span text);
/* Appends a part of itself. */
void buffer_repeat(struct buffer *buffer, size_t offset, size_t len);
void buffer_char(struct buffer *buffer, char c);
void buffer_u64(struct buffer *buffer, uint64_t value);
void buffer_hex(struct buffer *buffer, unsigned char byte);   /* two digits */
void buffer_base64(struct buffer *buffer, struct span bytes); /* RFC 4648, section 4 */

/* value / 10^digits as an exact decimal, without trailing zeros: (1500000, 6) is "1.5". */
void buffer_fixed(struct buffer *buffer, int64_t value, unsigned digits);
/* whole + fraction / 10^digits, likewise. The fraction is less than 1. */
void buffer_decimal(struct buffer *buffer, uint64_t whole, uint64_t fraction, unsigned digits);
