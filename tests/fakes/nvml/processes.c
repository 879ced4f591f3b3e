/* The lists of processes: three of them, in three versions with entries of different size. */
#include <string.h>

#include "call.h"

#ifdef FAKE_NVML_R530
enum { PROCESS_INFO_V3_SIZE = NVML_PROCESS_INFO_R530_SIZE };
#else
enum { PROCESS_INFO_V3_SIZE = NVML_PROCESS_INFO_V2_SIZE };
#endif

/* Of a MIG device only those in it: "Per-instance information can be queried by using specific MIG
 * device handles" (nvml.h, nvmlDeviceGetComputeRunningProcesses). */
static bool is_wanted(const struct call *call, const struct entry *entry)
{
    return !call->instance || (entry->gpu_instance == call->instance->gpu_instance &&
                               entry->compute_instance == call->instance->compute_instance);
}

/*
 * "In MIG mode, if device handle is provided, the API returns aggregate information, only if the
 * caller has appropriate privileges. Per-instance information can be queried by using specific MIG
 * device handles. Querying per-instance information using MIG device handles is not supported if
 * the device is in vGPU Host virtualization mode" (nvml.h, nvmlDeviceGetComputeRunningProcesses).
 */
static int check_rights(const struct call *call)
{
    if (call->instance && call_record(call, KIND_VGPUS))
        return NVML_NOT_SUPPORTED;
    if (!call->instance && call_is_mig(call) && !call_directive(call, DIRECTIVE_MONITOR, 1))
        return NVML_NO_PERMISSION;
    return NVML_SUCCESS;
}

/* Writes entries of `size` bytes, or says how many there are. */
static int fill(struct call *call, enum kind kind, unsigned *count, void *entries, size_t size)
{
    const struct record *record = series_at(&call_gpu(call)->series[kind], call->play.t_us);
    unsigned needed = 0, written = 0;
    const struct pids *pids = call_pids(call);
    int code = check_rights(call);

    if (code)
        return code;
    for (size_t i = 0; record && i < record->count; i++)
        needed += is_wanted(call, &record->entries[i]);
    if (*count < needed) {
        *count = needed;
        return NVML_INSUFFICIENT_SIZE;
    }
    if (needed > 0 && !entries)
        return NVML_INVALID_ARGUMENT;
    *count = needed;
    /* "gpuInstanceId: If MIG is enabled, stores a valid GPU instance ID. gpuInstanceId is set to
     * 0xFFFFFFFF otherwise" (nvml.h, nvmlProcessInfo_v2_st); the same of compute instances. */
    for (size_t i = 0; record && i < record->count; i++) {
        const struct entry *entry = &record->entries[i];
        const struct nvml_process_detail detail = {
            .pid = pids_map(pids, entry->key),
            .used_gpu_memory = entry->bytes,
            .gpu_instance_id = entry->gpu_instance,
            .compute_instance_id = entry->compute_instance,
        };

        if (is_wanted(call, entry))
            memcpy((char *)entries + written++ * size, &detail, size);
    }
    return NVML_SUCCESS;
}

static int list(enum symbol symbol, void *dev, enum kind kind, unsigned *count, void *infos,
                size_t size)
{
    _call_ struct call call = call_begin_any(symbol, dev);

    if (call.code)
        return call.code;
    return count ? fill(&call, kind, count, infos, size) : NVML_INVALID_ARGUMENT;
}

#define LIST(name, kind, size)                                                                     \
    int name(void *dev, unsigned *count, void *infos)                                              \
    {                                                                                              \
        return list(SYMBOL_##name, dev, kind, count, infos, size);                                 \
    }

LIST(nvmlDeviceGetComputeRunningProcesses_v3, KIND_COMPUTE, PROCESS_INFO_V3_SIZE)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, KIND_COMPUTE, NVML_PROCESS_INFO_V2_SIZE)
LIST(nvmlDeviceGetComputeRunningProcesses, KIND_COMPUTE, NVML_PROCESS_INFO_V1_SIZE)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, KIND_GRAPHICS, PROCESS_INFO_V3_SIZE)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, KIND_GRAPHICS, NVML_PROCESS_INFO_V2_SIZE)
LIST(nvmlDeviceGetGraphicsRunningProcesses, KIND_GRAPHICS, NVML_PROCESS_INFO_V1_SIZE)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, KIND_MPS, PROCESS_INFO_V3_SIZE)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, KIND_MPS, NVML_PROCESS_INFO_V2_SIZE)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, KIND_MPS, NVML_PROCESS_INFO_V1_SIZE)

/* "device: The device handle or MIG device handle" (nvml.h). */
int nvmlDeviceGetRunningProcessDetailList(void *dev, struct nvml_process_detail_list *details)
{
    static const enum kind kinds[] = {
        [NVML_MODE_COMPUTE] = KIND_COMPUTE,
        [NVML_MODE_GRAPHICS] = KIND_GRAPHICS,
        [NVML_MODE_MPS] = KIND_MPS,
    };
    _call_ struct call call = call_begin_any(SYMBOL_nvmlDeviceGetRunningProcessDetailList, dev);

    if (call.code)
        return call.code;
    if (!details)
        return NVML_INVALID_ARGUMENT;
    if (details->version != NVML_VERSION_WORD(*details, 1))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    if (details->mode > NVML_MODE_MPS)
        return NVML_INVALID_ARGUMENT;
    return fill(&call, kinds[details->mode], &details->num_proc_array_entries, details->proc_array,
                sizeof(*details->proc_array));
}
