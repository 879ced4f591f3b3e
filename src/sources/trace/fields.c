#include "sources/trace/fields.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "sources/source.h"

/* The next word as the literal by which samples name their source; NULL: no source of meters. */
static const char *take_source(struct span *rest)
{
    struct span word = span_cut(rest, ' ');

    for (size_t i = 0; source_table[i]; i++)
        if (!source_table[i]->is_no_meter && span_equals(word, source_table[i]->name))
            return source_table[i]->name;
    return NULL;
}

int trace_take_u64(struct span *rest, uint64_t max, const char *what, uint64_t *ret_value,
                   struct error *err)
{
    struct span word = span_cut(rest, ' ');

    if (parse_u64_max(word, max, ret_value) < 0)
        return error_set(err, -EBADMSG, "%s: expected a number of at most %llu, got '%.*s'", what,
                         (unsigned long long)max, (int)MIN(word.len, (size_t)40), word.data);
    return 0;
}

void trace_put_number(struct buffer *out, uint64_t value)
{
    buffer_char(out, ' ');
    buffer_u64(out, value);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int trace_take_text(struct span *rest, struct batch *batch, size_t size_bytes, const char *what,
                    const char **ret_text, struct error *err)
{
    struct span word = span_cut(rest, ' ');
    char *text = arena_copy(&batch->arena, word.data, word.len);
    size_t len = 0;

    if (!text)
        return -ENOMEM;
    if (word.len == 0)
        return error_set(err, -EBADMSG, "%s is missing", what);
    for (size_t i = 0; i < word.len; i++) {
        int high, low;

        if (word.data[i] != '%') {
            text[len++] = word.data[i];
            continue;
        }
        high = i + 2 < word.len ? hex_digit(word.data[i + 1]) : -1;
        low = i + 2 < word.len ? hex_digit(word.data[i + 2]) : -1;
        if (high < 0 || low < 0 || high + low == 0)
            return error_set(err, -EBADMSG, "%s: expected %%XX with two hexadecimal digits, not 00",
                             what);
        text[len++] = (char)(high << 4 | low);
        i += 2;
    }
    if (len >= size_bytes)
        return error_set(err, -EBADMSG, "%s: longer than %zu bytes", what, size_bytes - 1);
    text[len] = '\0';
    *ret_text = span_equals(word, "-") ? "" : text; /* a process named so is written %2D */
    return 0;
}

void trace_put_text(struct buffer *out, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    bool is_dash = text[0] == '-' && text[1] == '\0';

    if (text[0] == '\0')
        buffer_char(out, '-');
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c > ' ' && c != '%' && c != 0x7f && !is_dash) {
            buffer_char(out, (char)c);
            continue;
        }
        buffer_char(out, '%');
        buffer_char(out, hex[c >> 4]);
        buffer_char(out, hex[c & 15]);
    }
}

size_t trace_take_word(struct span *rest, const char *const *words, size_t count)
{
    struct span word = span_cut(rest, ' ');
    size_t i = 0;

    while (i < count && !span_equals(word, words[i]))
        i++;
    return i;
}

static uint64_t load_number(const void *member, size_t size_bytes)
{
    switch (size_bytes) {
    case sizeof(uint8_t):
        return *(const uint8_t *)member;
    case sizeof(uint16_t):
        return *(const uint16_t *)member;
    case sizeof(uint32_t):
        return *(const uint32_t *)member;
    default:
        return *(const uint64_t *)member;
    }
}

static void store_number(void *member, size_t size_bytes, uint64_t value)
{
    switch (size_bytes) {
    case sizeof(uint8_t):
        *(uint8_t *)member = (uint8_t)value;
        break;
    case sizeof(uint16_t):
        *(uint16_t *)member = (uint16_t)value;
        break;
    case sizeof(uint32_t):
        *(uint32_t *)member = (uint32_t)value;
        break;
    default:
        *(uint64_t *)member = value;
    }
}

static int take_number(struct span *rest, const struct trace_field *field, void *member,
                       struct error *err)
{
    uint64_t value;
    int r = trace_take_u64(rest, field->max ? field->max : UINT64_MAX, field->what, &value, err);

    if (r == 0 && field->type != TRACE_SPARE_NUMBER)
        store_number(member, field->size_bytes, value * MAX(field->unit, 1U));
    return r;
}

static int take_field(struct span *rest, const struct trace_field *field, struct batch *batch,
                      char *base, struct error *err)
{
    void *member = base + field->offset;
    struct span after = *rest;
    const char *source;
    size_t index;

    switch (field->type) {
    case TRACE_UID:
        store_number(member, field->size_bytes, SAMPLE_UID_UNKNOWN);
        return rest->len > 0 ? take_number(rest, field, member, err) : 0;
    case TRACE_TEXT:
        return trace_take_text(rest, batch, field->max ? field->max : SIZE_MAX, field->what, member,
                               err);
    case TRACE_SOURCE:
        source = take_source(rest);
        if (!source)
            return -ENOTSUP;
        *(const char **)member = source;
        return 0;
    case TRACE_METER:
        index = trace_take_word(rest, meter_words, METER_KINDS);
        if (index == METER_KINDS || index == METER_GPU)
            return -ENOTSUP;
        *(enum meter_kind *)member = (enum meter_kind)index;
        return 0;
    case TRACE_NAMED:
        if (!span_strip_prefix(rest, field->name))
            return 0;
        *(bool *)(base + field->has_offset) = true;
        return take_number(rest, field, member, err);
    case TRACE_FLAG:
        if (span_equals(span_cut(&after, ' '), field->name)) {
            *(bool *)member = true;
            *rest = after;
        }
        return 0;
    default:
        return take_number(rest, field, member, err);
    }
}

int trace_take_fields(struct span *rest, const struct trace_field *fields, size_t count,
                      struct batch *batch, void *base, struct error *err)
{
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++)
        r = take_field(rest, &fields[i], batch, base, err);
    return r;
}

static bool is_written(const struct trace_field *field, const char *base)
{
    switch (field->type) {
    case TRACE_UID:
        return load_number(base + field->offset, field->size_bytes) != SAMPLE_UID_UNKNOWN;
    case TRACE_NAMED:
        return *(const bool *)(base + field->has_offset);
    case TRACE_FLAG:
        return *(const bool *)(base + field->offset);
    default:
        return true;
    }
}

static void put_field(struct buffer *out, const struct trace_field *field, const char *base)
{
    const void *member = base + field->offset;

    buffer_char(out, ' ');
    switch (field->type) {
    case TRACE_TEXT:
    case TRACE_SOURCE:
        trace_put_text(out, *(const char *const *)member);
        break;
    case TRACE_METER:
        buffer_str(out, meter_words[*(const enum meter_kind *)member]);
        break;
    case TRACE_NAMED:
        buffer_str(out, field->name);
        buffer_u64(out, load_number(member, field->size_bytes));
        break;
    case TRACE_FLAG:
        buffer_str(out, field->name);
        break;
    default:
        buffer_u64(out, load_number(member, field->size_bytes) / MAX(field->unit, 1U));
    }
}

void trace_put_fields(struct buffer *out, const struct trace_field *fields, size_t count,
                      const void *base)
{
    for (size_t i = 0; i < count; i++)
        if (is_written(&fields[i], base))
            put_field(out, &fields[i], base);
}
