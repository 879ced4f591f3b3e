#include "core/json_reader.h"

#include <errno.h>
#include <jansson.h>

#undef json_is_true /* jansson's is a macro */

enum {
    DEPTH_MAX = 64,
    /* Commas and opening brackets. A tree costs 232 bytes for an object and 176 for a member of one
     * (measured, jansson 2.14), however short the text: 16 MiB of "{}," would need 1.3 GB. With
     * this limit it is 92 MB at most. Docker's list has a comma in every 30 bytes. */
    PARTS_MAX = 1 << 19,
};

static const json_t *tree(const struct json *value)
{
    return (const json_t *)value;
}

/* Checks the cost of a tree before it is built. jansson itself accepts 2048 levels and any number
 * of values. */
static bool is_affordable(struct span text)
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
        if (depth > DEPTH_MAX || parts > PARTS_MAX)
            return false;
    }
    return true;
}

int json_read(struct span text, struct json **ret_value)
{
    json_error_t error;
    json_t *value;

    if (text.len == 0 || !is_affordable(text))
        return -EBADMSG;
    value = json_loadb(text.data, text.len, JSON_DECODE_ANY, &error);
    /* Without memory jansson has no text either. */
    if (!value)
        return error.text[0] ? -EBADMSG : -ENOMEM;
    *ret_value = (struct json *)value;
    return 0;
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
