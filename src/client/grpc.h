/* Unary gRPC calls over a unix socket: HTTP/2 with a five-byte frame around each message. */
#pragma once

#include "client/http_client.h"

struct grpc_call {
    const char *socket_path;
    const char *method; /* "/runtime.v1.RuntimeService/ListContainers" */
    struct span request;
    uint64_t timeout_us;
    size_t max_bytes; /* of the reply's message */
};

/*
 * 0, and `ret_message` is the reply's message, inside `reply` (which the caller initialises and
 * frees). Else as http_client_do, and -EREMOTEIO: the server answered with another status than 0;
 * -EBADMSG: with 0, but not with one whole message. `ret_status` (may be NULL) is the status
 * wherever there was one: 12 is "unimplemented", 8 "resource exhausted".
 */
int grpc_call(struct http_client *client, const struct grpc_call *call, struct http_reply *reply,
              struct span *ret_message, int *ret_status, struct error *err);

/* Pure. The one message of a body. 0 or -EBADMSG: cut, compressed, or more than one. */
int grpc_unframe(struct span body, struct span *ret_message);
