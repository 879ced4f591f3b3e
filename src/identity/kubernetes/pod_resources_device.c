/* The forms of device ids, one function for each plugin and DRA driver. */
#include "identity/pod_resources.h"

#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "core/parse.h"
#include "identity/runtime.h"

enum { PCI_LEN = 12, ID_MAX = 128 };

/* What an id says; `id` is inside the plugin's text, or inside `pci`. */
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

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c);
}

/* `shape` has a '#' for every hex digit; all else stands for itself. */
static bool has_shape(struct span text, const char *shape)
{
    if (text.len != strlen(shape))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (shape[i] == '#' ? !is_one_of(text.data[i], "0123456789abcdefABCDEF")
                            : text.data[i] != shape[i])
            return false;
    return true;
}

/* What names of Kubernetes are made of. */
static bool is_name(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_one_of(text.data[i], "abcdefghijklmnopqrstuvwxyz0123456789-."))
            return false;
    return text.len > 0;
}

static bool is_uuid(struct span text)
{
    return has_shape(text, "########-####-####-####-############");
}

/* "UUID/7/0" behind "MIG-GPU-": before driver 470. */
static bool is_old_mig(struct span text)
{
    struct span uuid = span_cut(&text, '/');
    uint32_t instance;

    return is_uuid(uuid) && cut_number(&text, &instance) && span_strip_prefix(&text, "/") &&
           cut_number(&text, &instance) && text.len == 0;
}

/* NVIDIA's uuids are not mistaken for anything else, so they count under every resource: plugins
 * can be told to rename theirs. */
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

/* GKE, behind "nvidia": the minor, and "/gi1" (MIG), "/vgpu2" (a replica), or both. */
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

/* "card0-1": the second replica of a card. The first is "card0-0", also where there is no other.
 * Its "all" is for those who only look (gpu.intel.com/i915_monitoring), as we do. */
static bool parse_intel(struct span id, struct device *device)
{
    uint32_t replica;

    device->kind = ALLOCATION_DRM;
    if (!span_strip_prefix(&id, "card") || !cut_number(&id, &device->index) ||
        !span_strip_prefix(&id, "-") || !cut_number(&id, &replica))
        return false;
    device->shared |= replica > 0;
    return id.len == 0;
}

/* "gpu-0", "gpu-1-mig-2g47gb-14-0". "gpu-vfio-0" belongs to a virtual machine: no driver of this
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
    uint32_t render;

    device->kind = ALLOCATION_DRM;
    return span_strip_prefix(&id, "gpu-") && cut_number(&id, &device->index) &&
           span_strip_prefix(&id, "-") && cut_number(&id, &render) && id.len == 0;
}

/* "0000-03-00-0-0x56c0": the PCI address in what a device's name may hold, and the model. */
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

/* A name that ends in a slash stands for every resource behind it; one without is a DRA driver. */
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
