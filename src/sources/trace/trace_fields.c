#include "sources/trace/trace_fields.h"

#include <errno.h>

#include "core/macros.h"
#include "core/parse.h"

int trace_take_u64(struct span *rest, uint64_t max, const char *what, uint64_t *ret_value,
                   struct error *err)
{
    struct span word = span_cut(rest, ' ');

    if (parse_u64_max(word, max, ret_value) < 0)
        return error_set(err, -EBADMSG, "%s: expected a number of at most %llu, got '%.*s'", what,
                         (unsigned long long)max, (int)MIN(word.len, (size_t)40), word.data);
    return 0;
}

int trace_take_u32(struct span *rest, uint32_t max, const char *what, uint32_t *ret_value,
                   struct error *err)
{
    uint64_t value;
    int r = trace_take_u64(rest, max, what, &value, err);

    if (r == 0)
        *ret_value = (uint32_t)value;
    return r;
}

int trace_take_u16(struct span *rest, uint16_t max, const char *what, uint16_t *ret_value,
                   struct error *err)
{
    uint64_t value;
    int r = trace_take_u64(rest, max, what, &value, err);

    if (r == 0)
        *ret_value = (uint16_t)value;
    return r;
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

int trace_take_text(struct span *rest, struct batch *batch, const char *what, const char **ret_text,
                    struct error *err)
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
    text[len] = '\0';
    *ret_text = span_equals(word, "-") ? "" : text; /* a process named so is written %2D */
    return 0;
}

int trace_take_named(struct span *rest, const char *name, const char *what, bool *ret_has,
                     uint64_t *ret_value, struct error *err)
{
    *ret_has = span_strip_prefix(rest, name);
    return *ret_has ? trace_take_u64(rest, UINT64_MAX, what, ret_value, err) : 0;
}

bool trace_take_flag(struct span *rest, const char *letter)
{
    struct span after = *rest;

    if (!span_equals(span_cut(&after, ' '), letter))
        return false;
    *rest = after;
    return true;
}
