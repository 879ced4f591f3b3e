#include "emissions/redact.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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
