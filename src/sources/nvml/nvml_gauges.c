/* Readings of a GPU that are exported as they are. */
#include "core/macros.h"
#include "sources/nvml/nvml.h"

static void add_instance_gauge(struct nvml_poll *poll, uint32_t instance, enum gpu_gauge gauge,
                               uint64_t value)
{
    nvml_poll_add(poll, (struct sample){.kind = SAMPLE_GAUGE, .gauge = {gauge, value, instance}});
}

static void add_gauge(struct nvml_poll *poll, enum gpu_gauge gauge, uint64_t value)
{
    add_instance_gauge(poll, SAMPLE_NO_INSTANCE, gauge, value);
}

/* 0: unknown. */
static uint32_t read_temperature_c(struct nvml_poll *poll)
{
    struct nvml_temperature temperature = {.version = NVML_VERSION(struct nvml_temperature, 1),
                                           .sensor = NVML_TEMPERATURE_GPU};
    uint32_t value;

    if (NVML_POLL_CALL(poll, "temperature", temperature_v, &temperature) &&
        temperature.temperature_c >= 0)
        return (uint32_t)temperature.temperature_c;
    if (NVML_POLL_CALL(poll, "temperature", temperature, NVML_TEMPERATURE_GPU, &value))
        return value;
    return 0;
}

/* With MIG there is a clock and a temperature, but no utilisation (nvml.h: "On MIG-enabled GPUs,
 * querying device utilization rates is not currently supported"). */
void nvml_poll_read_utilisation(struct nvml_poll *poll)
{
    uint32_t clock_mhz = 0, temperature_c;
    struct nvml_utilization utilization;

    if (!NVML_POLL_CALL(poll, "clock", clock_mhz, NVML_CLOCK_SM, &clock_mhz))
        clock_mhz = 0;
    temperature_c = read_temperature_c(poll);
    if (!poll->gpu->mig.is_on && NVML_POLL_CALL(poll, "utilisation", utilization, &utilization) &&
        utilization.gpu <= 100 && utilization.memory <= 100) {
        nvml_poll_add(poll,
                      (struct sample){.kind = SAMPLE_UTILISATION,
                                      .utilisation = {.gpu_percent = (uint8_t)utilization.gpu,
                                                      .memory_percent = (uint8_t)utilization.memory,
                                                      .sm_clock_mhz = clock_mhz,
                                                      .temperature_c = temperature_c}});
        return;
    }
    if (clock_mhz > 0)
        add_gauge(poll, GPU_GAUGE_SM_CLOCK_MHZ, clock_mhz);
    if (temperature_c > 0)
        add_gauge(poll, GPU_GAUGE_TEMPERATURE_C, temperature_c);
}

/* A MIG device that was destroyed answers any error: that is no error of the board. */
static bool has_memory(struct nvml_poll *poll, uint32_t instance, int code)
{
    return instance == SAMPLE_NO_INSTANCE ? nvml_poll_succeeded(poll, "memory", code)
                                          : code == NVML_SUCCESS;
}

uint64_t nvml_poll_read_memory(struct nvml_poll *poll, struct nvml_device *device,
                               uint32_t instance)
{
    const struct nvml_library *nvml = &poll->gpu->shared->library;
    struct nvml_memory_v2 memory = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_memory_v1 old;

    if (nvml->memory_v2 && has_memory(poll, instance, nvml->memory_v2(device, &memory))) {
        add_instance_gauge(poll, instance, GPU_GAUGE_MEMORY_TOTAL_BYTES, memory.total);
        add_instance_gauge(poll, instance, GPU_GAUGE_MEMORY_RESERVED_BYTES, memory.reserved);
        add_instance_gauge(poll, instance, GPU_GAUGE_MEMORY_USED_BYTES, memory.used);
        add_instance_gauge(poll, instance, GPU_GAUGE_MEMORY_FREE_BYTES, memory.free);
        return memory.used;
    }
    if (nvml->memory_v1 && has_memory(poll, instance, nvml->memory_v1(device, &old))) {
        /* Its `used` includes what the driver reserves, which no process uses: not exported. */
        add_instance_gauge(poll, instance, GPU_GAUGE_MEMORY_TOTAL_BYTES, old.total);
        add_instance_gauge(poll, instance, GPU_GAUGE_MEMORY_FREE_BYTES, old.free);
    }
    return 0;
}

