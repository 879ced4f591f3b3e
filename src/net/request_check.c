#include "net/request_check.h"

#include <strings.h>

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Letters, digits and these, and nothing else. */
static bool consists_of(struct span text, const char *others)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_letter_or_digit(text.data[i]) &&
            (text.data[i] == '\0' || !strchr(others, text.data[i])))
            return false;
    return true;
}

/* A percent sign is followed by two hexadecimal digits that are not the NUL: it would end the text
 * for libmicrohttpd and us, but not for a proxy. */
static bool has_valid_escapes(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '%' &&
            (text.len - i < 3 || !is_hex(text.data[i + 1]) || !is_hex(text.data[i + 2]) ||
             (text.data[i + 1] == '0' && text.data[i + 2] == '0')))
            return false;
    return true;
}

static size_t scheme_len(const char *target, size_t len)
{
    static const char *const schemes[] = {"http://", "https://"};

    for (size_t i = 0; i < 2; i++)
        if (len >= strlen(schemes[i]) && strncasecmp(target, schemes[i], strlen(schemes[i])) == 0)
            return strlen(schemes[i]);
    return 0;
}

/* Printable ASCII without a fragment; a browser also leaves "|" and brackets as they are. */
void request_check_add_target(struct request_check *check, struct span target)
{
    bool has_form = span_equals(target, "*") || (target.len > 0 && target.data[0] == '/') ||
                    scheme_len(target.data, target.len) > 0;

    check->bytes += target.len;
    check->is_malformed |= !has_form || !has_valid_escapes(target) ||
                           !consists_of(target, "-._~:/?[]@!$&'()*+,;=%|{}\"\\^`<>");
}

static bool is_named(struct span name, const char *other)
{
    return name.len == strlen(other) && strncasecmp(name.data, other, name.len) == 0;
}

void request_check_add_field(struct request_check *check, struct span name, struct span value)
{
    check->bytes += name.len + strlen(": ") + value.len + strlen("\r\n");
    /* A token, so that no blank is before the colon (RFC 9112, 5.1). */
    check->is_malformed |= name.len == 0 || !consists_of(name, "!#$%&'*+-.^_`|~");
    for (size_t i = 0; i < value.len; i++)
        check->is_malformed |=
            ((unsigned char)value.data[i] < ' ' && value.data[i] != '\t') || value.data[i] == 0x7f;
    if (is_named(name, "Host")) {
        while (value.len > 0 && strchr(" \t", value.data[value.len - 1]))
            value.len--; /* libmicrohttpd before 1.0 leaves blanks at the end (RFC 9112, 5.1) */
        check->hosts++;
        check->is_malformed |= !consists_of(value, "-._~!$&'()*+,;=:[]%");
    }
    check->lengths += is_named(name, "Content-Length");
    check->transfer_encodings += is_named(name, "Transfer-Encoding");
}

bool request_check_is_malformed(const struct request_check *check, struct span version)
{
    return check->is_malformed || check->hosts > 1 ||
           (check->hosts == 0 && !span_equals(version, "HTTP/1.0")) ||
           check->lengths + check->transfer_encodings > 1;
}

bool request_check_has_hidden_bytes(const struct request_check *check, struct span method,
                                    struct span version, size_t head_bytes)
{
    return head_bytes != method.len + strlen(" ") + check->bytes + strlen(" ") + version.len +
                             strlen("\r\n") + strlen("\r\n");
}

const char *request_check_path(const char *target)
{
    size_t scheme = scheme_len(target, strlen(target));
    const char *path = target + scheme;

    if (scheme == 0)
        return target;
    path += strcspn(path, "/");
    return *path ? path : "/";
}
