/* MIG: on or off. A GPU in MIG mode has slots for instances, all of them empty. */
#include "call.h"

enum { MIG_SLOTS = 7 };

static unsigned slots(const struct call *call)
{
    return call_directive(call, DIRECTIVE_MIG, 0) ? MIG_SLOTS : 0;
}

int nvmlDeviceGetMigMode(void *dev, unsigned *current, unsigned *pending)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetMigMode, dev);

    if (call.code)
        return call.code;
    if (!current || !pending)
        return NVML_INVALID_ARGUMENT;
    *current = *pending = slots(&call) > 0;
    return NVML_SUCCESS;
}

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

int nvmlDeviceGetMigDeviceHandleByIndex(void *dev, unsigned index, void **ret_dev)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetMigDeviceHandleByIndex, dev);

    if (call.code)
        return call.code;
    if (!ret_dev || (slots(&call) > 0 && index >= MIG_SLOTS))
        return NVML_INVALID_ARGUMENT;
    return NVML_NOT_FOUND;
}
