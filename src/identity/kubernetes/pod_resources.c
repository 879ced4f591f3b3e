#include "identity/pod_resources.h"

#include <errno.h>
#include <stdlib.h>

#include "client/protobuf.h"
#include "core/array.h"
#include "core/macros.h"
#include "identity/runtime.h"
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

/* From here on: the messages around the devices, and the list that they end up in. */

enum { ARENA_CAP_BYTES = 32 << 20 };

/* Field numbers of kubelet/pkg/apis/podresources/v1/api.proto. */
enum { RESPONSE_POD = 1 };
enum { POD_NAME = 1, POD_NAMESPACE = 2, POD_CONTAINER = 3 };
enum { CONTAINER_NAME = 1, CONTAINER_DEVICES = 2, CONTAINER_DYNAMIC = 5 };
enum { DEVICES_RESOURCE = 1, DEVICES_ID = 2 };
enum { DYNAMIC_CLAIM_RESOURCE = 4 };
enum { CLAIM_DRIVER = 2, CLAIM_DEVICE = 4, CLAIM_SHARE = 5 };

void allocation_list_init(struct allocation_list *list)
{
    *list = (struct allocation_list){0};
    arena_init(&list->arena, ARENA_CAP_BYTES);
}

void allocation_list_done(struct allocation_list *list)
{
    free(list->items);
    arena_done(&list->arena);
    allocation_list_init(list);
}

/* The container whose devices are being read. */
struct holder {
    struct allocation_list *list;
    struct span namespace, pod, container;
    struct allocation names; /* their copies, made for the first GPU: most containers have none */
};

static int copy_names(struct holder *holder)
{
    struct arena *arena = &holder->list->arena;
    struct allocation *names = &holder->names;

    names->namespace = runtime_text(arena, holder->namespace);
    names->pod = runtime_text(arena, holder->pod);
    names->container = runtime_text(arena, holder->container);
    return names->namespace && names->pod && names->container ? 0 : -ENOMEM;
}

/* A device without a whole name around it could be anybody's. */
static bool is_named(const struct allocation *names)
{
    return *names->namespace && *names->pod && *names->container;
}

static int add_device(struct holder *holder, struct span resource, struct span id, bool shared)
{
    struct allocation_list *list = holder->list;
    struct allocation allocation;
    int r;

    if (list->count == ALLOCATIONS_MAX)
        return 0;
    r = pod_resources_parse_device(resource, id, &list->arena, &allocation);
    if (r <= 0)
        return r;
    if (!holder->names.pod && copy_names(holder) < 0)
        return -ENOMEM;
    if (!is_named(&holder->names))
        return 0;
    allocation.namespace = holder->names.namespace;
    allocation.pod = holder->names.pod;
    allocation.container = holder->names.container;
    allocation.shared |= shared;
    if (!array_make_room(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return -ENOMEM;
    list->items[list->count++] = allocation;
    return 0;
}

/* ContainerDevices: one for each resource, or for each resource and NUMA node. */
static int add_devices(struct holder *holder, struct span message)
{
    struct span resource = protobuf_find_bytes(message, DEVICES_RESOURCE);
    struct protobuf devices = protobuf_message(message);
    struct protobuf_field field;
    int r = 0;

    if (resource.len == 0) /* or broken */
        return 0;
    while (r == 0 && protobuf_next(&devices, &field))
        if (field.is_bytes && field.number == DEVICES_ID)
            r = add_device(holder, resource, field.bytes, false);
    return r;
}

/* DynamicResource: a claim, and a ClaimResource for each of its devices. */
static int add_claim(struct holder *holder, struct span message)
{
    struct protobuf claim = protobuf_message(message);
    struct protobuf_field field;
    int r = 0;

    while (r == 0 && protobuf_next(&claim, &field))
        if (field.is_bytes && field.number == DYNAMIC_CLAIM_RESOURCE)
            r = add_device(holder, protobuf_find_bytes(field.bytes, CLAIM_DRIVER),
                           protobuf_find_bytes(field.bytes, CLAIM_DEVICE),
                           protobuf_find_bytes(field.bytes, CLAIM_SHARE).len > 0);
    return r;
}

/* Names may stand behind what they name, so each message is searched for its name first. One that
 * is broken has none. */
static int add_container(struct holder *holder, struct span message)
{
    struct protobuf container = protobuf_message(message);
    struct protobuf_field field;
    int r = 0;

    holder->names = (struct allocation){0};
    holder->container = protobuf_find_bytes(message, CONTAINER_NAME);
    if (holder->container.len == 0)
        return 0;
    while (r == 0 && protobuf_next(&container, &field)) {
        if (field.is_bytes && field.number == CONTAINER_DEVICES)
            r = add_devices(holder, field.bytes);
        else if (field.is_bytes && field.number == CONTAINER_DYNAMIC)
            r = add_claim(holder, field.bytes);
    }
    return r;
}

static int add_pod(struct allocation_list *list, struct span message)
{
    struct holder holder = {
        .list = list,
        .namespace = protobuf_find_bytes(message, POD_NAMESPACE),
        .pod = protobuf_find_bytes(message, POD_NAME),
    };
    struct protobuf pod = protobuf_message(message);
    struct protobuf_field field;
    int r = 0;

    if (holder.pod.len == 0)
        return 0;
    while (r == 0 && protobuf_next(&pod, &field))
        if (field.is_bytes && field.number == POD_CONTAINER)
            r = add_container(&holder, field.bytes);
    return r;
}

int pod_resources_parse(struct span message, struct allocation_list *list)
{
    struct protobuf response = protobuf_message(message);
    struct protobuf_field field;
    int r = 0;

    while (r == 0 && protobuf_next(&response, &field))
        if (field.is_bytes && field.number == RESPONSE_POD)
            r = add_pod(list, field.bytes);
    if (r < 0)
        return r;
    return response.broken ? -EBADMSG : 0;
}
