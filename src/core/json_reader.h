/* Reading JSON, as a tree; the only user of jansson. Getters accept NULL and values of another
 * type, as if there were none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

struct json;

/* Reads one value, with nothing after it. -ENOMEM, or -EBADMSG: not JSON, not UTF-8, NUL in a
 * string, a number beyond 64 bits, over 64 levels, or over half a million commas and brackets. Of
 * equal keys the last wins. */
int json_read(struct span text, struct json **ret_value);

/* The same for up to two million of them, which may take 370 MB: for a program that somebody waits
 * for. */
int json_read_large(struct span text, struct json **ret_value);
void json_free(struct json *value);

/* Seeds jansson's hash now, for a sandbox that cannot read random numbers later. Returns as
 * json_read. */
int json_seed(void);

const struct json *json_get(const struct json *object, const char *key);
size_t json_length(const struct json *array);
const struct json *json_at(const struct json *array, size_t index);

/* Valid UTF-8 without NUL, owned by the tree; NULL if it is no string. */
const char *json_text(const struct json *value);
bool json_int64(const struct json *value, int64_t *ret_number);
bool json_double(const struct json *value, double *ret_number); /* also of integers; finite */
bool json_is_true(const struct json *value);