uint64_t nvml_poll_memory_bytes(struct nvml_poll *poll)
{
    struct nvml_memory_v2 memory = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    struct nvml_memory_v1 old;

    if (NVML_POLL_CALL(poll, "memory", memory_v2, &memory))
        return memory.total;
    return NVML_POLL_CALL(poll, "memory", memory_v1, &old) ? old.total : 0;
}

uint64_t nvml_value_number(int type, union nvml_value value)
{
    switch (type) {
    case NVML_VALUE_U32:
        return value.u32;
    case NVML_VALUE_U64:
    case NVML_VALUE_ULONG:
        return value.u64;
    case NVML_VALUE_I64:
        return value.i64 < 0 ? 0 : (uint64_t)value.i64;
    case NVML_VALUE_INT:
        return value.i < 0 ? 0 : (uint64_t)value.i;
    case NVML_VALUE_U16:
        return value.u16;
    default:
        return value.d > 0 && value.d < 1e18 ? (uint64_t)value.d : 0;
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
    struct nvml_field_value fields[ARRAY_SIZE(wanted)] = {0};

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        fields[i] =
            (struct nvml_field_value){.field_id = wanted[i].id, .scope_id = wanted[i].scope};
    if (!NVML_POLL_CALL(poll, "fields", fields, ARRAY_SIZE(wanted), fields))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        if (fields[i].result == NVML_SUCCESS)
            add_gauge(poll, wanted[i].gauge,
                      nvml_value_number(fields[i].value_type, fields[i].value));
}

void nvml_poll_read_gauges(struct nvml_poll *poll)
{
    unsigned long long big;
    uint32_t value;
    int state;

    if (NVML_POLL_CALL(poll, "power limit", power_limit_mw, &value))
        add_gauge(poll, GPU_GAUGE_POWER_LIMIT_MW, value);
    if (NVML_POLL_CALL(poll, "clock", clock_mhz, NVML_CLOCK_MEMORY, &value))
        add_gauge(poll, GPU_GAUGE_MEMORY_CLOCK_MHZ, value);
    if (NVML_POLL_CALL(poll, "throttle reasons", throttle_reasons, &big))
        add_gauge(poll, GPU_GAUGE_THROTTLE_MASK, big);
    if (NVML_POLL_CALL(poll, "performance state", performance_state, &state) && state >= 0 &&
        state <= 15)
        add_gauge(poll, GPU_GAUGE_PERFORMANCE_STATE, (uint64_t)state);
    if (NVML_POLL_CALL(poll, "ECC errors", ecc_errors, NVML_ECC_CORRECTED, NVML_ECC_AGGREGATE,
                       &big))
        add_gauge(poll, GPU_GAUGE_ECC_CORRECTED, big);
    if (NVML_POLL_CALL(poll, "ECC errors", ecc_errors, NVML_ECC_UNCORRECTED, NVML_ECC_AGGREGATE,
                       &big))
        add_gauge(poll, GPU_GAUGE_ECC_UNCORRECTED, big);
    if (NVML_POLL_CALL(poll, "PCIe generation", pcie_generation, &value))
        add_gauge(poll, GPU_GAUGE_PCIE_GENERATION, value);
    if (NVML_POLL_CALL(poll, "PCIe width", pcie_width, &value))
        add_gauge(poll, GPU_GAUGE_PCIE_WIDTH, value);
    (void)nvml_poll_read_memory(poll, poll->gpu->device, SAMPLE_NO_INSTANCE);
    read_fields(poll);
}
