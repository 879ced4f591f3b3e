#include "emissions/reply_headers.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "core/macros.h"
#include "core/parse.h"
#include "core/timestamp.h"
#include "emissions/provider.h"

/* Fewer seconds count from now, not from 1970: no service demands a wait of thirty years, and 2001
 * is over. */
static const uint64_t EPOCH_MIN_S = 1000000000;

#define FIELD(field)                                                                               \
    offsetof(struct reply_headers, field), sizeof(((struct reply_headers *)0)->field)

static const struct {
    const char *name;
    size_t offset, size;
    bool may_be_cut; /* else part of it is useless */
} fields[] = {
    {"Content-Type", FIELD(content_type), true},
    {"Location", FIELD(location), true},
    {"ETag", FIELD(etag), false},
    {"Last-Modified", FIELD(last_modified), false},
    {"Retry-After", FIELD(retry_after), false},
    {"X-RateLimit-Reset", FIELD(rate_limit_reset), false},
};

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

void reply_headers_take(void *context, const char *name, const char *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        char *field = (char *)context + fields[i].offset;

        if (strcasecmp(name, fields[i].name) != 0)
            continue;
        if (fields[i].may_be_cut || (strlen(value) < fields[i].size && is_printable(value)))
            provider_copy_printable(span_of(value), field, fields[i].size);
        else
            field[0] = '\0';
    }
}

/* "application/json; charset=utf-8", "text/xml", "application/problem+json". */
bool reply_headers_allow(const struct reply_headers *headers, const char *format)
{
    static const char *const before[] = {"application/", "text/"};
    const char *type = headers->content_type;
    size_t len = strcspn(type, "; "), format_len = strlen(format);

    if (len == 0)
        return true;
    if (len <= format_len || strncasecmp(type + len - format_len, format, format_len) != 0)
        return false;
    len -= format_len;
    for (size_t i = 0; i < ARRAY_SIZE(before); i++)
        if (len == strlen(before[i]) && strncasecmp(type, before[i], len) == 0)
            return true;
    return type[len - 1] == '+';
}

/* Seconds from now or from 1970, or a date, in either header. */
static uint64_t parse_wait_us(const char *text, uint64_t now_us)
{
    char date[sizeof(((struct reply_headers *)0)->rate_limit_reset)], *blank;
    uint64_t seconds, until_us;
    int r = parse_u64_max(span_of(text), UINT64_MAX / USEC_PER_SEC, &seconds);

    if (r == -ERANGE)
        return UINT64_MAX;
    if (r == 0 && seconds < EPOCH_MIN_S)
        return seconds * USEC_PER_SEC;
    if (r == 0)
        until_us = seconds * USEC_PER_SEC;
    else if (timestamp_parse_http(span_of(text), &until_us) < 0) {
        provider_copy_printable(span_of(text), date, sizeof(date));
        blank = strchr(date, ' ');
        if (blank)
            *blank = 'T'; /* Opendatasoft has "2026-01-16 00:00:00+00:00" */
        if (timestamp_parse(span_of(date), &until_us) < 0)
            return 0;
    }
    return until_us - MIN(until_us, now_us);
}

uint64_t reply_headers_wait_us(const struct reply_headers *headers, uint64_t now_us)
{
    uint64_t retry_us = parse_wait_us(headers->retry_after, now_us);
    uint64_t reset_us = parse_wait_us(headers->rate_limit_reset, now_us);

    return MAX(retry_us, reset_us);
}
