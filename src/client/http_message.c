/* The parts of http_client.h that need no client, so that tests can replace it. */
#include <string.h>

#include "client/http_client.h"

void http_reply_init(struct http_reply *reply)
{
    *reply = (struct http_reply){0};
}

void http_reply_done(struct http_reply *reply)
{
    buffer_done(&reply->body);
    *reply = (struct http_reply){0};
}

void http_put_basic(struct buffer *header, const char *user, const char *password)
{
    struct buffer pair;

    buffer_init(&pair, header->cap_bytes);
    buffer_str(&pair, user);
    buffer_char(&pair, ':');
    buffer_str(&pair, password);
    if (buffer_failed(&pair))
        buffer_fail(header);
    buffer_str(header, "Authorization: Basic ");
    buffer_base64(header, (struct span){pair.data, pair.len});
    buffer_char(header, '\0');
    buffer_wipe(&pair);
}

void http_put_parameter(struct buffer *url, const char *name, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-._~";
    static const char hex[] = "0123456789ABCDEF";
    bool is_first = url->len == 0 || !memchr(url->data, '?', url->len);

    buffer_char(url, is_first ? '?' : '&');
    buffer_str(url, name);
    buffer_char(url, '=');
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;

        if (strchr(plain, c)) {
            buffer_char(url, (char)c);
            continue;
        }
        buffer_char(url, '%');
        buffer_char(url, hex[c >> 4]);
        buffer_char(url, hex[c & 15]);
    }
}
