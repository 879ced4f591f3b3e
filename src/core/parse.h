/*
 * Strict parsing: the whole span or an error, no leading blanks, no sign where none belongs, no
 * locale. All return 0, -EINVAL (not of this form) or -ERANGE (of this form, but too large).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"

static inline bool parse_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* In small letters. */
static inline bool parse_is_hex(char c)
{
    return parse_is_digit(c) || (c >= 'a' && c <= 'f');
}

int parse_u64(struct span text, uint64_t *ret_value);
int parse_u64_max(struct span text, uint64_t max, uint64_t *ret_value);
int parse_bool(struct span text, bool *ret_value); /* true, false */

/* "1.25" in millionths, exactly: with more than six digits behind the point it is -EINVAL. */
int parse_millionths(struct span text, uint64_t *ret_millionths);

/* Go durations, "1h30m", "1.5s", "250ms", "10us"; the bare "0" too. Signs are refused. */
int parse_duration_us(struct span text, uint64_t *ret_us);
