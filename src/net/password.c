#include "net/password.h"

#include <crypt.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_base64(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '/';
}

bool password_is_hash(struct span text, unsigned *ret_cost)
{
    const char *t = text.data;

    if (text.len != PASSWORD_HASH_LEN || t[0] != '$' || t[1] != '2' || !strchr("aby", t[2]) ||
        t[3] != '$' || !is_digit(t[4]) || !is_digit(t[5]) || t[6] != '$')
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
