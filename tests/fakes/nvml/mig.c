/*
 * MIG: the layout that the trace's B records give, or, with the directive `mig on`, a board in MIG
 * mode whose slots are all empty. Quotations are of nvml.h (NVML 13).
 */
#include "call.h"

enum {
    MIG_SLOTS = 7, /* of A100 and H100, in a trace without layout */
    MIB_SHIFT = 20,
};

/* "Returns zero if MIG is not supported or enabled" (nvmlDeviceGetMaxMigDeviceCount). The smallest
 * GPU instance has one slice (MIG User Guide, "Partitioning": up to seven GPU instances). */
static unsigned slots(const struct call *call)
{
    const struct record *layout = call_layout(call);

    if (!call_is_mig(call))
        return 0;
    return layout ? (unsigned)layout->values[1] : MIG_SLOTS;
}

/* "The "pending" MIG mode refers to the target mode following the next activation trigger": here it
 * has happened. A board of a trace has MIG
 * ("For Ampere or newer"); `error nvmlDeviceGetMigMode 3` is one that has not: "NOT_SUPPORTED if
 * device doesn't support MIG mode". */
int nvmlDeviceGetMigMode(void *dev, unsigned *current, unsigned *pending)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetMigMode, dev);

    if (call.code)
        return call.code;
    if (!current || !pending)
        return NVML_INVALID_ARGUMENT;
    *current = *pending = call_is_mig(&call);
    return NVML_SUCCESS;
}

/* "Get the maximum number of MIG devices that can exist under a given parent NVML device". */
int nvmlDeviceGetMaxMigDeviceCount(void *dev, unsigned *count)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetMaxMigDeviceCount, dev);

    if (call.code)
        return call.code;
    if (!count)
        return NVML_INVALID_ARGUMENT;
    *count = slots(&call);
    return NVML_SUCCESS;
}

/* "NOT_FOUND if no valid MIG device was found at index", "INVALID_ARGUMENT if device, index or
 * migDevice reference is invalid". */
int nvmlDeviceGetMigDeviceHandleByIndex(void *dev, unsigned index, void **ret_dev)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetMigDeviceHandleByIndex, dev);
    const struct record *layout;

    if (call.code)
        return call.code;
    if (!ret_dev || (slots(&call) > 0 && index >= slots(&call)))
        return NVML_INVALID_ARGUMENT;
    layout = call_layout(&call);
    for (size_t i = 0; layout && layout->values[0] && i < layout->count; i++)
        if (layout->instances[i].index == index) {
            *ret_dev = call_mig_handle(&call, &layout->instances[i]);
            return NVML_SUCCESS;
        }
    return NVML_NOT_FOUND;
}

/* "Get GPU instance ID for the given MIG device handle", "Get compute instance ID for the given MIG
 * device handle. Compute instance IDs are unique per GPU instance": a board's handle is none. */
