/* JSON from outside: any bytes are an error, or a tree whose texts are UTF-8 without NUL. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/json_reader.h"
#include "core/macros.h"
#include "core/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text)
{
    struct span rest = span_of(text);

    while (rest.len > 0) {
        size_t len = utf8_char_len(rest);

        if (len == 0)
            abort();
        rest = (struct span){rest.data + len, rest.len - len};
    }
}

static void walk(const struct json *value, unsigned depth)
{
    static const char *const keys[] = {"Id", "Names", "Image", "Labels", "a", ""};
    int64_t number;

    if (!value)
        return;
    if (depth > 64)
        abort();
    if (json_text(value))
        check_text(json_text(value));
    if (json_text(value) && (json_int64(value, &number) || json_is_true(value)))
        abort();
    if (json_at(value, json_length(value)))
        abort();
    for (size_t i = 0; i < json_length(value); i++)
        walk(json_at(value, i), depth + 1);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        walk(json_get(value, keys[i]), depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json *value = NULL;
    int r = json_read((struct span){(const char *)data, size}, &value);

    if (r != (value ? 0 : -EBADMSG))
        abort();
    walk(value, 0);
    json_free(value);
    return 0;
}
