/* Strict parsing of whole spans: no leading blanks, no stray signs, no locale. All return 0,
 * -EINVAL (malformed) or -ERANGE (well-formed, but too large). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"

static inline bool parse_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Lower case. */
static inline bool parse_is_hex(char c)
{
    return parse_is_digit(c) || (c >= 'a' && c <= 'f');
}

int parse_u64(struct span text, uint64_t *ret_value);
int parse_u64_max(struct span text, uint64_t max, uint64_t *ret_value);
/* 36 hexadecimal digits and dashes, in either case. */
bool parse_is_uuid(struct span text);

int parse_bool(struct span text, bool *ret_value); /* true, false */

/* "1.25" in millionths, exactly: more than six decimals are -EINVAL. */
int parse_millionths(struct span text, uint64_t *ret_millionths);

/* Go durations, "1h30m", "1.5s", "250ms", "10us"; "0", too. No signs. */
int parse_duration_us(struct span text, uint64_t *ret_us);