static int answer_id(enum symbol symbol, void *dev, unsigned *ret_id, bool of_compute_instance)
{
    _call_ struct call call = call_begin_any(symbol, dev);

    if (call.code)
        return call.code;
    if (!ret_id || !call.instance)
        return NVML_INVALID_ARGUMENT;
    *ret_id = (unsigned)(of_compute_instance ? call.instance->compute_instance
                                             : call.instance->gpu_instance);
    return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(void *dev, unsigned *id)
{
    return answer_id(SYMBOL_nvmlDeviceGetGpuInstanceId, dev, id, false);
}

int nvmlDeviceGetComputeInstanceId(void *dev, unsigned *id)
{
    return answer_id(SYMBOL_nvmlDeviceGetComputeInstanceId, dev, id, true);
}

/* "This API currently only supports MIG device handles. memorySizeMB: Device memory size (in MiB)".
 */
static int answer_attributes(enum symbol symbol, void *dev, struct nvml_attributes *attributes)
{
    _call_ struct call call = call_begin_any(symbol, dev);

    if (call.code)
        return call.code;
    if (!call.instance)
        return NVML_NOT_SUPPORTED;
    if (!attributes)
        return NVML_INVALID_ARGUMENT;
    *attributes = (struct nvml_attributes){
        .multiprocessor_count = (uint32_t)call.instance->sms,
        .gpu_instance_slice_count = (uint32_t)call.instance->slices,
        .compute_instance_slice_count = (uint32_t)call.instance->compute_slices,
        .memory_size_mb = call.instance->bytes >> MIB_SHIFT,
    };
    return NVML_SUCCESS;
}

int nvmlDeviceGetAttributes_v2(void *dev, struct nvml_attributes *attributes)
{
    return answer_attributes(SYMBOL_nvmlDeviceGetAttributes_v2, dev, attributes);
}

int nvmlDeviceGetAttributes(void *dev, struct nvml_attributes *attributes)
{
    return answer_attributes(SYMBOL_nvmlDeviceGetAttributes, dev, attributes);
}

/* Slices of the first profiles of nvml.h ("GPU instance profiles. These macros should be passed to
 * nvmlDeviceGetGpuInstanceProfileInfo"), by their numbers: NVML_GPU_INSTANCE_PROFILE_1_SLICE 0x0,
 * _2_SLICE 0x1, _3_SLICE 0x2, _4_SLICE 0x3, _7_SLICE 0x4, _8_SLICE 0x5, _6_SLICE 0x6. */
static const unsigned profile_slices[] = {1, 2, 3, 4, 7, 8, 6};

/* SMs of a profile by its slices (MIG User Guide, "Supported MIG Profiles"). Other boards have
 * their whole number in the largest profile only. */
static unsigned profile_sms(const struct record *layout, unsigned slices)
{
    static const struct {
        unsigned board_sms, sms[8]; /* by slices */
    } boards[] = {
        {98, {[1] = 14, [2] = 28, [3] = 42, [4] = 56, [7] = 98}},   /* A100 */
        {132, {[1] = 16, [2] = 32, [3] = 60, [4] = 64, [7] = 132}}, /* H100 and H200, SXM */
        {56, {[1] = 14, [2] = 28, [4] = 56}},                       /* A30 */
    };

    for (size_t i = 0; i < sizeof(boards) / sizeof(*boards); i++)
        if (boards[i].board_sms == layout->values[2])
            return boards[i].sms[slices];
    return slices == layout->values[1] ? (unsigned)layout->values[2] : 0;
}

/* "This API can be used to enumerate all MIG profiles [...] by invoking it on profile values
 * starting from 0, until the API returns INVALID_ARGUMENT. NOT_SUPPORTED if device doesn't support
 * MIG or profile isn't supported". */
int nvmlDeviceGetGpuInstanceProfileInfo(void *dev, unsigned profile,
                                        struct nvml_gpu_instance_profile *info)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetGpuInstanceProfileInfo, dev);
    const struct record *layout;
    unsigned sms;

    if (call.code)
        return call.code;
    if (!info || profile >= sizeof(profile_slices) / sizeof(*profile_slices))
        return NVML_INVALID_ARGUMENT;
    layout = call_layout(&call);
    if (!layout || !layout->values[0] || profile_slices[profile] > layout->values[1])
        return NVML_NOT_SUPPORTED;
    sms = profile_slices[profile] < 8 ? profile_sms(layout, profile_slices[profile]) : 0;
    if (sms == 0)
        return NVML_NOT_SUPPORTED;
    *info = (struct nvml_gpu_instance_profile){
        .id = profile,
        .slice_count = profile_slices[profile],
        .instance_count = (uint32_t)layout->values[1] / profile_slices[profile],
        .multiprocessor_count = sms,
    };
    return NVML_SUCCESS;
}

/* "Requires privileged user. NO_PERMISSION if user doesn't have permission to perform the
 * operation. NOT_FOUND if the GPU instance is not found". A trace that has no placements was
 * recorded without that permission. The handle here is that of its first MIG device. */
int nvmlDeviceGetGpuInstanceById(void *dev, unsigned id, void **ret_instance)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetGpuInstanceById, dev);
    const struct record *layout;

    if (call.code)
        return call.code;
    if (!ret_instance)
        return NVML_INVALID_ARGUMENT;
    layout = call_layout(&call);
    if (!layout || !layout->values[0])
        return NVML_NOT_SUPPORTED;
    for (size_t i = 0; i < layout->count; i++)
        if (layout->instances[i].gpu_instance == id) {
            if (!layout->instances[i].has_placement)
                return NVML_NO_PERMISSION;
            *ret_instance = call_mig_handle(&call, &layout->instances[i]);
            return NVML_SUCCESS;
        }
    return NVML_NOT_FOUND;
}

/* "Get GPU instance information. INVALID_ARGUMENT if gpuInstance or info are invalid". Of
 * nvmlGpuInstanceInfo_t, id is "Unique instance ID within the device" and profileId "Unique profile
 * ID within the device"; of nvmlGpuInstancePlacement_t, start is "Index of first occupied memory
 * slice" and size "Number of memory slices occupied". */
int nvmlGpuInstanceGetInfo(void *instance, struct nvml_gpu_instance_info *info)
{
    _call_ struct call call = call_begin_any(SYMBOL_nvmlGpuInstanceGetInfo, instance);

    if (call.code)
        return call.code;
    if (!info || !call.instance)
        return NVML_INVALID_ARGUMENT;
    *info = (struct nvml_gpu_instance_info){
        .id = (uint32_t)call.instance->gpu_instance,
        .profile_id = (uint32_t)call.instance->placement[0],
        .placement_start = (uint32_t)call.instance->placement[1],
        .placement_size = (uint32_t)call.instance->placement[2],
    };
    return NVML_SUCCESS;
}
