/* containerd, CRI-O, cri-dockerd: whatever runs the containers of a kubelet. */
#include "identity/cri.h"

#include <errno.h>

#include "identity/ask.h"

static const char *const sockets[] = {
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock", /* and RKE2 */
    "/run/cri-dockerd.sock",
    "/run/k0s/containerd.sock",
    "/var/snap/microk8s/common/run/containerd.sock",
    NULL,
};

struct version {
    const char *containers, *sandboxes;
};

static const struct version v1 = {
    "/runtime.v1.RuntimeService/ListContainers",
    "/runtime.v1.RuntimeService/ListPodSandbox",
};

/* All that there was before containerd 1.6; gone from containerd 2. */
static const struct version v1alpha2 = {
    "/runtime.v1alpha2.RuntimeService/ListContainers",
    "/runtime.v1alpha2.RuntimeService/ListPodSandbox",
};

struct cri {
    struct http_client *client;
    const char *socket_path;
    uint64_t timeout_us;
    struct container_list *list;
};

enum { REQUEST_CAP_BYTES = 64 };

static int ask(const struct cri *cri, const char *method, void (*put_request)(struct buffer *out),
               int (*parse)(struct span message, struct container_list *list), struct error *err)
{
    struct grpc_call call = {
        .socket_path = cri->socket_path,
        .method = method,
        .timeout_us = cri->timeout_us,
        .max_bytes = RUNTIME_REPLY_MAX,
    };
    struct http_reply reply;
    struct buffer request;
    struct span message;
    int r;

    http_reply_init(&reply);
    buffer_init(&request, REQUEST_CAP_BYTES);
    put_request(&request);
    call.request = (struct span){request.data, request.len};
    if (buffer_failed(&request))
        r = error_set(err, -ENOMEM, "CRI at '%s': out of memory", cri->socket_path);
    else
        r = ask_grpc(cri->client, &call, &reply, &message, err);
    if (r == 0) {
        r = parse(message, cri->list);
        if (r < 0)
            error_set(err, r, "CRI at '%s': %s", cri->socket_path,
                      r == -ENOMEM ? "out of memory" : "the answer is no list");
    }
    buffer_done(&request);
    http_reply_done(&reply);
    return r;
}

static int ask_for_containers(const struct cri *cri, const struct version *version,
                              struct error *err)
{
    return ask(cri, version->containers, cri_put_containers_request, cri_parse_containers, err);
}

static int list_cri(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                    struct container_list *list, struct error *err)
{
    const struct cri cri = {client, socket_path, timeout_us, list};
    const struct version *version = &v1;
    int r = ask_for_containers(&cri, version, err);

    if (r == -EOPNOTSUPP) {
        version = &v1alpha2;
        r = ask_for_containers(&cri, version, err);
    }
    if (r < 0)
        return r;
    /* The pause container of a pod is no container to CRI, but its cgroup looks like one's. Its
     * name is worth a question, but no error. */
    (void)ask(&cri, version->sandboxes, cri_put_sandboxes_request, cri_parse_sandboxes, NULL);
    return 0;
}

const struct runtime_ops runtime_cri = {"cri", sockets, list_cri};
