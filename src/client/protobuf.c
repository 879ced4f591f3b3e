#include "client/protobuf.h"

#include "core/macros.h"

enum wire_type { WIRE_VARINT = 0, WIRE_64_BIT = 1, WIRE_BYTES = 2, WIRE_32_BIT = 5 };

enum { VARINT_MAX_BYTES = 10 };

static struct span cut_front(struct span *rest, size_t len)
{
    struct span front = {rest->data, len};

    *rest = (struct span){rest->data + len, rest->len - len};
    return front;
}

static bool read_varint(struct span *rest, uint64_t *ret_value)
{
    size_t len = MIN(rest->len, (size_t)VARINT_MAX_BYTES);
    uint64_t value = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)rest->data[i];

        /* Nine bytes hold 63 bits. */
        if (i == VARINT_MAX_BYTES - 1 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            cut_front(rest, i + 1);
            *ret_value = value;
            return true;
        }
    }
    return false;
}

/* Little-endian. */
static bool read_fixed(struct span *rest, size_t len, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (len > rest->len)
        return false;
    for (size_t i = 0; i < len; i++)
        value |= (uint64_t)(unsigned char)rest->data[i] << (8 * i);
    cut_front(rest, len);
    *ret_value = value;
    return true;
}

static bool read_bytes(struct span *rest, struct span *ret_bytes)
{
    uint64_t len;

    if (!read_varint(rest, &len) || len > rest->len)
        return false;
    *ret_bytes = cut_front(rest, (size_t)len);
    return true;
}

static bool read_field(struct span *rest, struct protobuf_field *ret_field)
{
    struct protobuf_field field = {0};
    bool is_read = false;
    uint64_t key;

    if (!read_varint(rest, &key) || key > UINT32_MAX)
        return false;
    field.number = (uint32_t)(key >> 3);
    if (field.number == 0)
        return false;
    switch (key & 7) {
    case WIRE_VARINT:
        is_read = read_varint(rest, &field.value);
        break;
    case WIRE_64_BIT:
        is_read = read_fixed(rest, 8, &field.value);
        break;
    case WIRE_32_BIT:
        is_read = read_fixed(rest, 4, &field.value);
        break;
    case WIRE_BYTES:
        is_read = field.is_bytes = read_bytes(rest, &field.bytes);
        break;
    default: /* groups (3, 4) are not in proto3; 6 and 7 are undefined */
        break;
    }
    if (is_read)
        *ret_field = field;
    return is_read;
}

bool protobuf_next(struct protobuf *message, struct protobuf_field *ret_field)
{
    if (message->broken || message->rest.len == 0)
        return false;
    message->broken = !read_field(&message->rest, ret_field);
    return !message->broken;
}

struct span protobuf_find_bytes(struct span message, uint32_t number)
{
    struct protobuf reader = protobuf_message(message);
    struct span found = {NULL, 0};
    struct protobuf_field field;

    while (protobuf_next(&reader, &field))
        if (field.is_bytes && field.number == number)
            found = field.bytes;
    return reader.broken ? (struct span){NULL, 0} : found;
}

static void put_raw_varint(struct buffer *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        buffer_char(out, (char)(unsigned char)(value | 0x80));
    buffer_char(out, (char)value);
}

void protobuf_put_varint(struct buffer *out, uint32_t number, uint64_t value)
{
    put_raw_varint(out, (uint64_t)number << 3 | WIRE_VARINT);
    put_raw_varint(out, value);
}

void protobuf_put_bytes(struct buffer *out, uint32_t number, struct span bytes)
{
    put_raw_varint(out, (uint64_t)number << 3 | WIRE_BYTES);
    put_raw_varint(out, bytes.len);
    buffer_bytes(out, bytes.data, bytes.len);
}
