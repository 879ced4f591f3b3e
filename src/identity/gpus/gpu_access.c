#include "identity/gpu_access.h"

#include <string.h>

#include "core/parse.h"

static bool is_same(const struct gpu_access *a, const struct gpu_access *b)
{
    return a->kind == b->kind && a->index == b->index && a->is_privileged == b->is_privileged &&
           strcmp(a->id, b->id) == 0;
}

void gpu_access_add(struct gpu_access_list *list, const struct gpu_access *access)
{
    for (size_t i = 0; i < list->count; i++)
        if (is_same(&list->items[i], access))
            return;
    if (list->count < GPU_ACCESS_MAX)
        list->items[list->count++] = *access;
}

/* The characters of uuids, and of MIG-GPU-<uuid>/7/0 of old drivers. */
static bool is_uuid_text(struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '\0' || !strchr("0123456789abcdefABCDEF-/", text.data[i]))
            return false;
    return text.len > 0;
}

static bool add_uuid(struct gpu_access_list *list, struct span name)
{
    struct gpu_access access = {.kind = ALLOCATION_GPU_UUID};
    struct span rest = name;

    if (!span_strip_prefix(&rest, "GPU-")) {
        if (!span_strip_prefix(&rest, "MIG-"))
            return false;
        access.kind = ALLOCATION_MIG_UUID;
        span_strip_prefix(&rest, "GPU-");
    }
    if (name.len < sizeof(access.id) && is_uuid_text(rest)) {
        memcpy(access.id, name.data, name.len);
        gpu_access_add(list, &access);
    }
    return true;
}

/* "1", or "1:0": the first MIG device of the second GPU. */
static void add_index(struct gpu_access_list *list, struct span name)
{
    struct gpu_access access = {.kind = ALLOCATION_INDEX};
    bool has_part = memchr(name.data, ':', name.len) != NULL;
    struct span index = span_cut(&name, ':');
    uint64_t number, part;

    if (parse_u64_max(index, UINT32_MAX, &number) < 0 ||
        (has_part && parse_u64_max(name, UINT32_MAX, &part) < 0) || name.len >= sizeof(access.id))
        return;
    access.index = (uint32_t)number;
    memcpy(access.id, name.data, name.len);
    gpu_access_add(list, &access);
}

static void add_name(struct gpu_access_list *list, struct span name)
{
    if (span_equals(name, "all"))
        gpu_access_add(list, &(struct gpu_access){.kind = ALLOCATION_ALL});
    else if (!add_uuid(list, name))
        add_index(list, name);
}

void gpu_access_add_visible(struct gpu_access_list *list, struct span names)
{
    while (names.len > 0)
        add_name(list, span_cut(&names, ','));
}

enum { UUID_LEN = 36 };

void gpu_access_add_uuids(struct gpu_access_list *list, struct span names)
{
    while (names.len > 0) {
        struct span name = span_cut(&names, ',');

        if (name.len >=
            strlen("GPU-") + UUID_LEN) /* CUDA accepts shorter ones, if they are unique */
            (void)add_uuid(list, name);
    }
}

/* Plugins and operators prefix the vendor: "k8s.device-plugin.nvidia.com". */
static bool is_nvidia(struct span vendor)
{
    return span_strip_suffix(&vendor, "nvidia.com") &&
           (vendor.len == 0 || vendor.data[vendor.len - 1] == '.');
}

void gpu_access_add_cdi(struct gpu_access_list *list, struct span name)
{
    struct span kind = span_cut(&name, '=');
    struct span vendor = span_cut(&kind, '/');
    size_t before = list->count;

    if (!is_nvidia(vendor) || !span_equals(kind, "gpu"))
        return;
    /* nvidia-ctk may also number them "gpu0", "mig0:1". */
    if (!span_strip_prefix(&name, "gpu"))
        span_strip_prefix(&name, "mig");
    add_name(list, name);
    /* Of agents of the GPU operator: they can use all GPUs, and are given none. */
    for (; before < list->count; before++)
        list->items[before].is_privileged = span_equals(vendor, "management.nvidia.com");
}

void gpu_access_add_path(struct gpu_access_list *list, struct span path)
{
    uint64_t minor;

    if (span_strip_prefix(&path, "/dev/nvidia") &&
        parse_u64_max(path, GPU_NODE_MINORS - 1, &minor) == 0)
        gpu_access_add(list,
                       &(struct gpu_access){.kind = ALLOCATION_MINOR, .index = (uint32_t)minor});
    else if (span_strip_prefix(&path, "/dev/dri/renderD") &&
             parse_u64_max(path, RENDER_MINOR_FIRST + RENDER_MINORS - 1, &minor) == 0 &&
             minor >= RENDER_MINOR_FIRST)
        gpu_access_add(list,
                       &(struct gpu_access){.kind = ALLOCATION_RENDER, .index = (uint32_t)minor});
}

/* The slices before the memory: "1g." or "1g". */
static bool ends_in_slices(struct span text)
{
    span_strip_suffix(&text, ".");
    return span_strip_suffix(&text, "g") && text.len > 0 && parse_is_digit(text.data[text.len - 1]);
}

uint64_t gpu_access_profile_bytes(struct span profile)
{
    const char *unit = profile.len > 0 ? memmem(profile.data, profile.len, "gb", 2) : NULL;
    struct span digits = {unit, 0};
    uint64_t gib;

    while (unit && digits.data > profile.data && parse_is_digit(digits.data[-1]))
        digits = (struct span){digits.data - 1, digits.len + 1};
    if (parse_u64_max(digits, 4096, &gib) < 0)
        return 0;
    profile.len = (size_t)(digits.data - profile.data);
    return ends_in_slices(profile) ? gib << 30 : 0;
}
