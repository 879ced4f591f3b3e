/* Requests to container runtimes and the kubelet, over their unix sockets. */
#pragma once

#include "identity/runtime.h"

/* `list` and `inspect` of struct runtime_ops, for Docker's HTTP API. */
int runtime_http_list(const struct runtime_call *call, enum runtime_scope scope,
                      struct container_list *list, struct error *err);
int runtime_http_inspect(const struct runtime_call *call, const char *container_id,
                         struct gpu_access_list *gpus, struct error *err);

/* Pure. The body of a list. Unexpected types are left out. 0, -EBADMSG (no JSON) or -ENOMEM; what
 * was read before counts. */
int runtime_http_parse(const struct runtime_ops *runtime, struct span body,
                       struct container_list *list);

/* By the "State" of Docker and Podman. NULL, as of old ones that list only running ones: true. */
bool runtime_http_is_running(const char *state);

/*
 * A gRPC call whose answer goes to `parse`, which returns 0 or -errno. -EACCES, -EAGAIN (resource
 * exhausted: back off), -EOPNOTSUPP (unimplemented), -ESRCH (not found), -EREMOTEIO (other status),
 * or as grpc_call. The text begins with `name`.
 */
int runtime_grpc(const struct runtime_call *call, const char *name, const char *method,
                 struct span request, int (*parse)(struct span message, void *result), void *result,
                 struct error *err);
