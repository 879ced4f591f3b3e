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
 * 0: `ret_message` points into `reply`, which the caller initialises and frees. Else as
 * http_client_do, or -EREMOTEIO (a status other than 0) or -EBADMSG (status 0, but not exactly one
 * message). `ret_status` (may be NULL) is set wherever there was a status: 12 is "unimplemented", 8
 * "resource exhausted".
 */
int grpc_call(struct http_client *client, const struct grpc_call *call, struct http_reply *reply,
              struct span *ret_message, int *ret_status, struct error *err);

/* Pure. The message of a body. 0 or -EBADMSG: cut, compressed, or several. */
int grpc_unframe(struct span body, struct span *ret_message);
