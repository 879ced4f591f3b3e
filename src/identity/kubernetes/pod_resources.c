#include "identity/pod_resources.h"

#include <errno.h>
#include <stdlib.h>

#include "client/protobuf.h"
#include "core/array.h"
#include "identity/runtimes/request.h"

static int parse_message(struct span message, void *list)
{
    return pod_resources_parse(message, list);
}

int pod_resources_list(struct http_client *client, const char *socket_path, uint64_t timeout_us,
                       struct allocation_list *list, struct error *err)
{
    const struct runtime_call call = {NULL, client, socket_path, timeout_us};

    return runtime_grpc(&call, "kubelet", "/v1.PodResourcesLister/List", (struct span){"", 0},
                        parse_message, list, err);
}

/* From here on: the messages around the devices. */

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
    struct span namespace, pod, container, resource;
    struct allocation names; /* copied for the first GPU: most containers have none */
};

/* 0 or -ENOMEM. */
static int copy_names(struct holder *holder)
{
    struct arena *arena = &holder->list->arena;
    struct allocation *names = &holder->names;

    if (names->pod)
        return 0;
    names->namespace = runtime_text(arena, holder->namespace);
    names->pod = runtime_text(arena, holder->pod);
    names->container = runtime_text(arena, holder->container);
    return names->namespace && names->pod && names->container ? 0 : -ENOMEM;
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
    if (copy_names(holder) < 0)
        return -ENOMEM;
    allocation.namespace = holder->names.namespace;
    allocation.pod = holder->names.pod;
    allocation.container = holder->names.container;
    /* Without a whole name its container is not known. */
    if (!*allocation.namespace || !*allocation.pod || !*allocation.container)
        return 0;
    allocation.shared |= shared;
    if (!array_make_room(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return -ENOMEM;
    list->items[list->count++] = allocation;
    return 0;
}

/* Calls `visit` for each field of this number until it fails. */
static int each_message(struct span message, uint32_t number,
                        int (*visit)(struct holder *holder, struct span message),
                        struct holder *holder, bool *ret_broken)
{
    struct protobuf reader = protobuf_message(message);
    struct protobuf_field field;
    int r = 0;

    while (r == 0 && protobuf_next(&reader, &field))
        if (field.is_bytes && field.number == number)
            r = visit(holder, field.bytes);
    if (ret_broken)
        *ret_broken = reader.broken;
    return r;
}

static int add_id(struct holder *holder, struct span id)
{
    return add_device(holder, holder->resource, id, false);
}

/* ContainerDevices: one for each resource, or for each resource and NUMA node. */
static int add_devices(struct holder *holder, struct span message)
{
    holder->resource = protobuf_find_bytes(message, DEVICES_RESOURCE);
    if (holder->resource.len == 0) /* or broken */
        return 0;
    return each_message(message, DEVICES_ID, add_id, holder, NULL);
}

static int add_claim_device(struct holder *holder, struct span message)
{
    return add_device(holder, protobuf_find_bytes(message, CLAIM_DRIVER),
                      protobuf_find_bytes(message, CLAIM_DEVICE),
                      protobuf_find_bytes(message, CLAIM_SHARE).len > 0);
}

/* DynamicResource: a claim, and a ClaimResource for each of its devices. */
static int add_claim(struct holder *holder, struct span message)
{
    return each_message(message, DYNAMIC_CLAIM_RESOURCE, add_claim_device, holder, NULL);
}

/* A name may follow what it names, so each message is searched for its name first. A broken one has
 * none. */
static int add_container(struct holder *holder, struct span message)
{
    int r;

    holder->names = (struct allocation){0};
    holder->container = protobuf_find_bytes(message, CONTAINER_NAME);
    if (holder->container.len == 0)
        return 0;
    r = each_message(message, CONTAINER_DEVICES, add_devices, holder, NULL);
    return r < 0 ? r : each_message(message, CONTAINER_DYNAMIC, add_claim, holder, NULL);
}

static int add_pod(struct holder *holder, struct span message)
{
    holder->namespace = protobuf_find_bytes(message, POD_NAMESPACE);
    holder->pod = protobuf_find_bytes(message, POD_NAME);
    if (holder->pod.len == 0)
        return 0;
    return each_message(message, POD_CONTAINER, add_container, holder, NULL);
}

int pod_resources_parse(struct span message, struct allocation_list *list)
{
    struct holder holder = {.list = list};
    bool is_broken;
    int r = each_message(message, RESPONSE_POD, add_pod, &holder, &is_broken);

    return r < 0 ? r : is_broken ? -EBADMSG : 0;
}
