#include "net/basic_auth.h"

#include <errno.h>
#include <stdint.h>
#include <strings.h>

#include "core/macros.h"

static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648, with its padding and nothing around it. The bytes' count, or -EINVAL. */
static ssize_t decode_base64(struct span text, char *bytes, size_t size)
{
    size_t padding = 0, len = 0;
    uint32_t group = 0;

    if (text.len % 4 != 0 || text.len / 4 * 3 > size)
        return -EINVAL;
    while (padding < 2 && padding < text.len && text.data[text.len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < text.len; i++) {
        int value = i < text.len - padding ? digit_value(text.data[i]) : 0;

        if (value < 0)
            return -EINVAL;
        group = group << 6 | (uint32_t)value;
        if (i % 4 == 3) {
            bytes[len++] = (char)(group >> 16);
            bytes[len++] = (char)(group >> 8);
            bytes[len++] = (char)group;
            group = 0;
        }
    }
    return (ssize_t)(len - padding);
}

int basic_auth_parse(const char *header, struct basic_auth *ret_auth)
{
    static const char scheme[] = "Basic ";
    struct span rest;
    ssize_t len;

    if (!header || strncasecmp(header, scheme, strlen(scheme)) != 0)
        return -EINVAL;
    len = decode_base64(span_of(header + strlen(scheme)), ret_auth->bytes, sizeof(ret_auth->bytes));
    if (len < 0 || !memchr(ret_auth->bytes, ':', (size_t)len))
        return -EINVAL;
    rest = (struct span){ret_auth->bytes, (size_t)len};
    ret_auth->user = span_cut(&rest, ':');
    ret_auth->password = rest;
    return 0;
}
