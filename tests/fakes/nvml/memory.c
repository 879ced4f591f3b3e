/* Memory of the board, in both forms, and the utilisation of the device. */
#include "call.h"

/* Of the H200 (measured). */
#define RESERVED_BYTES UINT64_C(644939776)

/* What K records say of the instance, or else its size in the layout and the processes in it. The
 * compute instances of a GPU instance share its memory (MIG User Guide, "Compute Instance"). */
static int read_instance_memory(const struct call *call, struct nvml_memory_v2 *ret_memory)
{
    const struct series *series = &call_gpu(call)->series[KIND_INSTANCE_MEMORY];
    const struct record *list = series_at(&call_gpu(call)->series[KIND_COMPUTE], call->play.t_us);
    uint64_t *const members[INSTANCE_MEMORY_WORDS] = {
        [INSTANCE_MEMORY_TOTAL] = &ret_memory->total,
        [INSTANCE_MEMORY_RESERVED] = &ret_memory->reserved,
        [INSTANCE_MEMORY_USED] = &ret_memory->used,
        [INSTANCE_MEMORY_FREE] = &ret_memory->free,
    };

    ret_memory->total = call->instance->bytes;
    ret_memory->reserved = ret_memory->used = 0;
    for (size_t i = 0; list && i < list->count; i++)
        if (list->entries[i].gpu_instance == call->instance->gpu_instance &&
            list->entries[i].bytes != NVML_NOT_AVAILABLE)
            ret_memory->used += list->entries[i].bytes;
    ret_memory->free =
        ret_memory->total > ret_memory->used ? ret_memory->total - ret_memory->used : 0;
    for (size_t i = 0; i < series->count && series->records[i].t_us <= call->play.t_us; i++)
        if (series->records[i].values[0] == call->instance->gpu_instance)
            *members[series->records[i].values[1]] = series->records[i].values[2];
    return NVML_SUCCESS;
}

/*
 * In the terms of v2: `used` without `reserved`. "In MIG mode, if device handle is provided, the
 * API returns aggregate information, only if the caller has appropriate privileges. Per-instance
 * information can be queried by using specific MIG device handles" (nvml.h,
 * nvmlDeviceGetMemoryInfo_v2).
 */
static int read_memory(const struct call *call, struct nvml_memory_v2 *ret_memory)
{
    const struct record *record = call_record(call, KIND_MEMORY);
    const struct record *list = series_at(&call_gpu(call)->series[KIND_COMPUTE], call->play.t_us);
    uint64_t reserved = call_directive(call, DIRECTIVE_RESERVED, RESERVED_BYTES);
    uint64_t used = reserved;

    if (call->instance)
        return read_instance_memory(call, ret_memory);
    if (call_is_mig(call) && !call_directive(call, DIRECTIVE_MONITOR, 1))
        return NVML_NO_PERMISSION;
    if (record) {
        ret_memory->total = record->values[2];
        ret_memory->free = record->values[1];
        used = record->values[0];
    } else if (call_gpu(call)->memory_bytes) {
        /* A scenario written by hand need not repeat what its lists say. */
        for (size_t i = 0; list && i < list->count; i++)
            if (list->entries[i].bytes != NVML_NOT_AVAILABLE)
                used += list->entries[i].bytes;
        ret_memory->total = call_gpu(call)->memory_bytes;
        ret_memory->free = ret_memory->total > used ? ret_memory->total - used : 0;
    } else {
        return NVML_NOT_SUPPORTED;
    }
    ret_memory->reserved = reserved;
    ret_memory->used = used > reserved ? used - reserved : 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(void *dev, struct nvml_memory_v2 *memory)
{
    _call_ struct call call = call_begin_any(SYMBOL_nvmlDeviceGetMemoryInfo_v2, dev);

    if (call.code)
        return call.code;
    if (!memory)
        return NVML_INVALID_ARGUMENT;
    if (memory->version != NVML_VERSION_WORD(*memory, 2))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    return read_memory(&call, memory);
}

int nvmlDeviceGetMemoryInfo(void *dev, struct nvml_memory *memory)
{
    _call_ struct call call = call_begin_any(SYMBOL_nvmlDeviceGetMemoryInfo, dev);
    struct nvml_memory_v2 split;

    if (call.code)
        return call.code;
    if (!memory)
        return NVML_INVALID_ARGUMENT;
    call.code = read_memory(&call, &split);
    if (!call.code)
        *memory = (struct nvml_memory){split.total, split.free, split.used + split.reserved};
    return call.code;
}

int nvmlDeviceGetConfComputeMemSizeInfo(void *dev, struct nvml_conf_compute_mem_size *size)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetConfComputeMemSizeInfo, dev);

    if (call.code)
        return call.code;
    return size ? NVML_NOT_SUPPORTED : NVML_INVALID_ARGUMENT;
}

int nvmlDeviceGetUtilizationRates(void *dev, struct nvml_utilization *utilization)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetUtilizationRates, dev);
    const struct record *record;

    if (call.code)
        return call.code;
    if (!utilization)
        return NVML_INVALID_ARGUMENT;
    /* "On MIG-enabled GPUs, querying device utilization rates is not currently supported" (nvml.h).
     */
    record = call_record(&call, KIND_UTILIZATION);
    if (!record || call_is_mig(&call))
        return NVML_NOT_SUPPORTED;
    utilization->gpu = (uint32_t)record->values[0];
    utilization->memory = (uint32_t)record->values[1];
    return NVML_SUCCESS;
}
