#include "core/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

void buffer_init(struct buffer *buffer, size_t cap_bytes)
{
    *buffer = (struct buffer){.cap_bytes = cap_bytes};
}

void buffer_done(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){.cap_bytes = buffer->cap_bytes};
}

void buffer_wipe(struct buffer *buffer)
{
    if (buffer->data)
        explicit_bzero(buffer->data, buffer->capacity);
    buffer_done(buffer);
}

bool buffer_failed(const struct buffer *buffer)
{
    return buffer->failed;
}

void buffer_fail(struct buffer *buffer)
{
    buffer->failed = true;
}

static bool buffer_reserve(struct buffer *buffer, size_t more)
{
    size_t need, capacity;
    char *data;

    if (buffer->failed)
        return false;
    buffer->is_full = more > buffer->cap_bytes - buffer->len;
    if (buffer->is_full)
        goto fail;
    need = buffer->len + more;
    if (need <= buffer->capacity)
        return true;
    capacity = MIN(MAX(need, MAX(buffer->capacity * 2, (size_t)4096)), buffer->cap_bytes);
    data = realloc(buffer->data, capacity);
    if (!data)
        goto fail;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
fail:
    buffer->failed = true;
    return false;
}

void buffer_bytes(struct buffer *buffer, const char *bytes, size_t len)
{
    if (len == 0 || !buffer_reserve(buffer, len))
        return;
    memcpy(buffer->data + buffer->len, bytes, len);
    buffer->len += len;
}

void buffer_repeat(struct buffer *buffer, size_t offset, size_t len)
{
    if (buffer_reserve(buffer, len)) /* may move the data */
        buffer_bytes(buffer, buffer->data + offset, len);
}

void buffer_str(struct buffer *buffer, const char *text)
{
    buffer_bytes(buffer, text, strlen(text));
}

void buffer_printable(struct buffer *buffer, struct span text)
{
    while (text.len > 0) {
        size_t len = utf8_char_len(text);
        unsigned char c = (unsigned char)text.data[0];

        /* Below U+00A0 there are two blocks of control characters. */
        if (len == 0 || c < ' ' || c == 0x7f || (c == 0xc2 && (unsigned char)text.data[1] < 0xa0)) {
            buffer_char(buffer, '?');
            len = len ? len : 1;
        } else {
            buffer_bytes(buffer, text.data, len);
        }
        text.data += len;
        text.len -= len;
    }
}

void buffer_char(struct buffer *buffer, char c)
{
    buffer_bytes(buffer, &c, 1);
}

void buffer_u64(struct buffer *buffer, uint64_t value)
{
    char digits[20], *p = digits + sizeof(digits);

    do
        *--p = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    buffer_bytes(buffer, p, (size_t)(digits + sizeof(digits) - p));
}

void buffer_hex(struct buffer *buffer, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";

    buffer_char(buffer, digits[byte >> 4]);
    buffer_char(buffer, digits[byte & 15]);
}

void buffer_base64(struct buffer *buffer, struct span bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t group = 0;

        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (i + k < bytes.len ? (uint8_t)bytes.data[i + k] : 0U);
        for (size_t k = 0; k < 4; k++)
            buffer_bytes(buffer, i + k > bytes.len ? "=" : &digits[group >> (18 - 6 * k) & 63], 1);
    }
}

static uint64_t power_of_ten(unsigned digits)
{
    uint64_t power = 1;

    for (unsigned i = 0; i < digits; i++)
        power *= 10;
    return power;
}

void buffer_fixed(struct buffer *buffer, int64_t value, unsigned digits)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    uint64_t scale = power_of_ten(digits);

    if (value < 0)
        buffer_char(buffer, '-');
    buffer_decimal(buffer, magnitude / scale, magnitude % scale, digits);
}

void buffer_decimal(struct buffer *buffer, uint64_t whole, uint64_t fraction, unsigned digits)
{
    uint64_t scale = power_of_ten(digits);

    buffer_u64(buffer, whole);
    if (fraction == 0)
        return;
    buffer_char(buffer, '.');
    for (; fraction > 0 && scale >= 10; fraction %= scale) {
        scale /= 10;
        buffer_char(buffer, (char)('0' + fraction / scale));
    }
}
