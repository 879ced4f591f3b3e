/*
 * vGPUs: a board with V records is the host of those that they list. Quotations are of nvml.h
 * (NVML 13).
 */
#include "call.h"

enum {
    MODE_PASS_THROUGH = 1, /* of the machine that the reference traces come from */
    MODE_HOST_VGPU = 3,    /* NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU */
    VM_ID_DOMAIN_ID = 0,   /* NVML_VGPU_VM_ID_DOMAIN_ID */
    VM_ID_UUID = 1,        /* NVML_VGPU_VM_ID_UUID */
    USES_MAX = 256,
};

/* "NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU: Device is associated with VGX hypervisor in vGPU mode".
 */
int nvmlDeviceGetVirtualizationMode(void *dev, unsigned *mode)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetVirtualizationMode, dev);

    if (call.code)
        return call.code;
    if (!mode)
        return NVML_INVALID_ARGUMENT;
    *mode = call_record(&call, KIND_VGPUS) ? MODE_HOST_VGPU : MODE_PASS_THROUGH;
    return NVML_SUCCESS;
}

/* "If the supplied buffer is not large enough [...] the function returns INSUFFICIENT_SIZE, with
 * the element count [...] required in vgpuCount"; "NOT_SUPPORTED if vGPU is not supported by the
 * device".
 */
int nvmlDeviceGetActiveVgpus(void *dev, unsigned *count, unsigned *vgpus)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetActiveVgpus, dev);
    const struct record *record;
    unsigned capacity;

    if (call.code)
        return call.code;
    record = call_record(&call, KIND_VGPUS);
    if (!record)
        return NVML_NOT_SUPPORTED;
    if (!count)
        return NVML_INVALID_ARGUMENT;
    capacity = *count;
    *count = (unsigned)record->count;
    if (capacity < record->count)
        return NVML_INSUFFICIENT_SIZE;
    for (size_t i = 0; i < record->count; i++)
        vgpus[i] = (unsigned)record->vgpus[i].id;
    return NVML_SUCCESS;
}

/* "INVALID_ARGUMENT if vgpuInstance is 0, NOT_FOUND if vgpuInstance does not match a valid active
 * vGPU instance on the system". */
static int find_vgpu(struct call *call, unsigned id, const struct vgpu **ret_vgpu)
{
    if (id == 0)
        return NVML_INVALID_ARGUMENT;
    for (unsigned gpu = 0; gpu < call->fake->scenario->gpu_count; gpu++) {
        const struct record *record;

        call->gpu = (int)gpu;
        record = call_record(call, KIND_VGPUS);
        for (size_t i = 0; record && i < record->count; i++)
            if (record->vgpus[i].id == id) {
                *ret_vgpu = &record->vgpus[i];
                return call_apply(call, (int)gpu);
            }
    }
    return NVML_NOT_FOUND;
}

/* "The format of the VM ID varies by platform, and is indicated by the type identifier". */
int nvmlVgpuInstanceGetVmID(unsigned vgpu, char *buf, unsigned len, unsigned *type)
{
    _call_ struct call call = call_open(SYMBOL_nvmlVgpuInstanceGetVmID);
    const struct vgpu *found;

    if (!call.code)
        call.code = find_vgpu(&call, vgpu, &found);
    if (call.code)
        return call.code;
    if (!type)
        return NVML_INVALID_ARGUMENT;
    *type = found->vm_is_uuid ? VM_ID_UUID : VM_ID_DOMAIN_ID;
    return copy_out(buf, len, found->vm);
}

/* "The UUID is a globally unique identifier associated with the vGPU, and is returned as a 5-part
 * hexadecimal string". */
int nvmlVgpuInstanceGetUUID(unsigned vgpu, char *buf, unsigned len)
{
    _call_ struct call call = call_open(SYMBOL_nvmlVgpuInstanceGetUUID);
    const struct vgpu *found;

    if (!call.code)
        call.code = find_vgpu(&call, vgpu, &found);
    return call.code ? call.code : copy_out(buf, len, found->uuid);
}

/* "Framebuffer usage is the amount of vGPU framebuffer memory that is currently in use by the VM".
 */
int nvmlVgpuInstanceGetFbUsage(unsigned vgpu, unsigned long long *bytes)
{
    _call_ struct call call = call_open(SYMBOL_nvmlVgpuInstanceGetFbUsage);
    const struct vgpu *found;

    if (!call.code)
        call.code = find_vgpu(&call, vgpu, &found);
    if (call.code)
        return call.code;
    if (!bytes)
        return NVML_INVALID_ARGUMENT;
    if (found->bytes == NVML_NOT_AVAILABLE)
        return NVML_NOT_SUPPORTED;
    *bytes = found->bytes;
    return NVML_SUCCESS;
}

