/* Which GPU, or which GPU instance of it, an attachment names. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/macros.h"
#include "core/parse.h"
#include "identity/gpus/attachments.h"

#define NO_INSTANCE ATTACHMENT_NO_INSTANCE

/* Is it a GPU instance of the board? */
static bool match_instance(struct span number, const struct snapshot_gpu *gpu,
                           uint32_t *ret_instance)
{
    uint64_t instance;

    if (parse_u64_max(number, UINT32_MAX - 1, &instance) < 0)
        return false;
    *ret_instance = (uint32_t)instance;
    for (size_t i = 0; i < gpu->mig_device_count; i++)
        if (gpu->mig_devices[i].gpu_instance == instance)
            return true;
    return false;
}

/* Old drivers name the GPU of a MIG device: MIG-GPU-<uuid>/<gi>/<ci>. */
static bool match_old_uuid(const char *id, const struct snapshot_gpu *gpu, uint32_t *ret_instance)
{
    size_t len = strlen(gpu->uuid);
    struct span rest;

    if (strncmp(id, "MIG-", 4) != 0 || strncmp(id + 4, gpu->uuid, len) != 0 || id[4 + len] != '/')
        return false;
    rest = span_of(id + 4 + len + 1);
    return match_instance(span_cut(&rest, '/'), gpu, ret_instance);
}

static bool match_mig_uuid(const struct attachment *attachment, const struct snapshot_gpu *gpu,
                           uint32_t *ret_instance)
{
    for (size_t i = 0; i < gpu->mig_device_count; i++)
        if (strcasecmp(gpu->mig_devices[i].uuid, attachment->id) == 0) {
            *ret_instance = gpu->mig_devices[i].gpu_instance;
            return true;
        }
    return match_old_uuid(attachment->id, gpu, ret_instance);
}

/* "2g47gb" is "2g.47gb", and "1g10gb-me" is "1g.10gb+me": what a Kubernetes name cannot have. */
static bool is_profile(const char *profile, struct span plain)
{
    size_t at = 0;

    for (; *profile; profile++) {
        if (*profile == '.')
            continue;
        if (at == plain.len || plain.data[at++] != (*profile == '+' ? '-' : *profile))
            return false;
    }
    return at == plain.len && at > 0;
}

/* What a claim names of a GPU: "2g47gb-14-0", with the numbers of the profile and of the first
 * memory slice; of older drivers "14-0-2", with the slices and without the name. */
struct claimed_part {
    struct span profile_name; /* empty: none */
    uint64_t profile, start;
};

static bool cut_last_number(struct span *text, uint64_t *ret_number)
{
    const char *dash = text->len > 0 ? memrchr(text->data, '-', text->len) : NULL;
    struct span number =
        dash ? (struct span){dash + 1, text->len - (size_t)(dash - text->data) - 1} : *text;

    if (parse_u64_max(number, UINT32_MAX, ret_number) < 0)
        return false;
    text->len = dash ? (size_t)(dash - text->data) : 0;
    return true;
}

static bool parse_part(struct span id, struct claimed_part *part)
{
    uint64_t last, middle, first;

    if (!cut_last_number(&id, &last) || !cut_last_number(&id, &middle) || id.len == 0)
        return false;
    if (memchr(id.data, '-', id.len) == NULL && parse_u64_max(id, UINT32_MAX, &first) == 0)
        *part = (struct claimed_part){{NULL, 0}, first, middle};
    else
        *part = (struct claimed_part){id, middle, last};
    return true;
}

/* "4g.40gb" of "1c.4g.40gb", a compute instance of it. */
static const char *instance_profile(const char *profile)
{
    size_t digits = strspn(profile, "0123456789");

    return digits > 0 && strncmp(profile + digits, "c.", 2) == 0 ? profile + digits + 2 : profile;
}

static bool is_part(const struct snapshot_mig_device *device, const struct claimed_part *part)
{
    if (device->placement.is_known)
        return device->placement.profile == part->profile && device->placement.start == part->start;
    return is_profile(device->profile, part->profile_name) ||
           is_profile(instance_profile(device->profile), part->profile_name);
}

/* Profile and place are those of one instance. Where the driver does not tell the place, the
 * profile must be that of one instance only; else it is an unknown part of the board. */
static bool match_placement(struct span id, const struct snapshot_gpu *gpu, uint32_t *ret_instance)
{
    struct claimed_part part;
    uint32_t found = NO_INSTANCE;
    bool is_told = gpu->mig_device_count > 0;

    if (!parse_part(id, &part))
        return true;
    for (size_t i = 0; i < gpu->mig_device_count; i++) {
        const struct snapshot_mig_device *device = &gpu->mig_devices[i];

        is_told &= device->placement.is_known;
        if (!is_part(device, &part) || device->gpu_instance == found)
            continue;
        if (found != NO_INSTANCE)
            return true;
        found = device->gpu_instance;
    }
    *ret_instance = found;
    return found != NO_INSTANCE || !is_told;
}

/* The part of a board that is named beside it: "gi1", "mig-2g47gb-14-0"; "": the whole board. */
static bool match_part(struct span id, const struct snapshot_gpu *gpu, uint32_t *ret_instance)
{
    if (id.len == 0)
        return true;
    if (gpu->sharing != GPU_SHARING_MIG)
        return false;
    if (span_strip_prefix(&id, "mig-"))
        return match_placement(id, gpu, ret_instance);
    return span_strip_prefix(&id, "gi") && match_instance(id, gpu, ret_instance);
}

