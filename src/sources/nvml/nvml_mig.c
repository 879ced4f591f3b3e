/*
 * The MIG instances of a GPU. A GPU instance has slices of the board and memory; its compute
 * instances have its SMs. Each compute instance is a MIG device, with a handle and a UUID. A GPU
 * instance without any is not enumerated: that call needs root (nvml.h, nvmlDeviceGetGpuInstances),
 * and nobody can use such an instance.
 *
 * The layout is enumerated once per window: a call for the mode, one for each slot (seven on A100
 * and H100) and four for each MIG device; its name and placement are read when it is new. An
 * instance that is made anew may have the ids and the UUID of the one before it: the attributes
 * tell them apart.
 * Handles of a destroyed instance are invalid or belong to another (nvml.h,
 * nvmlDeviceGetMigDeviceHandleByIndex), so they are asked for anew, and errors of a MIG device are
 * never errors of the board.
 */
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "core/map.h"
#include "sources/nvml/nvml.h"

#define MIG_MARK " MIG "

const char *nvml_mig_profile(const char *name)
{
    const char *at = strstr(name, MIG_MARK);

    return at ? at + strlen(MIG_MARK) : "";
}

/* The largest profile is the whole board: 7 slices and 98 SMs on A100, 4 and 56 on A30. Profiles
 * are numbered from 0 until the driver knows no more (nvml.h, nvmlDeviceGetGpuInstanceProfileInfo);
 * without them, the smallest instance has one slice. */
void nvml_mig_size(const struct nvml_library *nvml, struct nvml_device *device,
                   uint32_t *ret_slices, uint32_t *ret_sm_count)
{
    uint32_t slices = 0, sm_count = 0;
    int code = NVML_SUCCESS;

    for (uint32_t i = 0; nvml->gpu_instance_profile && i < NVML_GPU_INSTANCE_PROFILES_MAX &&
                         (code == NVML_SUCCESS || code == NVML_NOT_SUPPORTED);
         i++) {
        struct nvml_gpu_instance_profile profile = {0};

        code = nvml->gpu_instance_profile(device, i, &profile);
        if (code != NVML_SUCCESS || profile.slices < slices)
            continue;
        sm_count = profile.slices > slices ? profile.sm_count : MAX(sm_count, profile.sm_count);
        slices = profile.slices;
    }
    if (slices == 0 && nvml->mig_devices_max &&
        nvml->mig_devices_max(device, &slices) != NVML_SUCCESS)
        slices = 0;
    *ret_slices = MIN(slices, (uint32_t)UINT8_MAX);
    *ret_sm_count = MIN(sm_count, (uint32_t)UINT16_MAX);
}

struct nvml_gpu_instance *nvml_mig_find(const struct nvml_mig *mig, uint32_t gpu_instance)
{
    for (size_t i = 0; i < mig->instance_count; i++)
        if (mig->instances[i].id == gpu_instance)
            return &mig->instances[i];
    return NULL;
}

/* False: there is no MIG device in this slot (any longer). */
static bool identify_device(const struct nvml_library *nvml, struct nvml_mig_device *to)
{
    if (nvml->gpu_instance(to->device, &to->gpu_instance) != NVML_SUCCESS ||
        nvml->compute_instance(to->device, &to->compute_instance) != NVML_SUCCESS ||
        to->gpu_instance == SAMPLE_NO_INSTANCE || to->compute_instance == SAMPLE_NO_INSTANCE)
        return false;
    if (nvml->uuid(to->device, to->uuid, sizeof(to->uuid)) != NVML_SUCCESS)
        to->uuid[0] = '\0';
    to->uuid[sizeof(to->uuid) - 1] = '\0';
    to->has_attributes =
        nvml->attributes && nvml->attributes(to->device, &to->attributes) == NVML_SUCCESS;
    if (!to->has_attributes)
        to->attributes = (struct nvml_attributes){0};
    return true;
}

/* The MIG devices of a board in MIG mode. False if they cannot be told now. */
static bool enumerate_devices(struct nvml_poll *poll, struct nvml_mig_device *devices,
                              size_t *ret_count)
{
    const struct nvml_library *nvml = &poll->gpu->shared->library;
    size_t count = 0;
    uint32_t slots = 0;

    if (!nvml->mig_device || !nvml->gpu_instance || !nvml->compute_instance ||
        !NVML_POLL_CALL(poll, "number of MIG devices", mig_devices_max, &slots))
        return false;
    for (uint32_t i = 0; i < MIN(slots, (uint32_t)SAMPLE_INSTANCES_MAX); i++) {
        struct nvml_mig_device device = {.index = i};
        int code = nvml->mig_device(poll->gpu->device, i, &device.device);

        if (code == NVML_NOT_FOUND || code == NVML_NO_PERMISSION)
            continue; /* an empty slot, or one that this container was not given */
        if (!nvml_poll_succeeded(poll, "MIG device", code))
            return false;
        if (identify_device(nvml, &device))
            devices[count++] = device;
    }
    *ret_count = count;
    return true;
}

