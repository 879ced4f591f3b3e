#include "core/parse.h"

#include <ctype.h>
#include <errno.h>

#include "core/macros.h"

int parse_u64_max(struct span text, uint64_t max, uint64_t *ret_value)
{
    bool is_too_large = false;
    uint64_t value = 0;

    if (text.len == 0)
        return -EINVAL;
    for (size_t i = 0; i < text.len; i++) {
        if (!parse_is_digit(text.data[i]))
            return -EINVAL;
        is_too_large |= __builtin_mul_overflow(value, 10, &value);
        is_too_large |= __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value);
    }
    if (is_too_large || value > max)
        return -ERANGE;
    *ret_value = value;
    return 0;
}

int parse_u64(struct span text, uint64_t *ret_value)
{
    return parse_u64_max(text, UINT64_MAX, ret_value);
}

bool parse_is_uuid(struct span text)
{
    if (text.len != 36)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (is_dash ? text.data[i] != '-' : !isxdigit((unsigned char)text.data[i]))
            return false;
    }
    return true;
}

int parse_bool(struct span text, bool *ret_value)
{
    bool is_true = span_equals(text, "true");

    if (!is_true && !span_equals(text, "false"))
        return -EINVAL;
    *ret_value = is_true;
    return 0;
}

int parse_millionths(struct span text, uint64_t *ret_millionths)
{
    enum { DIGITS = 6, ONE = 1000000 };
    bool has_point = text.len > 0 && memchr(text.data, '.', text.len);
    struct span whole_text = span_cut(&text, '.');
    uint64_t whole, fraction = 0;
    int r = parse_u64(whole_text, &whole);

    if (r == 0 && has_point)
        r = text.len <= DIGITS ? parse_u64(text, &fraction) : -EINVAL;
    if (r < 0)
        return r;
    for (size_t i = text.len; i < DIGITS; i++)
        fraction *= 10;
    if (__builtin_mul_overflow(whole, (uint64_t)ONE, &whole) ||
        __builtin_add_overflow(whole, fraction, &whole))
        return -ERANGE;
    *ret_millionths = whole;
    return 0;
}

static struct span cut_digits(struct span *text)
{
    struct span digits = {text->data, 0};

    while (digits.len < text->len && parse_is_digit(text->data[digits.len]))
        digits.len++;
    *text = (struct span){text->data + digits.len, text->len - digits.len};
    return digits;
}

/* Cuts one "12.5s" off the front. */
static int cut_duration(struct span *text, uint64_t *ret_us)
{
    static const struct {
        const char *name;
        uint64_t us;
    } units[] = {
        {"us", 1},      {"\u00b5s", 1}, /* micro sign */
        {"\u03bcs", 1},                 /* Greek mu: Go takes both */
        {"ms", 1000},   {"s", USEC_PER_SEC}, {"m", 60000000ULL}, {"h", 3600000000ULL},
    };
    struct span whole_text = cut_digits(text), fraction = {"", 0};
    uint64_t whole = 0, unit_us = 0, fraction_us = 0;

    if (span_strip_prefix(text, "."))
        fraction = cut_digits(text);
    for (size_t u = 0; u < ARRAY_SIZE(units) && unit_us == 0; u++)
        if (span_strip_prefix(text, units[u].name))
            unit_us = units[u].us;
    if (whole_text.len + fraction.len == 0 || unit_us == 0)
        return -EINVAL;
    if ((whole_text.len > 0 && parse_u64(whole_text, &whole) < 0) ||
        __builtin_mul_overflow(whole, unit_us, &whole))
        return -ERANGE;
    /* Digits below a microsecond are dropped. */
    for (uint64_t d = 0, scale = unit_us; d < fraction.len && scale > 0; d++, scale /= 10)
        fraction_us += (uint64_t)(fraction.data[d] - '0') * scale / 10;
    return __builtin_add_overflow(whole, fraction_us, ret_us) ? -ERANGE : 0;
}

int parse_duration_us(struct span text, uint64_t *ret_us)
{
    uint64_t total = 0;

    if (span_equals(text, "0")) {
        *ret_us = 0;
        return 0;
    }
    if (text.len == 0)
        return -EINVAL;
    while (text.len > 0) {
        uint64_t term = 0;
        int r = cut_duration(&text, &term);

        if (r < 0)
            return r;
        if (__builtin_add_overflow(total, term, &total))
            return -ERANGE;
    }
    *ret_us = total;
    return 0;
}
