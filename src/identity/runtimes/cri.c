/* The Kubernetes container runtime interface (runtime.v1, and v1alpha2 before it, which has the
 * same field numbers): containerd, CRI-O, cri-dockerd. */
#include <errno.h>
#include <stdio.h>

#include "client/protobuf.h"
#include "core/macros.h"
#include "identity/cgroup/component.h"
#include "identity/runtime_table.h"
#include "identity/runtimes/parse.h"
#include "identity/runtimes/request.h"

enum { REQUEST_CAP_BYTES = 128, IMAGE_CAP_BYTES = 64 << 10 };

/* Field numbers of cri-api/pkg/apis/runtime/v1/api.proto. */
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

enum { CONTAINER_EXITED = 2 }; /* 0 is created, 1 running, 3 unknown */
enum { SANDBOX_READY = 0, SANDBOX_NOTREADY = 1 };

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

static void read_label(struct span entry, struct container *container, struct arena *arena)
{
    struct span key = protobuf_find_bytes(entry, MAP_KEY);
    struct {
        const char *label, **text;
    } labels[] = {
        {KUBERNETES_POD_NAME, &container->pod},
        {KUBERNETES_POD_NAMESPACE, &container->namespace},
        {KUBERNETES_POD_UID, &container->pod_uid},
        {KUBERNETES_CONTAINER_NAME, &container->name},
    };

    for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
        if (span_equals(key, labels[i].label))
            *labels[i].text = runtime_text(arena, protobuf_find_bytes(entry, MAP_VALUE));
}

/* As in the pod's spec, where the runtime has kept it: `image` may be a bare digest, which is what
 * the kubelet passes to the runtime. */
static struct span find_image_name(struct span image)
{
    struct span specified = protobuf_find_bytes(image, IMAGE_USER_SPECIFIED);

    return specified.len > 0 ? specified : protobuf_find_bytes(image, IMAGE_NAME);
}

/* "sha256:0123..." or, from CRI-O, the digits alone. */
static bool is_digest(struct span image)
{
    (void)span_strip_prefix(&image, "sha256:");
    return component_is_container_id(image); /* as long as one */
}

struct span cri_find_image(struct span message)
{
    struct span status = protobuf_find_bytes(message, STATUS);
    struct span image = find_image_name(protobuf_find_bytes(status, STATUS_IMAGE));

    if (image.len == 0 || is_digest(image))
        image = protobuf_find_bytes(status, STATUS_IMAGE_REF); /* "busybox@sha256:0123..." */
    return image.len == 0 || is_digest(image) ? (struct span){NULL, 0} : image;
}

