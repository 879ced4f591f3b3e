/* containerd, CRI-O, cri-dockerd: whatever runs the containers of a kubelet. */
#include "identity/runtimes/cri.h"

#include <errno.h>
#include <stdio.h>

#include "identity/runtimes/ask.h"
#include "identity/runtimes/inspect.h"

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
    const char *containers, *sandboxes, *status;
};

static const struct version v1 = {
    "/runtime.v1.RuntimeService/ListContainers",
    "/runtime.v1.RuntimeService/ListPodSandbox",
    "/runtime.v1.RuntimeService/ContainerStatus",
};

/* All that there was before containerd 1.6; gone from containerd 2. */
static const struct version v1alpha2 = {
    "/runtime.v1alpha2.RuntimeService/ListContainers",
    "/runtime.v1alpha2.RuntimeService/ListPodSandbox",
    "/runtime.v1alpha2.RuntimeService/ContainerStatus",
};

struct cri {
    struct http_client *client;
    const char *socket_path;
    uint64_t timeout_us;
};

enum { REQUEST_CAP_BYTES = 128, IMAGE_CAP_BYTES = 64 << 10 };

/* The message is in the reply, which is the caller's. */
static int call(const struct cri *cri, const char *method, const struct buffer *request,
                struct http_reply *reply, struct span *ret_message, struct error *err)
{
    const struct grpc_call grpc = {
        .socket_path = cri->socket_path,
        .method = method,
        .request = {request->data, request->len},
        .timeout_us = cri->timeout_us,
        .max_bytes = RUNTIME_REPLY_MAX,
    };

    if (buffer_failed(request))
        return error_set(err, -ENOMEM, "CRI at '%s': out of memory", cri->socket_path);
    return ask_grpc(cri->client, &grpc, reply, ret_message, err);
}

/* The two lists of CRI. */
struct listing {
    void (*put_request)(struct buffer *out, enum runtime_scope scope);
    int (*parse)(struct span message, struct container_list *list);
};

static const struct listing containers = {cri_put_containers_request, cri_parse_containers};
static const struct listing sandboxes = {cri_put_sandboxes_request, cri_parse_sandboxes};

static int ask_for_list(const struct cri *cri, const char *method, const struct listing *listing,
                        enum runtime_scope scope, struct container_list *list, struct error *err)
{
    struct http_reply reply;
    struct buffer request;
    struct span message;
    int r;

    http_reply_init(&reply);
    buffer_init(&request, REQUEST_CAP_BYTES);
    listing->put_request(&request, scope);
    r = call(cri, method, &request, &reply, &message, err);
    if (r == 0) {
        r = listing->parse(message, list);
        if (r < 0)
            error_set(err, r, "CRI at '%s': %s", cri->socket_path,
                      r == -ENOMEM ? "out of memory" : "the answer is no list");
    }
    buffer_done(&request);
    http_reply_done(&reply);
    return r;
}

/* The pause container of a pod is no container to CRI, but its cgroup looks like one's. Its name is
 * worth a question, but no error. */
static void ask_for_sandboxes(const struct cri *cri, const struct version *version,
                              enum runtime_scope scope, struct container_list *list)
{
    int r = ask_for_list(cri, version->sandboxes, &sandboxes, scope, list, NULL);

    if (r == -EFBIG && scope != RUNTIME_RUNNING)
        (void)ask_for_list(cri, version->sandboxes, &sandboxes, RUNTIME_RUNNING, list, NULL);
}

static int list_cri(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                    enum runtime_scope scope, struct container_list *list, struct error *err)
{
    const struct cri cri = {client, socket_path, timeout_us};
    const struct version *version = &v1;
    int r = ask_for_list(&cri, version->containers, &containers, scope, list, err);

    if (r == -EOPNOTSUPP) {
        version = &v1alpha2;
        r = ask_for_list(&cri, version->containers, &containers, scope, list, err);
    }
    if (r == 0)
        ask_for_sandboxes(&cri, version, scope, list);
    return r;
}

/* ContainerStatus, by `read`, whose errno is an answer that makes no sense. */
struct poll {
    const char *container_id;
    bool verbose;
    int (*read)(struct span message, void *result);
    void *result;
};

static int ask_for_status(const struct cri *cri, const struct version *version,
                          const struct poll *inquiry, struct error *err)
{
    struct http_reply reply;
    struct buffer request;
    struct span message;
    int r;

    http_reply_init(&reply);
    buffer_init(&request, REQUEST_CAP_BYTES);
    cri_put_status_request(&request, inquiry->container_id, inquiry->verbose);
    r = call(cri, version->status, &request, &reply, &message, err);
    if (r == 0) {
        r = inquiry->read(message, inquiry->result);
        if (r < 0 && r != -ENODATA)
            error_set(err, r, "CRI at '%s': %s", cri->socket_path,
                      r == -ENOMEM ? "out of memory" : "what it says of a container is no status");
    }
    buffer_done(&request);
    http_reply_done(&reply);
    return r;
}

static int inquire(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                   const struct poll *inquiry, struct error *err)
{
    const struct cri cri = {client, socket_path, timeout_us};
    int r = ask_for_status(&cri, &v1, inquiry, err);

    return r == -EOPNOTSUPP ? ask_for_status(&cri, &v1alpha2, inquiry, err) : r;
}

static int read_gpus(struct span message, void *result)
{
    struct span info = cri_find_info(message);

    /* One that tells no more than it must has told all that it has. */
    return info.len > 0 ? inspect_parse_cri_info(info, result) : 0;
}

static int inspect_cri(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                       const char *container_id, struct gpu_access_list *gpus, struct error *err)
{
    return inquire(client, socket_path, timeout_us,
                   &(struct poll){container_id, true, read_gpus, gpus}, err);
}

static int read_image(struct span message, void *result)
{
    const char *image;
    struct arena arena;
    int r = 0;

    arena_init(&arena, IMAGE_CAP_BYTES);
    image = runtime_text(&arena, cri_find_image(message));
    if (!image)
        r = -ENOMEM;
    else if (image[0] == '\0')
        r = -ENODATA;
    else
        snprintf(result, RUNTIME_TEXT_MAX + 1, "%s", image);
    arena_done(&arena);
    return r;
}

static int find_cri_image(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                          const char *container_id, char ret_image[RUNTIME_TEXT_MAX + 1],
                          struct error *err)
{
    return inquire(client, socket_path, timeout_us,
                   &(struct poll){container_id, false, read_image, ret_image}, err);
}

const struct runtime_ops runtime_cri = {"cri", sockets, list_cri, inspect_cri, find_cri_image};
