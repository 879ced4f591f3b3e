#include "identity/pod_resources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/protobuf.h"
#include "core/array.h"
#include "core/macros.h"
#include "core/parse.h"
#include "identity/gpu_access.h"
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
/* The pool (3) is the node's, for drivers of devices inside the node. */
enum { CLAIM_CDI = 1, CLAIM_DRIVER = 2, CLAIM_DEVICE = 4, CLAIM_SHARE = 5 };
enum { CDI_NAME = 1 };

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

enum { UUID_LEN = 36 };
static bool is_uuid(struct span text);

/* The container whose devices are being read. */
struct holder {
    struct allocation_list *list;
    struct span namespace, pod, container, resource;
    bool is_claim_shared;
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

/* 1, or -ENOMEM. */
static int add_allocation(struct holder *holder, struct allocation allocation, bool is_claim,
                          bool shared)
{
    struct allocation_list *list = holder->list;

    if (copy_names(holder) < 0)
        return -ENOMEM;
    allocation.namespace = holder->names.namespace;
    allocation.pod = holder->names.pod;
    allocation.container = holder->names.container;
    /* Without a whole name its container is not known. */
    if (!*allocation.namespace || !*allocation.pod || !*allocation.container)
        return 1;
    allocation.is_claim = is_claim;
    allocation.shared |= shared;
    if (!array_reserve(&list->items, &list->capacity, list->count, sizeof(*list->items)))
        return -ENOMEM;
    list->items[list->count++] = allocation;
    return 1;
}

/* 1, 0: it is no GPU, or -ENOMEM. */
static int add_device(struct holder *holder, struct span resource, struct span id, bool is_claim,
                      bool shared)
{
    struct allocation allocation;
    int r;

    if (holder->list->count == ALLOCATIONS_MAX)
        return 1;
    r = pod_resources_parse_device(resource, id, &holder->list->arena, &allocation);
    return r <= 0 ? r : add_allocation(holder, allocation, is_claim, shared);
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
    return MIN(add_device(holder, holder->resource, id, false, false), 0);
}

/* ContainerDevices: one for each resource, or for each resource and NUMA node. */
static int add_devices(struct holder *holder, struct span message)
{
    holder->resource = protobuf_find_bytes(message, DEVICES_RESOURCE);
    if (holder->resource.len == 0) /* or broken */
        return 0;
    return each_message(message, DEVICES_ID, add_id, holder, NULL);
}

/* As runtimes name them: "nvidia.com/gpu=0", "nvidia.com/gpu=0:1". 0 or -ENOMEM. */
static int add_numbered_devices(struct holder *holder, struct span vendor, struct span cdi_name)
{
    struct gpu_access_list gpus = {.count = 0};
    int r = 0;

    gpu_access_add_cdi(&gpus, cdi_name);
    for (size_t i = 0; i < gpus.count && r >= 0 && holder->list->count < ALLOCATIONS_MAX; i++) {
        struct allocation allocation = {.kind = gpus.items[i].kind, .index = gpus.items[i].index};

        allocation.resource = runtime_text(&holder->list->arena, vendor);
        allocation.id = runtime_text(&holder->list->arena, span_of(gpus.items[i].id));
        r = !allocation.resource || !allocation.id
                ? -ENOMEM
                : add_allocation(holder, allocation, true, holder->is_claim_shared);
    }
    return MIN(r, 0);
}

/* "k8s.gpu.nvidia.com/claim=CLAIMUID-gpu-0": what the drivers of NVIDIA and AMD call the device for
 * the runtime. Other drivers hand out names of the vendor's: "nvidia.com/gpu=GPU-...". */
static int add_cdi_device(struct holder *holder, struct span message)
{
    struct span whole = protobuf_find_bytes(message, CDI_NAME), name = whole;
    struct span kind = span_cut(&name, '='), vendor = span_cut(&kind, '/');
    int r;

    if (span_strip_prefix(&vendor, "k8s.") && span_equals(kind, "claim") && name.len > UUID_LEN &&
        is_uuid((struct span){name.data, UUID_LEN}) && name.data[UUID_LEN] == '-')
        name = (struct span){name.data + UUID_LEN + 1, name.len - UUID_LEN - 1};
    r = add_device(holder, vendor, name, true, holder->is_claim_shared);
    return r == 0 ? add_numbered_devices(holder, vendor, whole) : MIN(r, 0);
}

/* The name of the device in its pool tells which it is; where it does not, as with a driver that is
 * not known here, its CDI names may. */
static int add_claim_device(struct holder *holder, struct span message)
{
    int r;

    holder->is_claim_shared = protobuf_find_bytes(message, CLAIM_SHARE).len > 0;
    r = add_device(holder, protobuf_find_bytes(message, CLAIM_DRIVER),
                   protobuf_find_bytes(message, CLAIM_DEVICE), true, holder->is_claim_shared);
    if (r == 0)
        r = each_message(message, CLAIM_CDI, add_cdi_device, holder, NULL);
    return MIN(r, 0);
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

/* From here on: the forms of device ids, one function for each plugin and DRA driver. */

enum { PCI_LEN = 12, ID_MAX = 128 };

/* A parsed id; `id` is inside the plugin's text, or inside `pci`. */
struct device {
    enum allocation_kind kind;
    struct span id;
    uint32_t index;
    bool shared;
    char pci[PCI_LEN];
};

static bool cut_number(struct span *text, uint32_t *ret_number)
{
    struct span digits = {text->data, 0};
    uint64_t number;

    while (digits.len < text->len && parse_is_digit(text->data[digits.len]))
        digits.len++;
    if (parse_u64_max(digits, UINT32_MAX, &number) < 0)
        return false;
    *text = (struct span){text->data + digits.len, text->len - digits.len};
    *ret_number = (uint32_t)number;
    return true;
}

static bool is_any_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c);
}