/* Unknown attributes are no others. */
static bool has_same_attributes(const struct nvml_mig_device *a, const struct nvml_mig_device *b)
{
    const struct nvml_attributes *x = &a->attributes, *y = &b->attributes;

    return !a->has_attributes || !b->has_attributes ||
           (x->gpu_instance_slices == y->gpu_instance_slices &&
            x->compute_instance_slices == y->compute_instance_slices &&
            x->sm_count == y->sm_count && x->memory_mib == y->memory_mib);
}

static bool is_same_device(const struct nvml_mig_device *a, const struct nvml_mig_device *b)
{
    return a->index == b->index && a->gpu_instance == b->gpu_instance &&
           a->compute_instance == b->compute_instance && strcmp(a->uuid, b->uuid) == 0 &&
           has_same_attributes(a, b);
}

/* "Requires privileged user" (nvml.h, nvmlDeviceGetGpuInstanceById). Who is not told knows all else
 * of the instance. */
static struct mig_placement read_placement(const struct nvml_library *nvml,
                                           struct nvml_device *board, uint32_t gpu_instance)
{
    struct nvml_gpu_instance_handle *instance = NULL;
    struct nvml_gpu_instance_info info = {0};

    if (!nvml->gpu_instance_by_id || !nvml->gpu_instance_info ||
        nvml->gpu_instance_by_id(board, gpu_instance, &instance) != NVML_SUCCESS ||
        nvml->gpu_instance_info(instance, &info) != NVML_SUCCESS || info.id != gpu_instance)
        return (struct mig_placement){0};
    return (struct mig_placement){true, info.profile_id, info.placement_start, info.placement_size};
}

/* What does not change as long as the device exists. */
static void describe_device(const struct nvml_library *nvml, struct nvml_device *board,
                            struct nvml_mig_device *device)
{
    char name[NVML_NAME_BYTES] = "";

    if (!nvml->name || nvml->name(device->device, name, sizeof(name)) != NVML_SUCCESS)
        name[0] = '\0';
    name[sizeof(name) - 1] = '\0';
    memccpy(device->profile, nvml_mig_profile(name), '\0', sizeof(device->profile));
    device->placement = read_placement(nvml, board, device->gpu_instance);
}

/* Keeps the descriptions of devices that were there before. True if any came or went. */
static bool take_devices(const struct nvml_library *nvml, struct nvml_device *board,
                         struct nvml_mig *mig, struct nvml_mig_device *devices, size_t count)
{
    bool changed = count != mig->device_count;

    for (size_t i = 0; i < count; i++) {
        const struct nvml_mig_device *old = NULL;

        for (size_t k = 0; k < mig->device_count && !old; k++)
            old = is_same_device(&devices[i], &mig->devices[k]) ? &mig->devices[k] : NULL;
        changed |= !old;
        if (old) {
            memcpy(devices[i].profile, old->profile, sizeof(devices[i].profile));
            if (!devices[i].has_attributes) {
                devices[i].has_attributes = old->has_attributes;
                devices[i].attributes = old->attributes;
            }
            devices[i].placement = old->placement;
        } else {
            describe_device(nvml, board, &devices[i]);
        }
    }
    free(mig->devices);
    mig->devices = devices;
    mig->device_count = count;
    return changed;
}

/* Keeps the GPM samples of instances whose devices are the same; another instance of that id begins
 * anew. False: out of memory. */
static bool take_instances(const struct nvml_library *nvml, struct nvml_mig *mig)
{
    struct nvml_mig old = *mig;
    struct nvml_gpu_instance *instances =
        calloc(MAX(mig->device_count, (size_t)1), sizeof(*instances));

    if (!instances)
        return false;
    mig->instances = instances;
    mig->instance_count = 0;
    for (size_t i = 0; i < mig->device_count; i++) {
        const struct nvml_mig_device *device = &mig->devices[i];
        struct nvml_gpu_instance *instance = nvml_mig_find(mig, device->gpu_instance);

        if (!instance) {
            instance = &mig->instances[mig->instance_count++];
            instance->id = device->gpu_instance;
        }
        instance->identity = map_hash_u64(instance->identity ^ device->compute_instance) ^
                             map_hash_bytes(span_of(device->uuid)) ^
                             map_hash_u64(map_hash_bytes(span_of(device->profile)));
    }
    for (size_t i = 0; i < old.instance_count; i++) {
        struct nvml_gpu_instance *same = nvml_mig_find(mig, old.instances[i].id);

        if (same && same->identity == old.instances[i].identity)
            *same = old.instances[i];
        else
            nvml_gpm_pair_done(nvml, &old.instances[i].gpm);
    }
    free(old.instances);
    return true;
}

