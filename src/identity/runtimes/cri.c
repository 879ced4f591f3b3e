/* containerd, CRI-O, cri-dockerd: whatever runs the containers of a kubelet. */
#include "identity/runtimes/cri.h"

#include <errno.h>
#include <stdio.h>

#include "client/protobuf.h"
#include "core/macros.h"
#include "identity/cgroup/container.h"
#include "identity/runtimes/ask.h"
#include "identity/runtimes/inspect.h"
#include "identity/runtimes/kubernetes_labels.h"

enum { REQUEST_CAP_BYTES = 128, IMAGE_CAP_BYTES = 64 << 10 };

/* Field numbers of cri-api/pkg/apis/runtime/v1/api.proto. */
enum { REQUEST_FILTER = 1, FILTER_STATE = 2, STATE_VALUE = 1 };
enum { RESPONSE_ITEM = 1 };
enum {
    CONTAINER_ID = 1,
    CONTAINER_METADATA = 3,
    CONTAINER_IMAGE = 4,
    CONTAINER_STATE = 6,
    CONTAINER_LABELS = 8,
};
enum { CONTAINER_METADATA_NAME = 1 };
enum { IMAGE_NAME = 1, IMAGE_USER_SPECIFIED = 18 };
enum { MAP_KEY = 1, MAP_VALUE = 2 };
enum { SANDBOX_ID = 1, SANDBOX_METADATA = 2, SANDBOX_STATE = 3 };
enum { SANDBOX_NAME = 1, SANDBOX_UID = 2, SANDBOX_NAMESPACE = 3 };

enum { STATUS_REQUEST_ID = 1, STATUS_REQUEST_VERBOSE = 2, STATUS = 1, STATUS_INFO = 2 };
enum { STATUS_IMAGE = 8, STATUS_IMAGE_REF = 9 };

enum { CONTAINER_RUNNING = 1, CONTAINER_EXITED = 2 }; /* 0 is created, 3 unknown */
enum { SANDBOX_READY = 0, SANDBOX_NOTREADY = 1 };

/* Both requests have the same shape: a filter that holds a state in a message of its own. */
static void put_state_request(struct buffer *out, uint64_t state)
{
    struct buffer value, filter;

    buffer_init(&value, REQUEST_CAP_BYTES);
    buffer_init(&filter, REQUEST_CAP_BYTES);
    protobuf_put_varint(&value, STATE_VALUE, state);
    protobuf_put_bytes(&filter, FILTER_STATE, (struct span){value.data, value.len});
    protobuf_put_bytes(out, REQUEST_FILTER, (struct span){filter.data, filter.len});
    out->failed |= buffer_failed(&value) || buffer_failed(&filter);
    buffer_done(&value);
    buffer_done(&filter);
}

/* Without a filter all are listed. */
void cri_put_containers_request(struct buffer *out, enum runtime_scope scope)
{
    if (scope == RUNTIME_RUNNING)
        put_state_request(out, CONTAINER_RUNNING);
}

void cri_put_sandboxes_request(struct buffer *out, enum runtime_scope scope)
{
    if (scope == RUNTIME_RUNNING)
        put_state_request(out, SANDBOX_READY);
}

void cri_put_status_request(struct buffer *out, const char *container_id, bool verbose)
{
    protobuf_put_bytes(out, STATUS_REQUEST_ID, span_of(container_id));
    if (verbose)
        protobuf_put_varint(out, STATUS_REQUEST_VERBOSE, 1);
}

struct span cri_find_info(struct span message)
{
    struct protobuf response = protobuf_message(message);
    struct span info = {NULL, 0};
    struct protobuf_field field;

    while (protobuf_next(&response, &field))
        if (field.is_bytes && field.number == STATUS_INFO &&
            span_equals(protobuf_find_bytes(field.bytes, MAP_KEY), "info"))
            info = protobuf_find_bytes(field.bytes, MAP_VALUE);
    return response.broken ? (struct span){NULL, 0} : info;
}

static void read_label(struct span entry, struct container_spans *container)
{
    struct span key = protobuf_find_bytes(entry, MAP_KEY);
    struct span value = protobuf_find_bytes(entry, MAP_VALUE);

    if (span_equals(key, KUBERNETES_POD_NAME))
        container->pod = value;
    else if (span_equals(key, KUBERNETES_POD_NAMESPACE))
        container->namespace = value;
    else if (span_equals(key, KUBERNETES_POD_UID))
        container->pod_uid = value;
    else if (span_equals(key, KUBERNETES_CONTAINER_NAME))
        container->name = value;
}

/* What the pod asked for, where the runtime has kept it: `image` may be a bare digest, which is
 * what the kubelet tells the runtime to start. */
static struct span find_name_of_image(struct span image)
{
    struct span specified = protobuf_find_bytes(image, IMAGE_USER_SPECIFIED);

    return specified.len > 0 ? specified : protobuf_find_bytes(image, IMAGE_NAME);
}

/* "sha256:0123..." or the digits alone, as CRI-O has them. */
static bool is_digest(struct span image)
{
    (void)span_strip_prefix(&image, "sha256:");
    return cgroup_container_is_id(image); /* as long as the id of a container */
}

