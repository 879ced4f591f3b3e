#include "core/json.h"

#include "core/utf8.h"

void json_string(struct buffer *out, const char *text)
{
    struct span rest = span_of(text);

    buffer_char(out, '"');
    while (rest.len > 0) {
        unsigned char c = (unsigned char)rest.data[0];
        size_t len = utf8_char_len(rest);

        if (len == 0) {
            buffer_str(out, UTF8_REPLACEMENT);
            len = 1;
        } else if (c == '"' || c == '\\') {
            buffer_char(out, '\\');
            buffer_char(out, (char)c);
        } else if (c < 0x20 || c == 0x7f) {
            buffer_str(out, "\\u00");
            buffer_hex(out, c);
        } else {
            buffer_bytes(out, rest.data, len);
        }
        rest = (struct span){rest.data + len, rest.len - len};
    }
    buffer_char(out, '"');
}

void json_key(struct buffer *out, const char *key)
{
    if (out->len > 0 && out->data[out->len - 1] != '{')
        buffer_char(out, ',');
    json_string(out, key);
    buffer_char(out, ':');
}

void json_member(struct buffer *out, const char *key, const char *text)
{
    json_key(out, key);
    json_string(out, text);
}

void json_member_u64(struct buffer *out, const char *key, uint64_t value)
{
    json_key(out, key);
    buffer_u64(out, value);
}

void json_member_bool(struct buffer *out, const char *key, bool value)
{
    json_key(out, key);
    buffer_str(out, value ? "true" : "false");
}

void json_member_fixed(struct buffer *out, const char *key, int64_t value, unsigned digits)
{
    json_key(out, key);
    buffer_fixed(out, value, digits);
}

void json_element(struct buffer *out)
{
    if (out->len > 0 && out->data[out->len - 1] != '[')
        buffer_char(out, ',');
}