/* "One utilization sample structure is returned per vGPU instance": its newest since then. The
 * times are "the CPU timestamp at which the samples were recorded". */
static int read_uses(const struct call *call, uint64_t last_seen_us, unsigned *count,
                     struct nvml_vgpu_utilization_info *uses)
{
    const struct series *series = &call_gpu(call)->series[KIND_VGPU_USE];
    const struct record *record = series_at(series, call->play.t_us);
    unsigned found = 0;

    if (!call_record(call, KIND_VGPUS))
        return NVML_NOT_SUPPORTED;
    for (; record && record >= series->records && found < USES_MAX; record--) {
        uint64_t stamp_us = call_stamp_us(
            call, play_elapsed_us(call->fake->scenario, call->play.round, record->t_us));
        unsigned at = 0;

        if (stamp_us <= last_seen_us)
            break;
        while (at < found && uses[at].vgpu_instance != record->values[0])
            at++;
        if (at < found)
            continue;
        uses[found++] = (struct nvml_vgpu_utilization_info){
            .time_stamp = stamp_us,
            .vgpu_instance = (uint32_t)record->values[0],
            .sm_util = record->values[2],
            .mem_util = record->values[3],
            .enc_util = record->values[4],
            .dec_util = record->values[5],
        };
    }
    if (found == 0)
        return NVML_NOT_FOUND;
    if (*count < found) {
        *count = found;
        return NVML_INSUFFICIENT_SIZE;
    }
    *count = found;
    return NVML_SUCCESS;
}

/* "Individual utilization values are returned as "unsigned int" values in nvmlValue_t unions": the
 * upper halves are not ours. */
static uint64_t as_value(uint64_t percent)
{
    return 0xdeadbeefULL << 32 | percent;
}

/* "The function will return INSUFFICIENT_SIZE, with the current vGPU instance count in
 * vgpuInstanceSamplesCount [...]. NOT_FOUND if sample entries are not found". */
int nvmlDeviceGetVgpuUtilization(void *dev, unsigned long long last_seen_us, unsigned *type,
                                 unsigned *count, struct nvml_vgpu_utilization_sample *samples)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetVgpuUtilization, dev);
    struct nvml_vgpu_utilization_info uses[USES_MAX];

    if (call.code)
        return call.code;
    if (!type || !count || (samples && *count == 0))
        return NVML_INVALID_ARGUMENT;
    *type = NVML_VALUE_U32;
    if (!samples)
        *count = 0;
    call.code = read_uses(&call, last_seen_us, count, uses);
    for (unsigned i = 0; !call.code && i < *count; i++)
        samples[i] = (struct nvml_vgpu_utilization_sample){
            .vgpu_instance = uses[i].vgpu_instance,
            .time_stamp = uses[i].time_stamp,
            .sm_util = as_value(uses[i].sm_util),
            .mem_util = as_value(uses[i].mem_util),
            .enc_util = as_value(uses[i].enc_util),
            .dec_util = as_value(uses[i].dec_util),
        };
    return call.code;
}

/* The same in a structure with a version: "ARGUMENT_VERSION_MISMATCH if the version of vgpuUtilInfo
 * is invalid". */
int nvmlDeviceGetVgpuInstancesUtilizationInfo(void *dev, struct nvml_vgpus_utilization_info *info)
{
    _call_ struct call call =
        call_begin_device(SYMBOL_nvmlDeviceGetVgpuInstancesUtilizationInfo, dev);
    struct nvml_vgpu_utilization_info uses[USES_MAX];

    if (call.code)
        return call.code;
    if (!info)
        return NVML_INVALID_ARGUMENT;
    if (info->version != NVML_VERSION_WORD(*info, 1))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    if (info->vgpu_util_array && info->vgpu_instance_count == 0)
        return NVML_INVALID_ARGUMENT;
    info->sample_val_type = NVML_VALUE_U32;
    if (!info->vgpu_util_array)
        info->vgpu_instance_count = 0;
    call.code = read_uses(&call, info->last_seen_time_stamp, &info->vgpu_instance_count, uses);
    for (unsigned i = 0; !call.code && i < info->vgpu_instance_count; i++) {
        info->vgpu_util_array[i] = uses[i];
        info->vgpu_util_array[i].sm_util = as_value(uses[i].sm_util);
        info->vgpu_util_array[i].mem_util = as_value(uses[i].mem_util);
        info->vgpu_util_array[i].enc_util = as_value(uses[i].enc_util);
        info->vgpu_util_array[i].dec_util = as_value(uses[i].dec_util);
    }
    return call.code;
}
