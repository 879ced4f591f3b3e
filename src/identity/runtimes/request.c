#include "identity/runtimes/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/grpc.h"
#include "core/json_reader.h"
#include "core/macros.h"
#include "identity/runtimes/parse.h"

enum { HTTP_OK = 200, HTTP_UNAUTHORIZED = 401, HTTP_FORBIDDEN = 403, HTTP_NOT_FOUND = 404 };

/* Initialises the reply, which the caller frees. */
static int http_get(const struct runtime_call *call, const char *path, struct http_reply *reply,
                    struct error *err)
{
    char url[256];
    struct http_request request = {
        .url = url,
        .socket_path = call->socket_path,
        .timeout_us = call->timeout_us,
        .max_bytes = RUNTIME_REPLY_MAX,
    };
    int r;

    snprintf(url, sizeof(url), "http://localhost%s", path);
    http_reply_init(reply);
    r = http_client_do(call->client, &request, reply, err);
    if (r < 0 || reply->status == HTTP_OK)
        return r;
    r = reply->status == HTTP_UNAUTHORIZED || reply->status == HTTP_FORBIDDEN ? -EACCES
                                                                              : -EREMOTEIO;
    return error_set(err, r, "%s at '%s' answered GET %s with HTTP status %d", call->runtime->name,
                     call->socket_path, path, reply->status);
}

static int describe_fault(int r, const char *name, const char *socket_path, struct error *err)
{
    return error_set(err, r, "%s at '%s': %s", name, socket_path,
                     r == -ENOMEM ? "out of memory" : "invalid response");
}

int runtime_http_parse(const struct runtime_ops *runtime, struct span body,
                       struct container_list *list)
{
    struct json *reply = NULL;
    int r = json_read(body, &reply);

    for (size_t i = 0; r == 0 && i < json_length(reply); i++)
        r = runtime->add_container(json_at(reply, i), list);
    json_free(reply);
    return r;
}

int runtime_http_list(const struct runtime_call *call, enum runtime_scope scope,
                      struct container_list *list, struct error *err)
{
    /* {"status":["running","paused"]}: a paused container still holds its GPU memory. */
    static const char *const queries[] = {
        [RUNTIME_RUNNING] = "filters=%7B%22status%22%3A%5B%22running%22%2C%22paused%22%5D%7D",
        [RUNTIME_ALL] = "all=true",
    };
    struct http_reply reply;
    char path[192];
    int r;

    snprintf(path, sizeof(path), "%s/json?%s", call->runtime->api_path, queries[scope]);
    r = http_get(call, path, &reply, err);
    if (r == 0) {
        r = runtime_http_parse(call->runtime, (struct span){reply.body.data, reply.body.len}, list);
        if (r < 0)
            describe_fault(r, call->runtime->name, call->socket_path, err);
    }
    http_reply_done(&reply);
    return r;
}

int runtime_http_inspect(const struct runtime_call *call, const char *container_id,
                         struct gpu_access_list *gpus, struct error *err)
{
    struct http_reply reply;
    char path[192];
    int r;

    snprintf(path, sizeof(path), "%s/%s/json", call->runtime->api_path, container_id);
    r = http_get(call, path, &reply, err);
    if (r == -EREMOTEIO && reply.status == HTTP_NOT_FOUND) {
        r = -ESRCH;
    } else if (r == 0) {
        r = inspect_parse_container((struct span){reply.body.data, reply.body.len}, gpus);
        if (r < 0)
            describe_fault(r, call->runtime->name, call->socket_path, err);
    }
    http_reply_done(&reply);
    return r;
}

bool runtime_http_is_running(const char *state)
{
    return !state || strcmp(state, "running") == 0 || strcmp(state, "paused") == 0 ||
           strcmp(state, "stopping") == 0;
}

static int errno_of_status(int status)
{
    static const struct {
        int status, code;
    } codes[] = {
        {5, -ESRCH},       /* not found */
        {7, -EACCES},      /* permission denied */
        {8, -EAGAIN},      /* resource exhausted */
        {12, -EOPNOTSUPP}, /* unimplemented */
        {16, -EACCES},     /* unauthenticated */
    };

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return -EREMOTEIO;
}

int runtime_grpc(const struct runtime_call *call, const char *name, const char *method,
                 struct span request, int (*parse)(struct span message, void *result), void *result,
                 struct error *err)
{
    const struct grpc_call grpc = {
        .socket_path = call->socket_path,
        .method = method,
        .request = request,
        .timeout_us = call->timeout_us,
        .max_bytes = RUNTIME_REPLY_MAX,
    };
    struct http_reply reply;
    struct span message;
    int r, status = 0;

    http_reply_init(&reply);
    r = grpc_call(call->client, &grpc, &reply, &message, &status, err);
    if (r == -EREMOTEIO) {
        r = errno_of_status(status);
    } else if (r == 0) {
        r = parse(message, result);
        if (r < 0)
            describe_fault(r, name, call->socket_path, err);
    }
    http_reply_done(&reply);
    return r;
}