struct span cri_find_image(struct span message)
{
    struct span status = protobuf_find_bytes(message, STATUS);
    struct span image = find_name_of_image(protobuf_find_bytes(status, STATUS_IMAGE));

    if (image.len == 0 || is_digest(image))
        image = protobuf_find_bytes(status, STATUS_IMAGE_REF); /* "busybox@sha256:0123..." */
    return image.len == 0 || is_digest(image) ? (struct span){NULL, 0} : image;
}

static int add_container(struct span message, struct container_list *list)
{
    struct protobuf reader = protobuf_message(message);
    struct container_spans container = {.is_pod_certain = true};
    struct span metadata_name = {NULL, 0};
    struct protobuf_field field;

    while (protobuf_next(&reader, &field)) {
        if (!field.is_bytes) {
            if (field.number == CONTAINER_STATE)
                container.ended = field.value == CONTAINER_EXITED;
            continue;
        }
        if (field.number == CONTAINER_ID)
            container.id = field.bytes;
        else if (field.number == CONTAINER_METADATA)
            metadata_name = protobuf_find_bytes(field.bytes, CONTAINER_METADATA_NAME);
        else if (field.number == CONTAINER_IMAGE)
            container.image = find_name_of_image(field.bytes);
        else if (field.number == CONTAINER_LABELS)
            read_label(field.bytes, &container);
    }
    if (reader.broken)
        return 0;
    if (container.name.len == 0)
        container.name = metadata_name;
    container.image_is_digest = is_digest(container.image);
    return container_list_add_spans(list, &container);
}

static bool is_ready(struct span sandbox)
{
    struct protobuf reader = protobuf_message(sandbox);
    uint64_t state = SANDBOX_READY; /* which is not on the wire */
    struct protobuf_field field;

    while (protobuf_next(&reader, &field))
        if (!field.is_bytes && field.number == SANDBOX_STATE)
            state = field.value;
    return state != SANDBOX_NOTREADY;
}

static int add_sandbox(struct span message, struct container_list *list)
{
    struct span metadata = protobuf_find_bytes(message, SANDBOX_METADATA);
    struct container_spans sandbox = {
        .id = protobuf_find_bytes(message, SANDBOX_ID),
        .name = span_of("POD"),
        .namespace = protobuf_find_bytes(metadata, SANDBOX_NAMESPACE),
        .pod = protobuf_find_bytes(metadata, SANDBOX_NAME),
        .pod_uid = protobuf_find_bytes(metadata, SANDBOX_UID),
        .is_pod_certain = true,
        .ended = !is_ready(message),
    };

    return container_list_add_spans(list, &sandbox);
}

static int parse_response(struct span message, struct container_list *list,
                          int (*add)(struct span item, struct container_list *list))
{
    struct protobuf response = protobuf_message(message);
    struct protobuf_field field;

    while (protobuf_next(&response, &field)) {
        int r;

        if (!field.is_bytes || field.number != RESPONSE_ITEM)
            continue;
        r = add(field.bytes, list);
        if (r < 0)
            return r;
    }
    return response.broken ? -EBADMSG : 0;
}

int cri_parse_containers(struct span message, struct container_list *list)
{
    return parse_response(message, list, add_container);
}

int cri_parse_sandboxes(struct span message, struct container_list *list)
{
    return parse_response(message, list, add_sandbox);
}

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
struct status_query {
    const char *container_id;
    bool verbose;
    int (*read)(struct span message, void *result);
    void *result;
};

static int ask_for_status(const struct cri *cri, const struct version *version,
                          const struct status_query *query, struct error *err)
{
    struct http_reply reply;
    struct buffer request;
    struct span message;
    int r;

    http_reply_init(&reply);
    buffer_init(&request, REQUEST_CAP_BYTES);
    cri_put_status_request(&request, query->container_id, query->verbose);
    r = call(cri, version->status, &request, &reply, &message, err);
    if (r == 0) {
        r = query->read(message, query->result);
        if (r < 0 && r != -ENODATA)
            error_set(err, r, "CRI at '%s': %s", cri->socket_path,
                      r == -ENOMEM ? "out of memory" : "what it says of a container is no status");
    }
    buffer_done(&request);
    http_reply_done(&reply);
    return r;
}

static int query_status(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                        const struct status_query *query, struct error *err)
{
    const struct cri cri = {client, socket_path, timeout_us};
    int r = ask_for_status(&cri, &v1, query, err);

    return r == -EOPNOTSUPP ? ask_for_status(&cri, &v1alpha2, query, err) : r;
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
    return query_status(client, socket_path, timeout_us,
                        &(struct status_query){container_id, true, read_gpus, gpus}, err);
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
    return query_status(client, socket_path, timeout_us,
                        &(struct status_query){container_id, false, read_image, ret_image}, err);
}

const struct runtime_ops runtime_cri = {
    .name = "cri",
    .flag = "cri-socket",
    .help = "socket of containerd or CRI-O; '' disables it",
    .sockets = sockets,
    .is_of_kubernetes = true,
    .list = list_cri,
    .inspect = inspect_cri,
    .find_image = find_cri_image,
};
