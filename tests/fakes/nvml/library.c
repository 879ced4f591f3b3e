/* Initialisation, versions and the texts of the codes. */
#include <stdio.h>

#include "call.h"

int nvmlInit_v2(void)
{
    _call_ struct call call = call_begin_init(SYMBOL_nvmlInit_v2);

    return call_init(&call);
}

int nvmlInit(void)
{
    _call_ struct call call = call_begin_init(SYMBOL_nvmlInit);

    return call_init(&call);
}

int nvmlInitWithFlags(unsigned flags)
{
    _call_ struct call call = call_begin_init(SYMBOL_nvmlInitWithFlags);

    return flags > 7 ? NVML_INVALID_ARGUMENT : call_init(&call);
}

int nvmlShutdown(void)
{
    _call_ struct call call = call_open(SYMBOL_nvmlShutdown);

    return call_shutdown(&call);
}

const char *nvmlErrorString(int code)
{
    static const char *const texts[] = {
        "Success",
        "Uninitialized",
        "Invalid Argument",
        "Not Supported",
        "Insufficient Permissions",
        "Already Initialized",
        "Not Found",
        "Insufficient Size",
        "Insufficient External Power",
        "Driver Not Loaded",
        "Timeout",
        "Interrupt Request Issue",
        "NVML Shared Library Not Found",
        "Function Not Found",
        "Corrupted infoROM",
        "GPU is lost",
        "GPU requires reset",
        "GPU access blocked by the operating system",
        "Driver/library version mismatch",
        "In use by another client",
        "Insufficient Memory",
        "No data",
        "VGPU ECC not supported",
        "Insufficient resources",
        "Frequency not supported",
        "Argument version mismatch",
        "Deprecated",
        "Not ready",
        "GPU not found",
        "Invalid state",
        "Reset type not supported",
    };
    _call_ struct call call = call_open(SYMBOL_nvmlErrorString);

    (void)call; /* it counts */
    if (code >= 0 && code < (int)(sizeof(texts) / sizeof(*texts)))
        return texts[code];
    return "Unknown Error";
}

static const char *driver_version(const struct call *call)
{
    const struct gpu *gpu = &call->fake->scenario->gpus[0];

    return gpu->driver[0] ? gpu->driver : "580.159.04";
}

int nvmlSystemGetDriverVersion(char *buf, unsigned len)
{
    _call_ struct call call = call_begin(SYMBOL_nvmlSystemGetDriverVersion);

    return call.code ? call.code : copy_out(buf, len, driver_version(&call));
}

int nvmlSystemGetNVMLVersion(char *buf, unsigned len)
{
    _call_ struct call call = call_begin(SYMBOL_nvmlSystemGetNVMLVersion);
    char text[96];

    if (call.code)
        return call.code;
    snprintf(text, sizeof(text), "13.%s", driver_version(&call));
    return copy_out(buf, len, text);
}
