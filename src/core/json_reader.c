#include "core/json_reader.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

#undef json_is_true /* jansson's is a macro */

enum {
    DEPTH_MAX = 64,
    /* Commas and opening brackets. A tree costs 232 bytes for an object and 176 for a member of one
     * (measured, jansson 2.14), however short the text: 16 MiB of "{}," would need 1.3 GB. With
     * this limit it is 92 MB at most. Docker's list has a comma in every 30 bytes. */
    PARTS_MAX = 1 << 19,
    /* A node with 16,384 workloads at four meters each has 900,000. */
    PARTS_LARGE_MAX = 1 << 21,
};

static const json_t *tree(const struct json *value)
{
    return (const json_t *)value;
}

/* Checks the cost of a tree before it is built. jansson itself accepts 2048 levels and any number
 * of values. */
static bool is_affordable(struct span text, size_t parts_max)
{
    size_t depth = 0, parts = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '"') {
            in_string = !in_string;
        } else if (in_string) {
            i += c == '\\';
        } else if (c == '[' || c == '{') {
            depth++;
            parts++;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (c == ',') {
            parts++;
        }
        if (depth > DEPTH_MAX || parts > parts_max)
            return false;
    }
    return true;
}

/* The number of an escape "\uXXXX" at the start of the text; -1: there is none. */
static int32_t unicode_escape(struct span text)
{
    int32_t number = 0;

    if (text.len < 6 || text.data[0] != '\\' || text.data[1] != 'u')
        return -1;
    for (size_t i = 2; i < 6; i++) {
        char c = text.data[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;

        if (digit < 0)
            return -1;
        number = number * 16 + digit;
    }
    return number;
}

static bool is_surrogate(int32_t number, int32_t first)
{
    return number >= first && number < first + 0x400;
}

/* Who may write a text into a document may write "\u0000" or half a surrogate pair, which jansson
 * refuses, with all of the document. NULL: it has none, or there is no memory. */
static char *replace_bad_escapes(struct span text)
{
    enum { HIGH = 0xd800, LOW = 0xdc00, ESCAPE_BYTES = 6 };
    char *copy = NULL;

    for (size_t i = 0; i < text.len; i++) {
        struct span rest = {text.data + i, text.len - i};
        int32_t number;

        if (text.data[i] != '\\') /* only strings have any, or the document is bad anyway */
            continue;
        number = unicode_escape(rest);
        if (is_surrogate(number, HIGH) && rest.len > ESCAPE_BYTES &&
            is_surrogate(
                unicode_escape((struct span){rest.data + ESCAPE_BYTES, rest.len - ESCAPE_BYTES}),
                LOW)) {
            i += 2 * ESCAPE_BYTES - 1;
            continue;
        }
        if (number == 0 || is_surrogate(number, HIGH) || is_surrogate(number, LOW)) {
            if (!copy) {
                copy = malloc(text.len);
                if (!copy)
                    return NULL;
                memcpy(copy, text.data, text.len);
            }
            memcpy(copy + i, "\\ufffd", ESCAPE_BYTES);
        }
        i++; /* the escaped byte */
    }
    return copy;
}

static int read_tree(struct span text, size_t parts_max, struct json **ret_value)
{
    json_error_t error;
    json_t *value;
    _cleanup_free_ char *repaired = NULL;

    if (text.len == 0 || !is_affordable(text, parts_max))
        return -EBADMSG;
    value = json_loadb(text.data, text.len, JSON_DECODE_ANY, &error);
    if (!value && (repaired = replace_bad_escapes(text)))
        value = json_loadb(repaired, text.len, JSON_DECODE_ANY, &error);
    /* Without memory jansson has no text either. */
    if (!value)
        return error.text[0] ? -EBADMSG : -ENOMEM;
    *ret_value = (struct json *)value;
    return 0;
}

int json_read(struct span text, struct json **ret_value)
{
    return read_tree(text, PARTS_MAX, ret_value);
}

int json_read_large(struct span text, struct json **ret_value)
{
    return read_tree(text, PARTS_LARGE_MAX, ret_value);
}

void json_free(struct json *value)
{
    json_decref((json_t *)value);
}

int json_seed(void)
{
    struct json *first;
    int r = json_read(span_of("{}"), &first);

    if (r == 0)
        json_free(first);
    return r;
}

const struct json *json_get(const struct json *object, const char *key)
{
    return (const struct json *)json_object_get(tree(object), key);
}

size_t json_length(const struct json *array)
{
    return json_array_size(tree(array));
}

const struct json *json_at(const struct json *array, size_t index)
{
    return (const struct json *)json_array_get(tree(array), index);
}

const char *json_text(const struct json *value)
{
    return json_string_value(tree(value));
}

bool json_int64(const struct json *value, int64_t *ret_number)
{
    if (!json_is_integer(tree(value)))
        return false;
    *ret_number = json_integer_value(tree(value));
    return true;
}

bool json_double(const struct json *value, double *ret_number)
{
    if (!json_is_number(tree(value)))
        return false;
    *ret_number = json_number_value(tree(value));
    return true;
}

bool json_is_true(const struct json *value)
{
    return value && json_typeof(tree(value)) == JSON_TRUE;
}
