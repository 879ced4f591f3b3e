/* The client's side of a unit test: answers that were laid out before, and what was asked. Linked
 * in place of client/http_client.c and client/grpc.c. */
#pragma once

#include <errno.h>
#include <string.h>

#include "client/grpc.h"
#include "client/http_client.h"
#include "core/macros.h"

struct fake_answer {
    int r;
    int status; /* of HTTP, or of gRPC with r = -EREMOTEIO */
    struct span body;
};

static struct {
    struct fake_answer answers[4];
    size_t asked;
    char paths[4][256];     /* of the URL, or the method */
    char requests[4][128];  /* of gRPC */
    size_t request_lens[4]; /* of gRPC */
    int replies;            /* initialised and not done */
} fake_client;

static const struct fake_answer *fake_next(const char *path, const char *socket_path,
                                           uint64_t timeout_us, size_t max_bytes)
{
    size_t i = fake_client.asked++;

    assert_true(i < ARRAY_SIZE(fake_client.answers));
    assert_string_equal(socket_path, "/run/test.sock");
    assert_int_equal(timeout_us, 3000000);
    assert_int_equal(max_bytes, 16 << 20);
    assert_true(strlen(path) < sizeof(fake_client.paths[i]));
    memcpy(fake_client.paths[i], path, strlen(path) + 1);
    return &fake_client.answers[i];
}

void http_reply_init(struct http_reply *reply)
{
    *reply = (struct http_reply){0};
    buffer_init(&reply->body, 16 << 20);
    fake_client.replies++;
}

void http_reply_done(struct http_reply *reply)
{
    buffer_done(&reply->body);
    fake_client.replies--;
}

int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    const struct fake_answer *answer =
        fake_next(request->url, request->socket_path, request->timeout_us, request->max_bytes);

    assert_null(client);
    assert_null(request->body.data);
    assert_false(request->http2);
    if (answer->r < 0)
        return error_set(err, answer->r, "the client's text");
    ret_reply->status = answer->status;
    buffer_bytes(&ret_reply->body, answer->body.data, answer->body.len);
    return 0;
}

int grpc_call(struct http_client *client, const struct grpc_call *call, struct http_reply *reply,
              struct span *ret_message, int *ret_status, struct error *err)
{
    size_t i = fake_client.asked;
    const struct fake_answer *answer =
        fake_next(call->method, call->socket_path, call->timeout_us, call->max_bytes);

    assert_null(client);
    assert_true(call->request.len <= sizeof(fake_client.requests[i]));
    if (call->request.len > 0)
        memcpy(fake_client.requests[i], call->request.data, call->request.len);
    fake_client.request_lens[i] = call->request.len;
    if (answer->r == -EREMOTEIO)
        *ret_status = answer->status;
    if (answer->r < 0)
        return error_set(err, answer->r, "the client's text");
    buffer_bytes(&reply->body, answer->body.data, answer->body.len);
    *ret_message = (struct span){reply->body.data, reply->body.len};
    return 0;
}

/* A group's setup: nothing is asked yet. */
static int fake_reset(void **state)
{
    (void)state;
    memset(&fake_client, 0, sizeof(fake_client));
    return 0;
}
