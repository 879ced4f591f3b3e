#include "core/base64.h"

void base64_write(struct buffer *out, struct span bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < bytes.len; i += 3) {
        uint32_t group = 0;

        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (i + k < bytes.len ? (uint8_t)bytes.data[i + k] : 0U);
        for (size_t k = 0; k < 4; k++) {
            const char *digit = i + k > bytes.len ? "=" : &digits[group >> (18 - 6 * k) & 63];

            buffer_char(out, *digit);
        }
    }
}
