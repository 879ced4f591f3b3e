/*
 * gRPC replies. The first byte chooses what the others are: 0 a body, else all that an HTTP/2
 * server says. Any bytes are a message within them, or an error with a text.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "client/grpc.h"
#include "core/macros.h"
#include "peer.h"

enum { MESSAGE_MAX = 512 }; /* small, so that the limit is reached */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct span part, struct span whole)
{
    if (part.data < whole.data || part.data + part.len != whole.data + whole.len)
        abort();
}

static void check_unframe(struct span body)
{
    struct span message;

    if (grpc_unframe(body, &message) == 0)
        check_within(message, body);
}

static void check_call(struct span bytes)
{
    const struct peer_script script = {.reply = bytes};
    struct peer *peer = peer_start(&script);
    const struct grpc_call call = {
        .socket_path = peer->path,
        .method = "/fuzz.Fuzz/Fuzz",
        .timeout_us = 9 * USEC_PER_SEC,
        .max_bytes = MESSAGE_MAX,
    };
    struct http_client *client;
    struct http_reply reply;
    struct span message;
    struct error err = {""};
    int status = -1, r;

    if (http_client_new(&client) < 0)
        abort();
    http_reply_init(&reply);
    r = grpc_call(client, &call, &reply, &message, &status, &err);
    if (r == 0) {
        check_within(message, (struct span){reply.body.data, reply.body.len});
        if (message.len > MESSAGE_MAX || status != 0)
            abort();
    } else if (err.text[0] == '\0' || (r == -EREMOTEIO && status <= 0) || r == -ETIMEDOUT) {
        abort(); /* no time runs out: the peer hangs up at the end */
    }
    http_reply_done(&reply);
    http_client_free(client);
    peer_free(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest;

    if (size == 0)
        return 0;
    rest = (struct span){(const char *)data + 1, size - 1};
    if (data[0] == 0)
        check_unframe(rest);
    else
        check_call(rest);
    return 0;
}
