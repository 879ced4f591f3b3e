/* One question to a daemon of the node, and what it means if the answer is no. */
#pragma once

#include "client/grpc.h"
#include "client/http_client.h"
#include "identity/runtime.h"

/* A list of containers that is there for a GET. */
struct ask_http_list {
    const char *who; /* for texts */
    const char *path;
    int (*parse)(struct span body, struct container_list *list);
};

/* As runtime_ops' `list`. */
int ask_http_list(struct http_client *client, const struct ask_http_list *what,
                  const char *socket_path, uint64_t timeout_us, struct container_list *list,
                  struct error *err);

/* What GET answers for one container, by `parse`; `path` has its id in it. As runtime_ops'
 * `inspect`.
 */
struct ask_http_inspect {
    const char *who;
    const char *path;
    int (*parse)(struct span body, struct gpu_access_list *gpus);
};
int ask_http_inspect(struct http_client *client, const struct ask_http_inspect *what,
                     const char *socket_path, uint64_t timeout_us, struct gpu_access_list *gpus,
                     struct error *err);

/* As grpc_call, but a status is an errno where there is one for it: -EACCES, -EAGAIN (resource
 * exhausted: back off), -EOPNOTSUPP (unimplemented), -ESRCH (not found); else it is -EREMOTEIO. */
int ask_grpc(struct http_client *client, const struct grpc_call *call, struct http_reply *reply,
             struct span *ret_message, struct error *err);