/* "0" of "1:0": the number of a MIG device on its board; "": the whole board. */
static bool match_index(struct span id, const struct snapshot_gpu *gpu, uint32_t *ret_instance)
{
    uint64_t index;

    if (id.len == 0)
        return true;
    if (parse_u64(id, &index) < 0)
        return false;
    for (size_t i = 0; i < gpu->mig_device_count; i++)
        if (gpu->mig_devices[i].index == index) {
            *ret_instance = gpu->mig_devices[i].gpu_instance;
            return true;
        }
    return false;
}

/* A part of a board that is known by this id. */
static bool match_part_id(const char *prefix, const char *id, const struct snapshot_gpu *gpu,
                          uint32_t *ret_instance)
{
    size_t len = strlen(prefix);

    for (size_t i = 0; i < gpu->mig_device_count; i++)
        if (strncmp(gpu->mig_devices[i].uuid, prefix, len) == 0 &&
            strcasecmp(gpu->mig_devices[i].uuid + len, id) == 0) {
            *ret_instance = gpu->mig_devices[i].gpu_instance;
            return true;
        }
    return false;
}

/* A partition keeps the address of its board, a die has one of its own. */
static bool match_pci(const char *id, const struct snapshot_gpu *gpu, uint32_t *ret_instance)
{
    return match_part_id("PCI-", id, gpu, ret_instance) ||
           (id[0] != '\0' && strcasecmp(id, gpu->pci) == 0);
}

/* Of AMD and Intel, whose device nodes are other ones than NVIDIA's. */
static bool is_drm(const struct snapshot_gpu *gpu)
{
    return strncmp(gpu->uuid, "AMD-", 4) == 0 || strncmp(gpu->uuid, "PCI-", 4) == 0;
}

/* By its render node; each part has one. */
static bool match_render(uint32_t minor, const struct snapshot_gpu *gpu, uint32_t *ret_instance)
{
    if (!is_drm(gpu))
        return false;
    for (size_t i = 0; i < gpu->mig_device_count; i++)
        if (gpu->mig_devices[i].index == minor) {
            *ret_instance = gpu->mig_devices[i].gpu_instance;
            return true;
        }
    return gpu->render_minor > 0 && gpu->render_minor == minor && gpu->mig_device_count == 0;
}

/* Where both ways to count agree: by device nodes, and by PCI addresses. Parts are counted, too. */
static bool match_ordinal(uint32_t ordinal, const struct snapshot_gpu *gpu)
{
    uint32_t by_node = is_drm(gpu) ? gpu->render_minor - RENDER_MINOR_FIRST : gpu->minor;

    return gpu->has_minor && by_node == ordinal && gpu->gpu == ordinal && !gpu->is_renumbered &&
           !gpu_is_partitioned(gpu);
}

static bool match_xcp(uint32_t number, const struct snapshot_gpu *gpu, uint32_t *ret_instance)
{
    char id[16];

    snprintf(id, sizeof(id), "%u", number);
    return match_part_id("amdgpu_xcp_", id, gpu, ret_instance);
}

static bool match_gpu(const struct attachment *attachment, const struct snapshot_gpu *gpu,
                      uint32_t *ret_instance)
{
    switch (attachment->kind) {
    case ALLOCATION_GPU_UUID:
        return attachment->id[0] != '\0' &&
               strncasecmp(attachment->id, gpu->uuid, strlen(attachment->id)) == 0;
    case ALLOCATION_MIG_UUID:
        return match_mig_uuid(attachment, gpu, ret_instance);
    case ALLOCATION_MINOR:
        return !is_drm(gpu) && gpu->has_minor && gpu->minor == attachment->index &&
               match_part(span_of(attachment->id), gpu, ret_instance);
    case ALLOCATION_INDEX:
        return !is_drm(gpu) && !gpu->is_renumbered && gpu->gpu == attachment->index &&
               match_index(span_of(attachment->id), gpu, ret_instance);
    case ALLOCATION_ORDINAL:
        return match_ordinal(attachment->index, gpu);
    case ALLOCATION_ALL: /* of NVIDIA's, unless it is of a privileged container */
        return !is_drm(gpu) || attachment->is_privileged;
    case ALLOCATION_PCI:
        return match_pci(attachment->id, gpu, ret_instance);
    case ALLOCATION_CARD:
        return is_drm(gpu) && gpu->has_minor && gpu->minor == attachment->index;
    case ALLOCATION_RENDER:
        return match_render(attachment->index, gpu, ret_instance);
    case ALLOCATION_XCP:
        return match_xcp(attachment->index, gpu, ret_instance);
    case ALLOCATION_TEGRA:
        break; /* not read */
    }
    return false;
}

bool attachment_is_of(const struct attachment *attachment, const struct snapshot_gpu *gpu,
                      uint32_t *ret_instance)
{
    uint32_t instance = NO_INSTANCE;

    if (!match_gpu(attachment, gpu, &instance))
        return false;
    *ret_instance = instance;
    return true;
}