/* `shape` has a '#' for every hex digit; other characters are literal. */
static bool has_shape(struct span text, const char *shape)
{
    if (text.len != strlen(shape))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (shape[i] == '#' ? !is_any_of(text.data[i], "0123456789abcdefABCDEF")
                            : text.data[i] != shape[i])
            return false;
    return true;
}

/* The characters of Kubernetes names. */
static bool is_name(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_any_of(text.data[i], "abcdefghijklmnopqrstuvwxyz0123456789-."))
            return false;
    return text.len > 0;
}

static bool is_uuid(struct span text)
{
    return has_shape(text, "########-####-####-####-############");
}

/* "UUID/7/0" after "MIG-GPU-": before driver 470. */
static bool is_old_mig(struct span text)
{
    struct span uuid = span_cut(&text, '/');
    uint32_t instance;

    return is_uuid(uuid) && cut_number(&text, &instance) && span_strip_prefix(&text, "/") &&
           cut_number(&text, &instance) && text.len == 0;
}

/* NVIDIA's uuids cannot be confused with other ids, so they count under every resource: plugins can
 * be configured to rename theirs. */
static bool parse_uuid(struct span id, struct device *device)
{
    struct span rest = id;

    device->id = id;
    if (span_strip_prefix(&rest, "GPU-")) {
        device->kind = ALLOCATION_GPU_UUID;
        return is_uuid(rest);
    }
    device->kind = ALLOCATION_MIG_UUID;
    if (span_strip_prefix(&rest, "MIG-GPU-"))
        return is_old_mig(rest);
    return span_strip_prefix(&rest, "MIG-") && is_uuid(rest);
}

/* GKE, after "nvidia": the minor, and "/gi1" (MIG), "/vgpu2" (a replica), or both. */
static bool parse_gke(struct span id, struct device *device)
{
    uint32_t number;

    device->kind = ALLOCATION_MINOR;
    if (!cut_number(&id, &device->index))
        return false;
    if (span_strip_prefix(&id, "/gi")) {
        device->id.data = id.data - strlen("gi");
        if (!cut_number(&id, &number))
            return false;
        device->id.len = (size_t)(id.data - device->id.data);
    }
    if (span_strip_prefix(&id, "/vgpu")) {
        device->shared = true;
        if (!cut_number(&id, &number))
            return false;
    }
    return id.len == 0;
}

static bool parse_nvidia(struct span id, struct device *device)
{
    if (span_equals(id, "tegra")) {
        device->kind = ALLOCATION_TEGRA;
        return true;
    }
    if (span_equals(id, "all")) {
        device->kind = ALLOCATION_ALL;
        return true;
    }
    return span_strip_prefix(&id, "nvidia") ? parse_gke(id, device) : parse_uuid(id, device);
}

