#include "core/utf8.h"

#include <stdint.h>

size_t utf8_char_len(struct span text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* below it: overlong */
    const unsigned char *p = (const unsigned char *)text.data;
    uint32_t code;
    size_t len;

    if (text.len == 0 || p[0] < 0x80)
        return text.len > 0;
    len = (size_t)__builtin_clz(~((uint32_t)p[0] << 24)); /* leading ones */
    if (len < 2 || len > 4 || len > text.len)
        return 0;
    code = p[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3fU);
    }
    if (code < least[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return len;
}
