/* Energy, power, clocks, temperature, throttling and ECC of the board. */
#include "call.h"
#include "power_limits.h"

int nvmlDeviceGetTotalEnergyConsumption(void *dev, unsigned long long *energy_mj)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetTotalEnergyConsumption, dev);
    uint64_t value_mj;

    if (call.code)
        return call.code;
    if (!energy_mj)
        return NVML_INVALID_ARGUMENT;
    call.code = call_energy_mj(&call, &value_mj);
    if (!call.code)
        *energy_mj = value_mj;
    return call.code;
}

/* One number of the record that is valid now. */
static int answer_record(const struct call *call, enum kind kind, unsigned field, unsigned *ret)
{
    const struct record *record;

    if (call->code)
        return call->code;
    if (!ret)
        return NVML_INVALID_ARGUMENT;
    record = call_record(call, kind);
    if (!record)
        return NVML_NOT_SUPPORTED;
    *ret = (unsigned)record->values[field];
    return NVML_SUCCESS;
}

int nvmlDeviceGetPowerUsage(void *dev, unsigned *power_mw)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetPowerUsage, dev);

    return answer_record(&call, KIND_POWER, 0, power_mw);
}

static int answer_limit(const struct call *call, enum power_limit limit, unsigned *ret_mw)
{
    uint64_t limit_mw;
    int code;

    if (call->code)
        return call->code;
    if (!ret_mw)
        return NVML_INVALID_ARGUMENT;
    code = limits_get_mw(call, limit, &limit_mw);
    if (!code)
        *ret_mw = (unsigned)limit_mw;
    return code;
}

int nvmlDeviceGetEnforcedPowerLimit(void *dev, unsigned *limit_mw)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetEnforcedPowerLimit, dev);

    return answer_limit(&call, LIMIT_CURRENT, limit_mw);
}

int nvmlDeviceGetPowerManagementLimit(void *dev, unsigned *limit_mw)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetPowerManagementLimit, dev);

    return answer_limit(&call, LIMIT_CURRENT, limit_mw);
}

int nvmlDeviceGetPowerManagementDefaultLimit(void *dev, unsigned *limit_mw)
{
    _call_ struct call call =
        call_begin_device(SYMBOL_nvmlDeviceGetPowerManagementDefaultLimit, dev);

    return answer_limit(&call, LIMIT_DEFAULT, limit_mw);
}

int nvmlDeviceGetPowerManagementLimitConstraints(void *dev, unsigned *min_mw, unsigned *max_mw)
{
    _call_ struct call call =
        call_begin_device(SYMBOL_nvmlDeviceGetPowerManagementLimitConstraints, dev);

    if (call.code)
        return call.code;
    if (!min_mw || !max_mw)
        return NVML_INVALID_ARGUMENT;
    call.code = answer_limit(&call, LIMIT_MIN, min_mw);
    return call.code ? call.code : answer_limit(&call, LIMIT_MAX, max_mw);
}

/* A trace holds the SM clock only. The others stand still, at values of a board of this class. */
static const unsigned max_clocks_mhz[] = {
    [NVML_CLOCK_GRAPHICS] = 1980,
    [NVML_CLOCK_SM] = 1980,
    [NVML_CLOCK_MEMORY] = 3201,
    [NVML_CLOCK_VIDEO] = 1545,
};

int nvmlDeviceGetClockInfo(void *dev, int type, unsigned *clock_mhz)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetClockInfo, dev);

    if (call.code)
        return call.code;
    if (type < NVML_CLOCK_GRAPHICS || type > NVML_CLOCK_VIDEO || !clock_mhz)
        return NVML_INVALID_ARGUMENT;
    if (type == NVML_CLOCK_GRAPHICS || type == NVML_CLOCK_SM)
        return answer_record(&call, KIND_UTILIZATION, 2, clock_mhz);
    *clock_mhz = max_clocks_mhz[type];
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(void *dev, int type, unsigned *clock_mhz)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetMaxClockInfo, dev);

    if (call.code)
        return call.code;
    if (type < NVML_CLOCK_GRAPHICS || type > NVML_CLOCK_VIDEO || !clock_mhz)
        return NVML_INVALID_ARGUMENT;
    *clock_mhz = max_clocks_mhz[type];
    return NVML_SUCCESS;
}

int nvmlDeviceGetTemperatureV(void *dev, struct nvml_temperature *temperature)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetTemperatureV, dev);
    unsigned celsius = 0;

    if (call.code)
        return call.code;
    if (!temperature)
        return NVML_INVALID_ARGUMENT;
    if (temperature->version != NVML_VERSION_WORD(*temperature, 1))
        return NVML_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensor_type != 0)
        return NVML_INVALID_ARGUMENT;
    call.code = answer_record(&call, KIND_UTILIZATION, 3, &celsius);
    if (!call.code)
        temperature->temperature = (int32_t)celsius;
    return call.code;
}

int nvmlDeviceGetTemperature(void *dev, int sensor, unsigned *celsius)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetTemperature, dev);

    if (!call.code && sensor != 0)
        return NVML_INVALID_ARGUMENT;
    return answer_record(&call, KIND_UTILIZATION, 3, celsius);
}

int nvmlDeviceGetPerformanceState(void *dev, unsigned *state)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetPerformanceState, dev);

    if (call.code)
        return call.code;
    if (!state)
        return NVML_INVALID_ARGUMENT;
    *state = 0;
    return NVML_SUCCESS;
}

static int clock_reasons(enum symbol symbol, void *dev, unsigned long long *mask)
{
    _call_ struct call call = call_begin_device(symbol, dev);

    if (call.code)
        return call.code;
    if (!mask)
        return NVML_INVALID_ARGUMENT;
    *mask = call_directive(&call, DIRECTIVE_THROTTLE, 0);
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(void *dev, unsigned long long *mask)
{
    return clock_reasons(SYMBOL_nvmlDeviceGetCurrentClocksEventReasons, dev, mask);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *dev, unsigned long long *mask)
{
    return clock_reasons(SYMBOL_nvmlDeviceGetCurrentClocksThrottleReasons, dev, mask);
}

int nvmlDeviceGetTotalEccErrors(void *dev, int error_type, int counter_type,
                                unsigned long long *errors)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetTotalEccErrors, dev);
    const struct directive *ecc;

    if (call.code)
        return call.code;
    if (error_type < 0 || error_type > 1 || counter_type < 0 || counter_type > 1 || !errors)
        return NVML_INVALID_ARGUMENT;
    ecc = call_last(&call, DIRECTIVE_ECC, 0);
    *errors = ecc ? ecc->values[error_type] : 0;
    return NVML_SUCCESS;
}
