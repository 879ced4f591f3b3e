/*
 * JSON from outside, as a tree that is only read. The one user of jansson.
 *
 * Every getter accepts NULL and values of another type, and answers as if nothing were there: a
 * reply that lies about its types is a reply with less in it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"

struct json;

/*
 * One value and nothing behind it. 0, -ENOMEM or -EBADMSG: not JSON, not UTF-8, NUL in a string, a
 * number beyond 64 bits, more than 64 levels, or more than half a million commas and brackets. Of
 * equal keys the last wins. Free it with json_free, which accepts NULL.
 */
int json_read(struct span text, struct json **ret_value);
void json_free(struct json *value);

/* Reads the random numbers now that guard against keys which collide: for who can open no file when
 * the first object comes. 0 or -errno of json_read. */
int json_seed(void);

const struct json *json_get(const struct json *object, const char *key);
size_t json_length(const struct json *array);
const struct json *json_at(const struct json *array, size_t index);

/* Valid UTF-8 without NUL, owned by the tree; NULL if it is not a text. */
const char *json_text(const struct json *value);
bool json_int64(const struct json *value, int64_t *ret_number);
bool json_double(const struct json *value, double *ret_number); /* of integers, too; finite */
bool json_is_true(const struct json *value);
