#include "identity/runtimes/cri.h"

#include <errno.h>

#include "client/protobuf.h"
#include "core/macros.h"
#include "identity/cgroup/cgroup_container.h"
#include "identity/runtimes/kubernetes_labels.h"

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

enum { REQUEST_CAP_BYTES = 64 };

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
static struct span read_image(struct span image)
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
    struct span image = read_image(protobuf_find_bytes(status, STATUS_IMAGE));

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
            container.image = read_image(field.bytes);
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
