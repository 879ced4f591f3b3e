#include "emissions/providers/reply.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/timestamp.h"

enum { WHY_BYTES = 160 };

void reply_copy_printable(struct span text, char *copy, size_t size_bytes)
{
    size_t len = MIN(text.len, size_bytes - 1);

    for (size_t i = 0; i < len; i++) {
        char c = text.data[i];

        if (c < ' ' || c > '~')
            c = '?';
        copy[i] = c;
    }
    copy[len] = '\0';
}

/* {"error": "..."}, {"error": {"code": "...", "message": "..."}}, {"error_code": "...", "message":
 * "..."}, {"status": "error", "message": "..."}; "error": null is none. */
static const char *find_refusal(const struct json *root)
{
    const struct json *error = json_get(root, "error");
    const char *code = json_text(error);
    const char *said = json_text(json_get(error, "message"));

    if (!code)
        code = json_text(json_get(error, "code"));
    if (!code)
        code = json_text(json_get(root, "error_code"));
    if (!code && reply_says(json_get(root, "status"), "error"))
        code = "error";
    if (!said && code)
        said = json_text(json_get(root, "message"));
    return said ? said : code;
}

void reply_refusal(struct span body, char *why, size_t size_bytes)
{
    struct json *root;
    const char *said;

    why[0] = '\0';
    if (json_read(body, &root) < 0)
        return;
    said = find_refusal(root);
    reply_copy_printable(span_of(said ? said : ""), why, size_bytes);
    json_free(root);
}

int reply_read(struct span body, const char *provider, struct json **ret_root, struct error *err)
{
    char why[WHY_BYTES];
    struct json *root;
    const char *said;
    int r = json_read(body, &root);

    if (r < 0)
        return error_set(err, r, "%s: the answer %s", provider,
                         r == -ENOMEM ? "does not fit into memory"
                                      : "is not JSON; is a proxy in between?");
    said = find_refusal(root);
    if (!said) {
        *ret_root = root;
        return 0;
    }
    reply_copy_printable(span_of(said), why, sizeof(why));
    json_free(root);
    return error_set(err, -EBADMSG, "%s: the service answered: %s", provider, why);
}

int reply_grams(const struct json *value, uint64_t *ret_mg)
{
    double grams;

    return json_double(value, &grams) ? factor_from_grams(grams, ret_mg) : -ENODATA;
}

bool reply_time(const struct json *value, uint64_t *ret_us)
{
    const char *text = json_text(value);

    return text && timestamp_parse(span_of(text), ret_us) == 0;
}

bool reply_says(const struct json *value, const char *text)
{
    const char *said = json_text(value);

    return said && strcmp(said, text) == 0;
}

int reply_newest(const struct json *rows,
                 int (*read_row)(const struct json *row, struct emission_factor *factor),
                 struct emission_factor *factor)
{
    int found = -ENODATA;

    for (size_t i = 0; i < json_length(rows); i++) {
        struct emission_factor each = *factor;
        int r = read_row(json_at(rows, i), &each);

        if (r == -ENODATA || (r == 0 && found == 0 && each.time_us <= factor->time_us))
            continue;
        if (r < 0)
            return r;
        *factor = each;
        found = 0;
    }
    return found;
}

void reply_ask(struct buffer *path, const char *name, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-._~";
    static const char hex[] = "0123456789ABCDEF";
    bool is_first = path->len == 0 || !memchr(path->data, '?', path->len);

    buffer_char(path, is_first ? '?' : '&');
    buffer_str(path, name);
    buffer_char(path, '=');
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;

        if (strchr(plain, c)) {
            buffer_char(path, (char)c);
            continue;
        }
        buffer_char(path, '%');
        buffer_char(path, hex[c >> 4]);
        buffer_char(path, hex[c & 15]);
    }
}
