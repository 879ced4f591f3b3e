#include "emissions/credential.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "client/http_client.h"

enum {
    SECRET_BYTES_MAX = 1024, /* those of the services have less than a hundred */
    CUT_LEN_MIN = 4,
};

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
        return error_set(err, -EINVAL, "%s: it needs a %s", provider->name, what);
    if (strlen(text) > SECRET_BYTES_MAX)
        return error_set(err, -EINVAL, "%s: the %s is longer than %d bytes", provider->name, what,
                         SECRET_BYTES_MAX);
    if (has_control_character(text))
        return error_set(err, -EILSEQ, "%s: the %s contains a line break or a control character",
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
        r = error_set(err, -EINVAL, "%s: the user contains a ':', where the password would begin",
                      provider->name);
    return r < 0 ? r : check_text(provider, "password", key, err);
}

void credential_write(const struct provider *provider, const char *user, const char *key,
                      struct buffer *header)
{
    if (provider->key == PROVIDER_KEY_LOGIN) {
        http_put_basic(header, user, key);
    } else if (provider->key == PROVIDER_KEY_IN_HEADER) {
        buffer_str(header, "auth-token: ");
        buffer_str(header, key);
        buffer_char(header, '\0');
    }
}

/* Length of the text that stands for one character of a secret; 0: none does. */
static size_t match_char(const char *text, char c)
{
    char escaped[4];
    size_t len;

    if (*text == c || (*text == '?' && (c < ' ' || c > '~')) || (*text == '+' && c == ' '))
        return 1;
    snprintf(escaped, sizeof(escaped), "%%%02X", (unsigned char)c);
    len = strnlen(text, 3); /* less: the text is cut within it */
    return len > 0 && strncasecmp(text, escaped, len) == 0 ? len : 0;
}

/* Length of the text that stands for a secret; 0: none does. */
static size_t match_secret(const char *text, const char *secret)
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

void credential_redact(struct error *err, const char *secret)
{
    static const char stars[] = "***";
    struct error redacted;
    const char *from;
    size_t len = 0;

    if (!err || !secret[0])
        return;
    for (from = err->text; *from && len < sizeof(redacted.text) - sizeof(stars);) {
        size_t secret_len = match_secret(from, secret);

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