static int add_container(struct span message, struct container_list *list)
{
    struct container container = {{{"", "", "", "", "", ""}}, .is_pod_certain = true};
    struct protobuf reader = protobuf_message(message);
    struct span metadata_name = {NULL, 0}, image = {NULL, 0};
    struct arena *arena = &list->arena;
    struct protobuf_field field;

    while (protobuf_next(&reader, &field)) {
        if (!field.is_bytes && field.number == CONTAINER_STATE)
            container.ended = field.value == CONTAINER_EXITED;
        else if (!field.is_bytes)
            continue;
        else if (field.number == CONTAINER_ID)
            container.id = runtime_text(arena, field.bytes);
        else if (field.number == CONTAINER_METADATA)
            metadata_name = protobuf_find_bytes(field.bytes, CONTAINER_METADATA_NAME);
        else if (field.number == CONTAINER_IMAGE)
            image = find_image_name(field.bytes);
        else if (field.number == CONTAINER_LABELS)
            read_label(field.bytes, &container, arena);
    }
    if (reader.broken)
        return 0;
    if (container.name && !container.name[0])
        container.name = runtime_text(arena, metadata_name);
    container.image = runtime_text(arena, image);
    container.image_is_digest = is_digest(image);
    return container_list_append(list, &container);
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
    struct arena *arena = &list->arena;

    return container_list_append(
        list,
        &(struct container){
            .id = runtime_text(arena, protobuf_find_bytes(message, SANDBOX_ID)),
            .name = "POD",
            .namespace = runtime_text(arena, protobuf_find_bytes(metadata, SANDBOX_NAMESPACE)),
            .pod = runtime_text(arena, protobuf_find_bytes(metadata, SANDBOX_NAME)),
            .pod_uid = runtime_text(arena, protobuf_find_bytes(metadata, SANDBOX_UID)),
            .image = "",
            .is_pod_certain = true,
            .ended = !is_ready(message),
        });
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

/* v1alpha2 is all that containerd had before 1.6; containerd 2 no longer has it. */
static int call_cri(const struct runtime_call *call, const char *method, struct span request,
                    int (*parse)(struct span message, void *result), void *result,
                    struct error *err)
{
    static const char *const versions[] = {"v1", "v1alpha2"};
    int r = -EOPNOTSUPP;

    for (size_t i = 0; i < ARRAY_SIZE(versions) && r == -EOPNOTSUPP; i++) {
        char path[64];

        snprintf(path, sizeof(path), "/runtime.%s.RuntimeService/%s", versions[i], method);
        r = runtime_grpc(call, "CRI", path, request, parse, result, err);
    }
    return r;
}

static int parse_containers(struct span message, void *list)
{
    return cri_parse_containers(message, list);
}

static int parse_sandboxes(struct span message, void *list)
{
    return cri_parse_sandboxes(message, list);
}

/* Without a filter all are listed. */
static int list_cri(const struct runtime_call *call, enum runtime_scope scope,
                    struct container_list *list, struct error *err)
{
    /* filter (1) { state (2) { state (1): CONTAINER_RUNNING (1) or SANDBOX_READY (0) } } */
    static const struct span running = {"\x0a\x04\x12\x02\x08\x01", 6};
    static const struct span ready = {"\x0a\x04\x12\x02\x08\x00", 6}, all = {"", 0};
    bool is_all = scope == RUNTIME_ALL;
    int r = call_cri(call, "ListContainers", is_all ? all : running, parse_containers, list, err);

    /* CRI does not list the pause container of a pod, but it has a cgroup like one. Its name is
     * worth a request, but no error. */
    if (r == 0 &&
        call_cri(call, "ListPodSandbox", is_all ? all : ready, parse_sandboxes, list, NULL) ==
            -EFBIG &&
        is_all)
        (void)call_cri(call, "ListPodSandbox", ready, parse_sandboxes, list, NULL);
    return r;
}

static int call_status(const struct runtime_call *call, const char *container_id, bool verbose,
                       int (*parse)(struct span message, void *result), void *result,
                       struct error *err)
{
    struct buffer request;
    int r;

    buffer_init(&request, REQUEST_CAP_BYTES);
    protobuf_put_bytes(&request, STATUS_REQUEST_ID, span_of(container_id));
    if (verbose)
        protobuf_put_varint(&request, STATUS_REQUEST_VERBOSE, 1);
    if (buffer_failed(&request))
        r = error_set(err, -ENOMEM, "CRI at '%s': out of memory", call->socket_path);
    else
        r = call_cri(call, "ContainerStatus", (struct span){request.data, request.len}, parse,
                     result, err);
    buffer_done(&request);
    return r;
}

static int parse_gpus(struct span message, void *result)
{
    struct span info = cri_find_info(message);

    return info.len > 0 ? inspect_parse_cri_info(info, result) : 0; /* it is optional */
}

static int inspect_cri(const struct runtime_call *call, const char *container_id,
                       struct gpu_access_list *gpus, struct error *err)
{
    return call_status(call, container_id, true, parse_gpus, gpus, err);
}

static int parse_image(struct span message, void *result)
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

static int find_cri_image(const struct runtime_call *call, const char *container_id,
                          char ret_image[RUNTIME_TEXT_MAX + 1], struct error *err)
{
    return call_status(call, container_id, false, parse_image, ret_image, err);
}

const struct runtime_ops runtime_cri = {
    .name = "cri",
    .source = ALLOCATED_BY_CRI,
    .flag = "cri-socket",
    .help = "socket of containerd or CRI-O; '' disables it",
    .sockets = sockets,
    .is_kubernetes_only = true,
    .list = list_cri,
    .inspect = inspect_cri,
    .find_image = find_cri_image,
};
