/*
 * nvmlDeviceGetFieldValues: energy, power and limits from the trace, all other fields from the
 * directive `field`. Each entry has its own code and its own type.
 */
#include "call.h"
#include "power_limits.h"

enum field {
    FIELD_ENERGY = 83,
    FIELD_POWER_AVERAGE = 185,
    FIELD_POWER_INSTANT = 186,
    FIELD_LIMIT_MIN = 187,
    FIELD_LIMIT_MAX = 188,
    FIELD_LIMIT_DEFAULT = 189,
    FIELD_LIMIT_CURRENT = 190,
    FIELD_ENERGY_SCOPED = 191,
    FIELD_LIMIT_REQUESTED = 192,
};

/* Energy in mJ, times in ns and NVLink's KiB need 64 bits; all else arrives as 32. */
static bool is_u64(uint32_t id)
{
    return (id >= 74 && id <= 81) || id == FIELD_ENERGY || id == FIELD_ENERGY_SCOPED ||
           (id >= 138 && id <= 141) || (id >= 269 && id <= 271);
}

static int power(const struct call *call, unsigned field, uint64_t *ret_value)
{
    const struct record *record = call_record(call, KIND_POWER);

    if (!record)
        return NVML_NOT_SUPPORTED;
    *ret_value = record->values[field];
    return NVML_SUCCESS;
}

static int scripted(const struct call *call, uint32_t id, uint64_t *ret_value)
{
    const struct directive *field = call_last(call, DIRECTIVE_FIELD, id);

    if (!field)
        return NVML_NOT_SUPPORTED;
    *ret_value = field->values[1];
    return NVML_SUCCESS;
}

static int read_field(const struct call *call, uint32_t id, uint32_t scope, uint64_t *ret_value)
{
    /* Scope 0 is the GPU; a trace knows nothing of the module or of the memory alone. */
    if (scope != 0 && ((id >= FIELD_POWER_AVERAGE && id <= FIELD_LIMIT_REQUESTED)))
        return NVML_NOT_SUPPORTED;
    switch (id) {
    case FIELD_ENERGY:
    case FIELD_ENERGY_SCOPED:
        return call_energy_mj(call, ret_value);
    case FIELD_POWER_AVERAGE:
        return power(call, 1, ret_value);
    case FIELD_POWER_INSTANT:
        return power(call, 2, ret_value);
    case FIELD_LIMIT_MIN:
        return limits_get_mw(call, LIMIT_MIN, ret_value);
    case FIELD_LIMIT_MAX:
        return limits_get_mw(call, LIMIT_MAX, ret_value);
    case FIELD_LIMIT_DEFAULT:
        return limits_get_mw(call, LIMIT_DEFAULT, ret_value);
    case FIELD_LIMIT_CURRENT:
    case FIELD_LIMIT_REQUESTED:
        return limits_get_mw(call, LIMIT_CURRENT, ret_value);
    default:
        return scripted(call, id, ret_value);
    }
}

int nvmlDeviceGetFieldValues(void *dev, int count, struct nvml_field_value *values)
{
    _call_ struct call call = call_begin_device(SYMBOL_nvmlDeviceGetFieldValues, dev);

    if (call.code)
        return call.code;
    if (!values || count <= 0)
        return NVML_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        struct nvml_field_value *value = &values[i];
        uint64_t number = 0;

        value->nvml_return = (uint32_t)read_field(&call, value->field_id, value->scope_id, &number);
        value->timestamp = (int64_t)call_stamp_us(&call, (int64_t)call.play.elapsed_us);
        value->latency_usec = 0;
        if (value->nvml_return != NVML_SUCCESS)
            continue;
        value->value_type = is_u64(value->field_id) ? NVML_VALUE_U64 : NVML_VALUE_U32;
        if (value->value_type == NVML_VALUE_U64) {
            value->value.u64 = number;
        } else {
            value->value.u32[0] = (uint32_t)number;
            /* Not the caller's to read: whoever takes the wrong member of the union sees it. */
            value->value.u32[1] = 0xa5a5a5a5;
        }
    }
    return NVML_SUCCESS;
}
