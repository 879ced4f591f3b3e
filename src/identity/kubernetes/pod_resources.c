#include "identity/kubernetes/pod_resources.h"

#include <errno.h>

#include "identity/runtimes/ask.h"

int pod_resources_list(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                       struct allocation_list *list, struct error *err)
{
    const struct grpc_call call = {
        .socket_path = socket_path,
        .method = "/v1.PodResourcesLister/List",
        .request = {"", 0},
        .timeout_us = timeout_us,
        .max_bytes = RUNTIME_REPLY_MAX,
    };
    struct http_reply reply;
    struct span message;
    int r;

    http_reply_init(&reply);
    r = ask_grpc(client, &call, &reply, &message, err);
    if (r == 0) {
        r = pod_resources_parse(message, list);
        if (r < 0)
            error_set(err, r, "kubelet at '%s': %s", socket_path,
                      r == -ENOMEM ? "out of memory" : "the answer is no list of pod resources");
    }
    http_reply_done(&reply);
    return r;
}
