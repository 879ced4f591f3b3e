/* What a GPU tells of itself that is shown as it is. */
#include "sources/nvml/nvml_poll.h"

#include "core/macros.h"

static void read_memory(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_memory_v2 memory = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_memory_v1 old;

    if (nvml->memory_v2 &&
        nvml_poll_succeeded(poll, "memory", nvml->memory_v2(gpu->device, &memory))) {
        nvml_poll_add_gauge(poll, GPU_GAUGE_MEMORY_TOTAL_BYTES, memory.total);
        nvml_poll_add_gauge(poll, GPU_GAUGE_MEMORY_RESERVED_BYTES, memory.reserved);
        nvml_poll_add_gauge(poll, GPU_GAUGE_MEMORY_USED_BYTES, memory.used);
        nvml_poll_add_gauge(poll, GPU_GAUGE_MEMORY_FREE_BYTES, memory.free);
    } else if (nvml->memory_v1 &&
               nvml_poll_succeeded(poll, "memory", nvml->memory_v1(gpu->device, &old))) {
        /* Its `used` includes what the driver reserves, which nobody used: it is not shown. */
        nvml_poll_add_gauge(poll, GPU_GAUGE_MEMORY_TOTAL_BYTES, old.total);
        nvml_poll_add_gauge(poll, GPU_GAUGE_MEMORY_FREE_BYTES, old.free);
    }
}

static uint64_t field_number(const struct nvml_field_value *field)
{
    switch (field->value_type) {
    case NVML_VALUE_U32:
        return field->value.u32;
    case NVML_VALUE_U64:
    case NVML_VALUE_ULONG:
        return field->value.u64;
    case NVML_VALUE_I64:
        return field->value.i64 < 0 ? 0 : (uint64_t)field->value.i64;
    case NVML_VALUE_INT:
        return field->value.i < 0 ? 0 : (uint64_t)field->value.i;
    case NVML_VALUE_U16:
        return field->value.u16;
    default:
        return field->value.d > 0 && field->value.d < 1e18 ? (uint64_t)field->value.d : 0;
    }
}

static void read_fields(struct nvml_poll *poll)
{
    static const struct {
        uint32_t id, scope;
        enum gpu_gauge gauge;
    } wanted[] = {
        {NVML_FIELD_MEMORY_TEMPERATURE, 0, GPU_GAUGE_MEMORY_TEMPERATURE_C},
        {NVML_FIELD_PCIE_REPLAY, 0, GPU_GAUGE_PCIE_REPLAYS},
        {NVML_FIELD_PCIE_TX_BYTES, 0, GPU_GAUGE_PCIE_TX_BYTES},
        {NVML_FIELD_PCIE_RX_BYTES, 0, GPU_GAUGE_PCIE_RX_BYTES},
        {NVML_FIELD_NVLINK_TX_KIB, NVML_FIELD_ALL_LINKS, GPU_GAUGE_NVLINK_TX_KIB},
        {NVML_FIELD_NVLINK_RX_KIB, NVML_FIELD_ALL_LINKS, GPU_GAUGE_NVLINK_RX_KIB},
    };
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    struct nvml_field_value fields[ARRAY_SIZE(wanted)] = {0};

    if (!nvml->fields)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        fields[i] =
            (struct nvml_field_value){.field_id = wanted[i].id, .scope_id = wanted[i].scope};
    if (!nvml_poll_succeeded(poll, "fields", nvml->fields(gpu->device, ARRAY_SIZE(wanted), fields)))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        if (fields[i].result == NVML_SUCCESS)
            nvml_poll_add_gauge(poll, wanted[i].gauge, field_number(&fields[i]));
}

void nvml_poll_read_gauges(struct nvml_poll *poll)
{
    struct nvml_gpu *gpu = poll->gpu;
    const struct nvml_library *nvml = &gpu->shared->library;
    unsigned long long big;
    uint32_t value;
    int state;

    if (nvml->power_limit_mw &&
        nvml_poll_succeeded(poll, "power limit", nvml->power_limit_mw(gpu->device, &value)))
        nvml_poll_add_gauge(poll, GPU_GAUGE_POWER_LIMIT_MW, value);
    if (nvml->clock_mhz &&
        nvml_poll_succeeded(poll, "clock", nvml->clock_mhz(gpu->device, NVML_CLOCK_MEMORY, &value)))
        nvml_poll_add_gauge(poll, GPU_GAUGE_MEMORY_CLOCK_MHZ, value);
    if (nvml->throttle_reasons &&
        nvml_poll_succeeded(poll, "throttle reasons", nvml->throttle_reasons(gpu->device, &big)))
        nvml_poll_add_gauge(poll, GPU_GAUGE_THROTTLE_MASK, big);
    if (nvml->performance_state &&
        nvml_poll_succeeded(poll, "performance state",
                            nvml->performance_state(gpu->device, &state)) &&
        state >= 0 && state <= 15)
        nvml_poll_add_gauge(poll, GPU_GAUGE_PERFORMANCE_STATE, (uint64_t)state);
    for (int type = NVML_ECC_CORRECTED; type <= NVML_ECC_UNCORRECTED; type++)
        if (nvml->ecc_errors &&
            nvml_poll_succeeded(poll, "ECC errors",
                                nvml->ecc_errors(gpu->device, type, NVML_ECC_AGGREGATE, &big)))
            nvml_poll_add_gauge(poll,
                                type == NVML_ECC_CORRECTED ? GPU_GAUGE_ECC_CORRECTED
                                                           : GPU_GAUGE_ECC_UNCORRECTED,
                                big);
    if (nvml->pcie_generation &&
        nvml_poll_succeeded(poll, "PCIe generation", nvml->pcie_generation(gpu->device, &value)))
        nvml_poll_add_gauge(poll, GPU_GAUGE_PCIE_GENERATION, value);
    if (nvml->pcie_width &&
        nvml_poll_succeeded(poll, "PCIe width", nvml->pcie_width(gpu->device, &value)))
        nvml_poll_add_gauge(poll, GPU_GAUGE_PCIE_WIDTH, value);
    read_memory(poll);
    read_fields(poll);
}
