/*
 * Replies of an HTTP/1.1 server: any bytes yield a reply within its limits, or an error with a
 * text. The first byte chooses whether the body is streamed.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/http_client.h"
#include "core/macros.h"
#include "peer.h"

enum { BODY_MAX = 512 }; /* small, so that the limit is reached */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_bytes(void *context, struct span data)
{
    size_t *total = context;

    *total += data.len;
    return 0;
}

static void check_outcome(int r, const struct http_reply *reply, const struct error *err)
{
    switch (r) {
    case 0:
        if (reply->status < 200 || reply->body.len > BODY_MAX)
            abort();
        return;
    case -EPROTO:
    case -EFBIG:
        if (err->text[0] == '\0' || reply->status != 0 || reply->body.len > 0)
            abort();
        return;
    default: /* the peer is there, and hangs up at the end */
        abort();
    }
}

static void check_header(void *context, const char *name, const char *value)
{
    (void)context;
    if (strpbrk(name, "\r\n") || strpbrk(value, "\r\n"))
        abort();
}

static void check_reply(struct span bytes, bool is_streamed)
{
    const struct peer_script script = {.reply = bytes};
    struct peer *peer = peer_start(&script);
    size_t total = 0;
    const struct http_request request = {
        .url = "http://localhost/",
        .socket_path = peer->path,
        .timeout_us = 9 * USEC_PER_SEC,
        .max_bytes = BODY_MAX,
        .on_header = check_header,
        .on_data = is_streamed ? count_bytes : NULL,
        .context = &total,
    };
    struct http_client *client;
    struct http_reply reply;
    struct error err = {""};
    int r;

    if (http_client_new(&client) < 0)
        abort();
    http_reply_init(&reply);
    r = http_client_do(client, &request, &reply, &err);
    check_outcome(r, &reply, &err);
    http_reply_done(&reply);
    http_client_free(client);
    peer_free(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        check_reply((struct span){(const char *)data + 1, size - 1}, data[0] & 1);
    return 0;
}
