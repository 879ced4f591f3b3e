#include "client/grpc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <strings.h>

#include "core/macros.h"
#include "core/parse.h"

enum {
    FRAME_BYTES = 5, /* before a message: a compression flag, and the length, big-endian */
    STATUS_BYTES = 16,
};

static const char *status_name(uint64_t status)
{
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };

    return status < ARRAY_SIZE(names) ? names[status] : "unknown";
}

int grpc_unframe(struct span body, struct span *ret_message)
{
    const unsigned char *frame = (const unsigned char *)body.data;
    size_t len;

    if (body.len < FRAME_BYTES || frame[0] != 0)
        return -EBADMSG;
    len = (size_t)frame[1] << 24 | (size_t)frame[2] << 16 | (size_t)frame[3] << 8 | frame[4];
    if (len != body.len - FRAME_BYTES)
        return -EBADMSG;
    *ret_message = (struct span){body.data + FRAME_BYTES, len};
    return 0;
}

/* grpc-status is a trailer, or a header where there is no message. The last one counts. */
static void keep_status(void *context, const char *name, const char *value)
{
    char *status = context;

    if (strcasecmp(name, "grpc-status") == 0)
        snprintf(status, STATUS_BYTES, "%s", strlen(value) < STATUS_BYTES ? value : "");
}

static int send_call(struct http_client *client, const struct grpc_call *call,
                     const struct buffer *body, struct http_reply *reply, char status[STATUS_BYTES],
                     struct error *err)
{
    char url[256], timeout[40];
    const char *const headers[] = {"Content-Type: application/grpc", "TE: trailers", timeout, NULL};
    const struct http_request request = {
        .url = url,
        .socket_path = call->socket_path,
        .headers = headers,
        .body = {body->data, body->len},
        .http2 = true,
        .timeout_us = call->timeout_us,
        .max_bytes = call->max_bytes + MIN((size_t)FRAME_BYTES, SIZE_MAX - call->max_bytes),
        .on_header = keep_status,
        .context = status,
    };
    int len = snprintf(url, sizeof(url), "http://localhost%s", call->method);

    if (buffer_failed(body))
        return error_set(err, -ENOMEM, "cannot call %.256s: out of memory", call->method);
    if (len < 0 || (size_t)len >= sizeof(url))
        return error_set(err, -EINVAL, "cannot call %.256s: its name is too long", call->method);
    /* At most eight digits. */
    snprintf(
        timeout, sizeof(timeout), "grpc-timeout: %llum",
        (unsigned long long)MIN(MAX(call->timeout_us / 1000, (uint64_t)1), (uint64_t)99999999));
    return http_client_do(client, &request, reply, err);
}

#define fail_reply(call, err, code, format, ...)                                                   \
    error_set(err, code, "cannot call %.256s at %.256s: it replied with " format, (call)->method,  \
              (call)->socket_path, ##__VA_ARGS__)

static int read_reply(const struct grpc_call *call, const struct http_reply *reply,
                      const char *status_text, struct span *ret_message, int *ret_status,
                      struct error *err)
{
    struct span body = {reply->body.data, reply->body.len};
    uint64_t status;

    if (reply->status != 200)
        return fail_reply(call, err, -EPROTO, "HTTP status %d", reply->status);
    if (parse_u64_max(span_of(status_text), INT_MAX, &status) < 0)
        return fail_reply(call, err, -EPROTO, "no grpc-status");
    if (ret_status)
        *ret_status = (int)status;
    if (status != 0)
        return fail_reply(call, err, -EREMOTEIO, "status %d, %s", (int)status, status_name(status));
    if (grpc_unframe(body, ret_message) < 0)
        return fail_reply(call, err, -EBADMSG, "other than one message");
    return 0;
}

int grpc_call(struct http_client *client, const struct grpc_call *call, struct http_reply *reply,
              struct span *ret_message, int *ret_status, struct error *err)
{
    uint32_t len = (uint32_t)call->request.len;
    const char frame[FRAME_BYTES] = {0, (char)(len >> 24), (char)(len >> 16), (char)(len >> 8),
                                     (char)len};
    char status[STATUS_BYTES] = "";
    struct buffer body;
    int r;

    if (call->request.len > UINT32_MAX)
        return error_set(err, -EINVAL, "cannot call %.256s: its request is too long", call->method);
    buffer_init(&body, sizeof(frame) + call->request.len);
    buffer_bytes(&body, frame, sizeof(frame));
    buffer_bytes(&body, call->request.data, call->request.len);
    r = send_call(client, call, &body, reply, status, err);
    buffer_done(&body);
    return r < 0 ? r : read_reply(call, reply, status, ret_message, ret_status, err);
}
