#include "identity/gpus/attachment.h"

#include <string.h>
#include <strings.h>

/* Old drivers name the board of a MIG device: MIG-GPU-<uuid>/<gi>/<ci>. */
static bool is_mig_of(const char *id, const char *uuid)
{
    size_t len = strlen(uuid);

    return strncmp(id, "MIG-", 4) == 0 && strncmp(id + 4, uuid, len) == 0 && id[4 + len] == '/';
}

bool attachment_is_of(const struct attachment *attachment, const struct snapshot_gpu *gpu)
{
    switch (attachment->kind) {
    case ALLOCATION_GPU_UUID:
        return attachment->id[0] != '\0' &&
               strncasecmp(attachment->id, gpu->uuid, strlen(attachment->id)) == 0;
    case ALLOCATION_MIG_UUID:
        return is_mig_of(attachment->id, gpu->uuid);
    case ALLOCATION_MINOR:
        return gpu->has_minor && gpu->minor == attachment->index;
    case ALLOCATION_INDEX:
        return gpu->gpu == attachment->index;
    case ALLOCATION_ALL:
        return true;
    case ALLOCATION_TEGRA:
    case ALLOCATION_PCI:
    case ALLOCATION_DRM:
    case ALLOCATION_XCP:
        break; /* of makers whose GPUs are not read yet */
    }
    return false;
}
