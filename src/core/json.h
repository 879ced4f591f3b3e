/* Writing JSON into a buffer. */
#pragma once

#include "core/buffer.h"

/* A quoted JSON string; bytes that are not UTF-8 become U+FFFD. */
void json_string(struct buffer *out, const char *text);

/* Members of an object, after a comma unless they are the first; of the first function the key
 * alone. */
void json_key(struct buffer *out, const char *key);
void json_member(struct buffer *out, const char *key, const char *text);
void json_member_u64(struct buffer *out, const char *key, uint64_t value);
void json_member_bool(struct buffer *out, const char *key, bool value);
void json_member_fixed(struct buffer *out, const char *key, int64_t value,
                       unsigned digits); /* as buffer_fixed */

/* The comma before an element of an array, unless it is the first. */
void json_element(struct buffer *out);
