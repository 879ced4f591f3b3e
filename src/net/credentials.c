#include "net/credentials.h"

#include <crypt.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/macros.h"
#include "core/parse.h"

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

/* From here on: passwords. */

static bool is_base64(char c)
{
    return parse_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '/';
}

bool password_is_hash(struct span text, unsigned *ret_cost)
{
    const char *t = text.data;

    if (text.len != PASSWORD_HASH_LEN || t[0] != '$' || t[1] != '2' || !strchr("aby", t[2]) ||
        t[3] != '$' || !parse_is_digit(t[4]) || !parse_is_digit(t[5]) || t[6] != '$')
        return false;
    for (size_t i = 7; i < text.len; i++)
        if (!is_base64(t[i]))
            return false;
    *ret_cost = (unsigned)(t[4] - '0') * 10 + (unsigned)(t[5] - '0');
    return true;
}

/* In a time that does not tell where they differ. */
static bool equals(const char *a, const char *b, size_t len)
{
    unsigned char difference = 0;

    for (size_t i = 0; i < len; i++)
        difference |= (unsigned char)(a[i] ^ b[i]);
    return difference == 0;
}

bool password_matches(struct span password, const char *hash)
{
    struct crypt_data *data; /* 32 KiB */
    char text[PASSWORD_MAX_BYTES + 1];
    const char *found;
    bool ok;

    /* bcrypt would stop at the NUL, and take what follows it for nothing. */
    if (password.len > PASSWORD_MAX_BYTES || memchr(password.data, '\0', password.len))
        return false;
    data = calloc(1, sizeof(*data));
    if (!data)
        return false;
    memcpy(text, password.data, password.len);
    text[password.len] = '\0';
    found = crypt_rn(text, hash, data, sizeof(*data));
    ok = found && strlen(found) == PASSWORD_HASH_LEN && equals(found, hash, PASSWORD_HASH_LEN);
    explicit_bzero(text, sizeof(text));
    explicit_bzero(data, sizeof(*data));
    free(data);
    return ok;
}
