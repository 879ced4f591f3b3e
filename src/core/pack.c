#include "core/pack.h"

#include <errno.h>
#include <string.h>

void pack_u64(struct buffer *buffer, uint64_t value)
{
    buffer_bytes(buffer, (const char *)&value, sizeof(value));
}

/* With a NUL after it, so that a text can be used in place. */
void pack_bytes(struct buffer *buffer, struct span bytes)
{
    pack_u64(buffer, bytes.len);
    buffer_bytes(buffer, bytes.data, bytes.len);
    buffer_char(buffer, '\0');
}

void pack_text(struct buffer *buffer, const char *text)
{
    pack_bytes(buffer, span_of(text ? text : ""));
}

static void unpack_skip(struct unpack *unpack, size_t len)
{
    unpack->rest.data += len;
    unpack->rest.len -= len;
}

uint64_t unpack_u64(struct unpack *unpack, uint64_t max)
{
    uint64_t value;

    if (!unpack->is_broken && unpack->rest.len >= sizeof(value)) {
        memcpy(&value, unpack->rest.data, sizeof(value));
        unpack_skip(unpack, sizeof(value));
        if (value <= max)
            return value;
    }
    unpack->is_broken = true;
    return 0;
}

struct span unpack_bytes(struct unpack *unpack)
{
    struct span bytes = {"", (size_t)unpack_u64(unpack, SIZE_MAX)};

    if (!unpack->is_broken && bytes.len < unpack->rest.len &&
        unpack->rest.data[bytes.len] == '\0') {
        bytes.data = unpack->rest.data;
        unpack_skip(unpack, bytes.len + 1);
        return bytes;
    }
    unpack->is_broken = true;
    return (struct span){"", 0};
}

const char *unpack_text(struct unpack *unpack)
{
    struct span bytes = unpack_bytes(unpack);

    if (strlen(bytes.data) == bytes.len)
        return bytes.data;
    unpack->is_broken = true;
    return "";
}

int unpack_end(const struct unpack *unpack)
{
    return unpack->is_broken || unpack->rest.len > 0 ? -EPROTO : 0;
}
