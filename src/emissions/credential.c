#include "emissions/credential.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SECRET_BYTES_MAX = 1024 }; /* those of the services have less than a hundred */

static bool has_control_character(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return true;
    return false;
}

static int check_text(const struct provider *provider, const char *what, const char *text,
                      struct error *err)
{
    if (!text || !text[0])
        return error_set(err, -EINVAL, "%s: it answers nobody without a %s", provider->name, what);
    if (strlen(text) > SECRET_BYTES_MAX)
        return error_set(err, -EINVAL, "%s: the %s is longer than %d bytes", provider->name, what,
                         SECRET_BYTES_MAX);
    if (has_control_character(text))
        return error_set(err, -EILSEQ, "%s: the %s has a line break or a control character in it",
                         provider->name, what);
    return 0;
}

int credential_check(const struct provider *provider, const char *user, const char *key,
                     struct error *err)
{
    int r;

    if (provider->key == PROVIDER_KEY_NONE)
        return 0;
    if (provider->key != PROVIDER_KEY_LOGIN)
        return check_text(provider, "token", key, err);
    r = check_text(provider, "user", user, err);
    if (r == 0 && strchr(user, ':'))
        r = error_set(err, -EINVAL, "%s: the user has a ':' in it, where the password would begin",
                      provider->name);
    return r < 0 ? r : check_text(provider, "password", key, err);
}

static void write_basic(const char *user, const char *password, struct buffer *header)
{
    struct buffer pair;

    buffer_init(&pair, CREDENTIAL_BYTES_MAX);
    buffer_str(&pair, user);
    buffer_char(&pair, ':');
    buffer_str(&pair, password);
    if (buffer_failed(&pair))
        buffer_fail(header);
    buffer_str(header, "Authorization: Basic ");
    buffer_base64(header, (struct span){pair.data, pair.len});
    buffer_wipe(&pair);
}

void credential_write(const struct provider *provider, const char *user, const char *key,
                      struct buffer *header)
{
    switch (provider->key) {
    case PROVIDER_KEY_NONE:
    case PROVIDER_KEY_IN_PATH:
        return;
    case PROVIDER_KEY_IN_HEADER:
        buffer_str(header, "auth-token: ");
        buffer_str(header, key);
        break;
    case PROVIDER_KEY_LOGIN:
        write_basic(user, key, header);
        break;
    }
    buffer_char(header, '\0');
}

/* From here on: messages without secrets. */

enum { CUT_LEN_MIN = 4 };

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

/* How long the text for one character of a secret is; 0: it begins with another. */
static size_t match_char(const char *text, char c)
{
    char upper[4], lower[4];
    size_t len;

    if (*text == c || (*text == '?' && !is_printable(c)) || (*text == '+' && c == ' '))
        return 1;
    snprintf(upper, sizeof(upper), "%%%02X", (unsigned char)c);
    snprintf(lower, sizeof(lower), "%%%02x", (unsigned char)c);
    len = strnlen(text, 3); /* less: the text is cut within it */
    return len > 0 && (strncmp(text, upper, len) == 0 || strncmp(text, lower, len) == 0) ? len : 0;
}

/* How long the text for a secret is; 0: it begins with something else. */
static size_t match(const char *text, const char *secret)
{
    const char *at = text;

    for (; *secret; secret++) {
        size_t len;

        if (*at == '\0')
            return at - text >= CUT_LEN_MIN ? (size_t)(at - text) : 0;
        len = match_char(at, *secret);
        if (len == 0)
            return 0;
        at += len;
    }
    return (size_t)(at - text);
}

void redact_secret(struct error *err, const char *secret)
{
    static const char stars[] = "***";
    struct error redacted;
    const char *from;
    size_t len = 0;

    if (!err || !secret[0])
        return;
    for (from = err->text; *from && len < sizeof(redacted.text) - sizeof(stars);) {
        size_t secret_len = match(from, secret);

        if (secret_len > 0) {
            memcpy(redacted.text + len, stars, strlen(stars));
            len += strlen(stars);
            from += secret_len;
        } else {
            redacted.text[len++] = *from++;
        }
    }
    redacted.text[len] = '\0';
    memcpy(err->text, redacted.text, len + 1);
}
