#include "core/json.h"

#include "core/utf8.h"

void json_string(struct buffer *out, const char *text)
{
    static const char hex[] = "0123456789abcdef";
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
            buffer_char(out, hex[c >> 4]);
            buffer_char(out, hex[c & 15]);
        } else {
            buffer_bytes(out, rest.data, len);
        }
        rest.data += len;
        rest.len -= len;
    }
    buffer_char(out, '"');
}
