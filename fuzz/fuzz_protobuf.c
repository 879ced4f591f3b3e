/* The wire format, message in message: every field lies within the bytes, and what is written anew
 * is read as the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "client/protobuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEPTH_MAX = 8, REST_CAP_BYTES = 1 << 20 };

static void check_copy(const struct protobuf_field *field)
{
    struct protobuf_field again;
    struct protobuf reader;
    struct buffer copy;

    buffer_init(&copy, REST_CAP_BYTES);
    if (field->is_bytes)
        protobuf_put_bytes(&copy, field->number, field->bytes);
    else
        protobuf_put_varint(&copy, field->number, field->value);
    if (buffer_failed(&copy))
        abort();
    reader = protobuf_message((struct span){copy.data, copy.len});
    if (!protobuf_next(&reader, &again) || again.number != field->number ||
        again.is_bytes != field->is_bytes || again.value != field->value ||
        again.bytes.len != field->bytes.len || reader.rest.len != 0)
        abort();
    buffer_done(&copy);
}

static void walk(struct span message, unsigned depth)
{
    struct protobuf reader = protobuf_message(message);
    struct span last = {NULL, 0};
    struct protobuf_field field;

    if (depth > DEPTH_MAX)
        return;
    while (protobuf_next(&reader, &field)) {
        if (field.number == 0 || field.number >= 1U << 29)
            abort();
        check_copy(&field);
        if (!field.is_bytes)
            continue;
        if (field.bytes.data < message.data ||
            field.bytes.data + field.bytes.len > message.data + message.len)
            abort();
        if (field.number == 1)
            last = field.bytes;
        walk(field.bytes, depth + 1);
    }
    if (protobuf_next(&reader, &field) || (!reader.broken && reader.rest.len != 0))
        abort();
    if (protobuf_find_bytes(message, 1).len != (reader.broken ? 0 : last.len))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk((struct span){(const char *)data, size}, 0);
    return 0;
}
