#include "core/pack.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { GROUP_BITS = 7, GROUP_MORE = 1 << GROUP_BITS };

void pack_u64(struct buffer *buffer, uint64_t value)
{
    char groups[10];
    size_t count = 0;

    for (; value >= GROUP_MORE; value >>= GROUP_BITS)
        groups[count++] = (char)(GROUP_MORE | value % GROUP_MORE);
    groups[count++] = (char)value;
    buffer_bytes(buffer, groups, count);
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
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && !unpack->is_broken && unpack->rest.len > 0;
         shift += GROUP_BITS) {
        uint64_t group = (unsigned char)unpack->rest.data[0];

        unpack_skip(unpack, 1);
        value |= group % GROUP_MORE << shift;
        /* Nine groups hold 63 bits: of the tenth only the lowest counts. */
        if (group < GROUP_MORE && value >> shift == group && value <= max)
            return value;
        if (group < GROUP_MORE)
            break;
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

void coder_reject(struct coder *coder)
{
    coder->in.is_broken = true;
}

uint64_t code_u64(struct coder *coder, uint64_t value, uint64_t max)
{
    if (coder_is_unpacking(coder))
        return unpack_u64(&coder->in, max);
    pack_u64(coder->out, value);
    return value;
}

unsigned __int128 code_u128(struct coder *coder, unsigned __int128 value)
{
    uint64_t high = code_u64(coder, (uint64_t)(value >> 64), UINT64_MAX);

    return (unsigned __int128)high << 64 | code_u64(coder, (uint64_t)value, UINT64_MAX);
}

double code_double(struct coder *coder, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    bits = code_u64(coder, bits, UINT64_MAX);
    memcpy(&value, &bits, sizeof(value));
    if (isfinite(value))
        return value;
    coder_reject(coder);
    return 0;
}

struct span code_bytes(struct coder *coder, struct span value)
{
    if (coder_is_unpacking(coder))
        return unpack_bytes(&coder->in);
    pack_bytes(coder->out, value);
    return value;
}

const char *code_text(struct coder *coder, const char *value)
{
    if (coder_is_unpacking(coder))
        return unpack_text(&coder->in);
    pack_text(coder->out, value);
    return value;
}

size_t code_count(struct coder *coder, size_t value, size_t max)
{
    size_t count = (size_t)code_u64(coder, value, max);

    if (!coder_is_unpacking(coder) || count <= coder->in.rest.len)
        return count;
    coder_reject(coder);
    return 0;
}

void code_array_text(struct coder *coder, char *text, size_t size_bytes)
{
    const char *value = code_text(coder, text);

    if (!coder_is_unpacking(coder))
        return;
    if (strlen(value) < size_bytes)
        memcpy(text, value, strlen(value) + 1);
    else
        coder_reject(coder);
}

void code_allocated_text(struct coder *coder, char **text, size_t size_bytes)
{
    const char *value = code_text(coder, *text);

    if (!coder_is_unpacking(coder))
        return;
    *text = value[0] != '\0' && strlen(value) < size_bytes ? strdup(value) : NULL;
    if (value[0] != '\0' && !*text)
        coder_reject(coder);
}
