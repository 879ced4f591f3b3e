#include "identity/ask.h"

#include <errno.h>
#include <stdio.h>

enum { HTTP_OK = 200, HTTP_UNAUTHORIZED = 401, HTTP_FORBIDDEN = 403 };

enum {
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_UNAUTHENTICATED = 16,
};

/* The errno of an answer that is not the list. */
static int refused(const struct ask_http_list *what, const char *socket_path, int status,
                   struct error *err)
{
    int code = status == HTTP_UNAUTHORIZED || status == HTTP_FORBIDDEN ? -EACCES : -EREMOTEIO;

    return error_set(err, code, "%s at '%s' answered GET %s with HTTP status %d", what->who,
                     socket_path, what->path, status);
}

int ask_http_list(struct http_client *client, const struct ask_http_list *what,
                  const char *socket_path, uint64_t timeout_us, struct container_list *list,
                  struct error *err)
{
    char url[256];
    struct http_request request = {
        .url = url,
        .socket_path = socket_path,
        .timeout_us = timeout_us,
        .max_bytes = RUNTIME_REPLY_MAX,
    };
    struct http_reply reply;
    int r;

    snprintf(url, sizeof(url), "http://localhost%s", what->path);
    http_reply_init(&reply);
    r = http_client_do(client, &request, &reply, err);
    if (r == 0 && reply.status != HTTP_OK) {
        r = refused(what, socket_path, reply.status, err);
    } else if (r == 0) {
        r = what->parse((struct span){reply.body.data, reply.body.len}, list);
        if (r < 0)
            error_set(err, r, "%s at '%s': %s", what->who, socket_path,
                      r == -ENOMEM ? "out of memory" : "the answer is no JSON");
    }
    http_reply_done(&reply);
    return r;
}

int ask_grpc(struct http_client *client, const struct grpc_call *call, struct http_reply *reply,
             struct span *ret_message, struct error *err)
{
    int status = 0;
    int r = grpc_call(client, call, reply, ret_message, &status, err);

    if (r != -EREMOTEIO)
        return r;
    switch (status) {
    case GRPC_PERMISSION_DENIED:
    case GRPC_UNAUTHENTICATED:
        return -EACCES;
    case GRPC_RESOURCE_EXHAUSTED:
        return -EAGAIN;
    case GRPC_UNIMPLEMENTED:
        return -EOPNOTSUPP;
    default:
        return r;
    }
}