static bool parse_amd(struct span id, struct device *device)
{
    if (span_strip_prefix(&id, "amdgpu_xcp_")) {
        device->kind = ALLOCATION_XCP;
        return cut_number(&id, &device->index) && id.len == 0;
    }
    device->kind = ALLOCATION_PCI;
    device->id = id;
    return has_shape(id, "####:##:##.#");
}

/* "card0-1": the second replica of a card. The first is "card0-0", even if it is the only one.
 * "all" is for monitoring (gpu.intel.com/i915_monitoring) and allocates nothing. */
static bool parse_intel(struct span id, struct device *device)
{
    uint32_t replica;

    device->kind = ALLOCATION_CARD;
    if (!span_strip_prefix(&id, "card") || !cut_number(&id, &device->index) ||
        !span_strip_prefix(&id, "-") || !cut_number(&id, &replica))
        return false;
    device->shared |= replica > 0;
    return id.len == 0;
}

/* "gpu-0", "gpu-1-mig-2g47gb-14-0". "gpu-vfio-0" belongs to a virtual machine: no driver on this
 * node can meter it. */
static bool parse_nvidia_claim(struct span id, struct device *device)
{
    device->kind = ALLOCATION_MINOR;
    if (!span_strip_prefix(&id, "gpu-") || !cut_number(&id, &device->index))
        return false;
    if (id.len == 0)
        return true;
    if (!span_strip_prefix(&id, "-"))
        return false;
    device->id = id;
    return span_strip_prefix(&id, "mig-") && is_name(id);
}

/* "gpu-0-128": the card and the render node. */
static bool parse_amd_claim(struct span id, struct device *device)
{
    uint32_t card;

    device->kind = ALLOCATION_RENDER;
    return span_strip_prefix(&id, "gpu-") && cut_number(&id, &card) &&
           span_strip_prefix(&id, "-") && cut_number(&id, &device->index) && id.len == 0;
}

/* "0000-03-00-0-0x56c0": the PCI address in the characters of a device name, and the model. */
static bool parse_intel_claim(struct span id, struct device *device)
{
    if (!has_shape(id, "####-##-##-#-0x####"))
        return false;
    memcpy(device->pci, id.data, PCI_LEN);
    device->pci[4] = device->pci[7] = ':';
    device->pci[10] = '.';
    device->kind = ALLOCATION_PCI;
    device->id = (struct span){device->pci, PCI_LEN};
    return true;
}

/* A name that ends in a slash is a prefix of resources; one without is a DRA driver. */
static const struct {
    const char *name;
    bool (*parse)(struct span id, struct device *device);
} plugins[] = {
    {"nvidia.com/", parse_nvidia},    {"amd.com/", parse_amd},
    {"gpu.intel.com/", parse_intel},  {"gpu.nvidia.com", parse_nvidia_claim},
    {"gpu.amd.com", parse_amd_claim}, {"gpu.intel.com", parse_intel_claim},
};

static bool parse_device(struct span resource, struct span id, struct device *device)
{
    for (size_t i = 0; i < ARRAY_SIZE(plugins); i++) {
        bool is_prefix = strchr(plugins[i].name, '/');
        struct span rest = resource;

        if (span_strip_prefix(&rest, plugins[i].name) && (is_prefix || rest.len == 0))
            return plugins[i].parse(id, device);
    }
    return parse_uuid(id, device);
}

int pod_resources_parse_device(struct span resource, struct span id, struct arena *arena,
                               struct allocation *ret_allocation)
{
    struct device device = {.id = {"", 0}};
    struct allocation allocation = {.namespace = "", .pod = "", .container = ""};
    const char *replica;

    if (id.len == 0 || id.len > ID_MAX)
        return 0;
    /* Time-slicing and MPS hand out the same GPU as "ID::0", "ID::1", ... */
    replica = memmem(id.data, id.len, "::", strlen("::"));
    if (replica) {
        id.len = (size_t)(replica - id.data);
        device.shared = true;
    }
    if (!parse_device(resource, id, &device))
        return 0;
    allocation.kind = device.kind;
    allocation.index = device.index;
    allocation.shared = device.shared;
    allocation.resource = runtime_text(arena, resource);
    allocation.id = runtime_text(arena, device.id);
    if (!allocation.resource || !allocation.id)
        return -ENOMEM;
    *ret_allocation = allocation;
    return 1;
}