void nvml_mig_done(const struct nvml_library *nvml, struct nvml_mig *mig)
{
    for (size_t i = 0; i < mig->instance_count; i++)
        nvml_gpm_pair_done(nvml, &mig->instances[i].gpm);
    free(mig->instances);
    free(mig->devices);
    *mig = (struct nvml_mig){0};
}

static void add_layout(struct nvml_poll *poll)
{
    const struct nvml_mig *mig = &poll->gpu->mig;
    struct arena *arena = &poll->batch->arena;
    struct sample_instance *items = arena_array(arena, mig->device_count, sizeof(*items));

    for (size_t i = 0; items && i < mig->device_count; i++) {
        const struct nvml_mig_device *device = &mig->devices[i];
        const struct nvml_attributes *attributes = &device->attributes;

        items[i] = (struct sample_instance){
            .gpu_instance = device->gpu_instance,
            .compute_instance = device->compute_instance,
            .index = device->index,
            .uuid = arena_copy(arena, device->uuid, strlen(device->uuid)),
            .profile = arena_copy(arena, device->profile, strlen(device->profile)),
            .slices = MIN(attributes->gpu_instance_slices, (uint32_t)UINT8_MAX),
            .compute_slices = MIN(attributes->compute_instance_slices, (uint32_t)UINT8_MAX),
            .sm_count = MIN(attributes->sm_count, (uint32_t)UINT16_MAX),
            .memory_bytes = attributes->memory_mib << 20,
            .placement = device->placement,
        };
        if (!items[i].uuid || !items[i].profile)
            items = NULL;
    }
    if (!items)
        nvml_poll_out_of_memory(poll);
    else
        nvml_poll_add(poll,
                      (struct sample){.kind = SAMPLE_LAYOUT,
                                      .layout = {.kind = mig->is_on ? LAYOUT_MIG : LAYOUT_WHOLE,
                                                 .slices = mig->slices,
                                                 .sm_count = mig->sm_count,
                                                 .count = mig->device_count,
                                                 .items = items}});
}

/* 1 if the layout is another than before, 0 if not, -1 if it cannot be told now. */
static int update_layout(struct nvml_poll *poll, bool is_on)
{
    const struct nvml_library *nvml = &poll->gpu->shared->library;
    struct nvml_mig *mig = &poll->gpu->mig;
    struct nvml_mig_device *devices = calloc(SAMPLE_INSTANCES_MAX, sizeof(*devices));
    bool changed = !mig->is_known || is_on != mig->is_on;
    size_t count = 0;

    if (!devices) {
        nvml_poll_out_of_memory(poll);
        return -1;
    }
    if (is_on && !enumerate_devices(poll, devices, &count)) {
        free(devices);
        return -1;
    }
    if (changed) {
        mig->slices = mig->sm_count = 0;
        if (is_on)
            nvml_mig_size(nvml, poll->gpu->device, &mig->slices, &mig->sm_count);
    }
    mig->is_known = true;
    mig->is_on = is_on;
    changed |= take_devices(nvml, poll->gpu->device, mig, devices, count);
    if (changed && !take_instances(nvml, mig))
        nvml_poll_out_of_memory(poll);
    return changed;
}

void nvml_poll_read_layout(struct nvml_poll *poll, bool always)
{
    const struct nvml_library *nvml = &poll->gpu->shared->library;
    struct nvml_mig *mig = &poll->gpu->mig;
    uint32_t mode = 0, pending = 0;
    int code = NVML_NOT_SUPPORTED, changed;

    if (mig->is_absent)
        return;
    if (nvml->mig_mode)
        code = nvml->mig_mode(poll->gpu->device, &mode, &pending);
    mig->is_absent = code == NVML_NOT_SUPPORTED;
    if (!nvml_poll_succeeded(poll, "MIG mode", code))
        return;
    changed = update_layout(poll, mode == NVML_MIG_ENABLED);
    if (changed > 0 || always)
        mig->has_no_lists = false; /* the permission may be another by now */
    if (!nvml_poll_is_over(poll) && (changed > 0 || (changed == 0 && always)))
        add_layout(poll);
}

/* Once for each GPU instance: its compute instances share its memory. */
void nvml_poll_read_instance_memory(struct nvml_poll *poll)
{
    const struct nvml_mig *mig = &poll->gpu->mig;

    for (size_t i = 0; i < mig->instance_count && !nvml_poll_is_over(poll); i++)
        for (size_t k = 0; k < mig->device_count; k++)
            if (mig->devices[k].gpu_instance == mig->instances[i].id) {
                mig->instances[i].used_bytes =
                    nvml_poll_read_memory(poll, mig->devices[k].device, mig->instances[i].id);
                break;
            }
}
