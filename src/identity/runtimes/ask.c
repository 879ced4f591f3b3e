#include "identity/runtimes/ask.h"

#include <errno.h>
#include <stdio.h>

enum { HTTP_OK = 200, HTTP_UNAUTHORIZED = 401, HTTP_FORBIDDEN = 403, HTTP_NOT_FOUND = 404 };

enum {
    GRPC_NOT_FOUND = 5,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_UNAUTHENTICATED = 16,
};

/* The errno of an answer that is not what was asked for. */
static int refused(const char *who, const char *path, const char *socket_path, int status,
                   struct error *err)
{
    int code = status == HTTP_UNAUTHORIZED || status == HTTP_FORBIDDEN ? -EACCES : -EREMOTEIO;

    return error_set(err, code, "%s at '%s' answered GET %s with HTTP status %d", who, socket_path,
                     path, status);
}

/* 0 and a status, whatever it is, or -errno with a text. */
static int get(struct http_client *client, const char *path, const char *socket_path,
               uint64_t timeout_us, struct http_reply *reply, struct error *err)
{
    char url[256];
    struct http_request request = {
        .url = url,
        .socket_path = socket_path,
        .timeout_us = timeout_us,
        .max_bytes = RUNTIME_REPLY_MAX,
    };

    snprintf(url, sizeof(url), "http://localhost%s", path);
    return http_client_do(client, &request, reply, err);
}

/* What parsing came to. */
static int parsed(int r, const char *who, const char *socket_path, struct error *err)
{
    return r == 0 ? 0
                  : error_set(err, r, "%s at '%s': %s", who, socket_path,
                              r == -ENOMEM ? "out of memory" : "the answer is no JSON");
}

int ask_http_list(struct http_client *client, const struct ask_http_list *what,
                  const char *socket_path, uint64_t timeout_us, struct container_list *list,
                  struct error *err)
{
    struct http_reply reply;
    int r;

    http_reply_init(&reply);
    r = get(client, what->path, socket_path, timeout_us, &reply, err);
    if (r == 0 && reply.status != HTTP_OK)
        r = refused(what->who, what->path, socket_path, reply.status, err);
    else if (r == 0)
        r = parsed(what->parse((struct span){reply.body.data, reply.body.len}, list), what->who,
                   socket_path, err);
    http_reply_done(&reply);
    return r;
}

int ask_http_inspect(struct http_client *client, const struct ask_http_inspect *what,
                     const char *socket_path, uint64_t timeout_us, struct gpu_access_list *gpus,
                     struct error *err)
{
    struct http_reply reply;
    int r;

    http_reply_init(&reply);
    r = get(client, what->path, socket_path, timeout_us, &reply, err);
    if (r == 0 && reply.status == HTTP_NOT_FOUND)
        r = error_set(err, -ESRCH, "%s at '%s' has no such container", what->who, socket_path);
    else if (r == 0 && reply.status != HTTP_OK)
        r = refused(what->who, what->path, socket_path, reply.status, err);
    else if (r == 0)
        r = parsed(what->parse((struct span){reply.body.data, reply.body.len}, gpus), what->who,
                   socket_path, err);
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
    case GRPC_NOT_FOUND:
        return -ESRCH;
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
