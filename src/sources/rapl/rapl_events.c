#include "sources/rapl/rapl_events.h"

#include <errno.h>
#include <stdbool.h>

#include "core/macros.h"
#include "core/parse.h"

typedef unsigned __int128 u128;

enum { CPU_MAX = 0xffff };
enum { POWER_MAX = 38 };  /* of ten, that an u128 holds */
enum { DIGITS_MAX = 38 }; /* likewise */
enum { MICRO = 6 };

static int parse_hex_byte(struct span text, uint8_t *ret_value)
{
    unsigned value = 0;

    if (text.len == 0 || text.len > 2)
        return -EINVAL;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c >= '0' && c <= '9')
            value = value * 16 + (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (unsigned)(c - 'a') + 10;
        else
            return -EINVAL;
    }
    *ret_value = (uint8_t)value;
    return 0;
}

int rapl_parse_event(struct span text, uint8_t *ret_event)
{
    uint64_t value;

    (void)span_strip_suffix(&text, "\n");
    if (!span_strip_prefix(&text, "event="))
        return -EINVAL;
    if (span_strip_prefix(&text, "0x"))
        return parse_hex_byte(text, ret_event);
    if (parse_u64_max(text, UINT8_MAX, &value) < 0)
        return -EINVAL;
    *ret_event = (uint8_t)value;
    return 0;
}

static u128 greatest_common_divisor(u128 a, u128 b)
{
    while (b != 0) {
        u128 rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The digits before an exponent; how many of them are behind the point. */
static int parse_mantissa(struct span text, u128 *ret_value, int *ret_decimals)
{
    bool has_point = false;
    u128 value = 0;
    int digits = 0, decimals = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (c < '0' || c > '9')
            return -EINVAL;
        if (++digits > DIGITS_MAX)
            return -ERANGE;
        value = value * 10 + (unsigned)(c - '0');
        decimals += has_point;
    }
    if (digits == 0)
        return -EINVAL;
    *ret_value = value;
    *ret_decimals = decimals;
    return 0;
}

static int parse_exponent(struct span text, int *ret_exponent)
{
    bool is_negative = span_strip_prefix(&text, "-");
    uint64_t value;
    int r;

    if (!is_negative)
        (void)span_strip_prefix(&text, "+");
    r = parse_u64_max(text, POWER_MAX, &value);
    if (r == 0)
        *ret_exponent = is_negative ? -(int)value : (int)value;
    return r;
}

/* value * 10^exponent, in lowest terms. */
static int make_fraction(u128 value, int exponent, struct rapl_scale *ret_scale)
{
    u128 numerator = value, denominator = 1, divisor;

    if (exponent < -POWER_MAX || value == 0)
        return -ERANGE;
    for (; exponent < 0; exponent++)
        denominator *= 10;
    for (; exponent > 0; exponent--) {
        if (numerator > UINT64_MAX)
            return -ERANGE;
        numerator *= 10;
    }
    divisor = greatest_common_divisor(numerator, denominator);
    numerator /= divisor;
    denominator /= divisor;
    if (numerator > UINT64_MAX || denominator > UINT64_MAX)
        return -ERANGE;
    *ret_scale = (struct rapl_scale){(uint64_t)numerator, (uint64_t)denominator};
    return 0;
}

int rapl_parse_scale(struct span text, struct rapl_scale *ret_scale)
{
    struct span mantissa;
    u128 value;
    int decimals, exponent = 0, r;

    (void)span_strip_suffix(&text, "\n");
    mantissa = span_cut(&text, 'e');
    r = parse_mantissa(mantissa, &value, &decimals);
    if (r == 0 && text.data > mantissa.data + mantissa.len)
        r = parse_exponent(text, &exponent);
    return r < 0 ? r : make_fraction(value, exponent - decimals + MICRO, ret_scale);
}

int rapl_scale_apply(const struct rapl_scale *scale, uint64_t counts, uint64_t *ret_uj)
{
    u128 uj = (u128)counts * scale->numerator / scale->denominator;

    if (uj > UINT64_MAX)
        return -ERANGE;
    *ret_uj = (uint64_t)uj;
    return 0;
}

/* "8" or "0-3" */
static int parse_cpu_range(struct span text, uint64_t *ret_first, uint64_t *ret_last)
{
    struct span first = span_cut(&text, '-');

    if (parse_u64_max(first, CPU_MAX, ret_first) < 0)
        return -EINVAL;
    *ret_last = *ret_first;
    if (text.data > first.data + first.len && parse_u64_max(text, CPU_MAX, ret_last) < 0)
        return -EINVAL;
    return *ret_first <= *ret_last ? 0 : -EINVAL;
}

int rapl_parse_cpus(struct span text, uint32_t *cpus, size_t max, size_t *ret_count)
{
    size_t count = 0;

    (void)span_strip_suffix(&text, "\n");
    while (text.len > 0) {
        uint64_t first, last;
        int r = parse_cpu_range(span_cut(&text, ','), &first, &last);

        if (r < 0)
            return r;
        for (uint64_t cpu = first; cpu <= last; cpu++) {
            if (count == max)
                return -ERANGE;
            cpus[count++] = (uint32_t)cpu;
        }
    }
    *ret_count = count;
    return 0;
}
