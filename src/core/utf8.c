#include "core/utf8.h"

#include <stdint.h>

size_t utf8_char_len(struct span text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* below it: overlong */
    const unsigned char *p = (const unsigned char *)text.data;
    uint32_t code;
    size_t len;

    if (text.len == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if ((p[0] & 0xe0) == 0xc0) {
        len = 2;
        code = p[0] & 0x1fU;
    } else if ((p[0] & 0xf0) == 0xe0) {
        len = 3;
        code = p[0] & 0x0fU;
    } else if ((p[0] & 0xf8) == 0xf0) {
        len = 4;
        code = p[0] & 0x07U;
    } else {
        return 0;
    }
    if (len > text.len)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3fU);
    }
    if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return len;
}
