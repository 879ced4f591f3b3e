/*
 * The part of NVML's C ABI that we use, declared by ourselves: no vendor header is needed to build,
 * and the library is looked for at run time. Layouts are those of x86-64 and aarch64 Linux, checked
 * below.
 */
#pragma once

#include <stdint.h>

enum nvml_return {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_TIMEOUT = 10,
    NVML_GPU_IS_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_LIB_RM_VERSION_MISMATCH = 18,
    NVML_GPU_NOT_FOUND = 28,
};

enum {
    NVML_UUID_BYTES = 96,
    NVML_NAME_BYTES = 96,
    NVML_DRIVER_BYTES = 80,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_TEMPERATURE_GPU = 0,
    NVML_ECC_CORRECTED = 0,
    NVML_ECC_UNCORRECTED = 1,
    NVML_ECC_AGGREGATE = 1,
    NVML_EVENT_XID = 0x8,
    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_FIELD_PCIE_REPLAY = 94,
    NVML_FIELD_NVLINK_TX_KIB = 138, /* scope NVML_FIELD_ALL_LINKS: all links */
    NVML_FIELD_NVLINK_RX_KIB = 139,
    NVML_FIELD_PCIE_TX_BYTES = 197,
    NVML_FIELD_PCIE_RX_BYTES = 198,
    NVML_VALUE_DOUBLE = 0,
    NVML_VALUE_U32 = 1,
    NVML_VALUE_ULONG = 2,
    NVML_VALUE_U64 = 3,
    NVML_VALUE_I64 = 4,
    NVML_VALUE_INT = 5,
    NVML_VALUE_U16 = 6,
};
#define NVML_FIELD_ALL_LINKS UINT32_MAX

/* The version word of most structs; GPM's is plain 1. */
#define NVML_VERSION(type, version) ((uint32_t)sizeof(type) | (uint32_t)(version) << 24)

struct nvml_device; /* opaque */
struct nvml_event_set;
struct nvml_gpm_sample;

struct nvml_pci_info {
    char bus_id_legacy[16];
    uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

struct nvml_utilization {
    uint32_t gpu, memory;
};

struct nvml_memory_v1 {
    uint64_t total, free, used; /* used includes reserved */
};

struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used; /* used excludes reserved */
};

struct nvml_process_v1 {
    uint32_t pid;
    uint64_t used_memory;
};

/* The lists' entries since v2. R530 wrote eight bytes more. */
struct nvml_process {
    uint32_t pid;
    uint64_t used_memory; /* all ones: not available */
    uint32_t gpu_instance, compute_instance;
};

struct nvml_process_sample {
    uint32_t pid;
    uint64_t timestamp_us;
    uint32_t sm, memory, encoder, decoder;
};

struct nvml_temperature {
    uint32_t version;
    int sensor;
    int temperature_c;
};

struct nvml_field_value {
    uint32_t field_id, scope_id;
    int64_t timestamp_us, latency_us;
    int value_type;
    int result;
    union {
        double d;
        int32_t i;
        uint32_t u32;
        uint64_t u64;
        int64_t i64;
        uint16_t u16;
    } value;
};

struct nvml_event_data {
    struct nvml_device *device;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};

struct nvml_accounting_stats {
    uint32_t gpu_utilization, memory_utilization;
    uint64_t max_memory_bytes;
    uint64_t time_ms;
    uint64_t start_us;
    uint32_t is_running;
    uint32_t reserved[5];
};

struct nvml_gpm_support {
    uint32_t version;
    uint32_t is_supported;
};

_Static_assert(sizeof(struct nvml_pci_info) == 68, "PciInfo");
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "Memory_v2");
_Static_assert(sizeof(struct nvml_process_v1) == 16, "ProcessInfo_v1");
_Static_assert(sizeof(struct nvml_process) == 24, "ProcessInfo_v2");
_Static_assert(sizeof(struct nvml_process_sample) == 32, "ProcessUtilizationSample");
_Static_assert(sizeof(struct nvml_temperature) == 12, "Temperature_v1");
_Static_assert(sizeof(struct nvml_field_value) == 40, "FieldValue");
_Static_assert(sizeof(struct nvml_event_data) == 32, "EventData");
_Static_assert(sizeof(struct nvml_accounting_stats) == 56, "AccountingStats");

enum {
    NVML_GPM_VERSION = 1,
    NVML_GPM_METRICS_MAX = 333
}; /* the largest header's; older drivers fit */

struct nvml_gpm_metric {
    uint32_t id;
    int result;
    double value;
    const char *short_name, *long_name, *unit;
};

struct nvml_gpm_metrics {
    uint32_t version;
    uint32_t count;
    struct nvml_gpm_sample *from, *until;
    struct nvml_gpm_metric metrics[NVML_GPM_METRICS_MAX];
};

_Static_assert(sizeof(struct nvml_gpm_metric) == 40, "GpmMetric");
_Static_assert(sizeof(struct nvml_gpm_metrics) == 13344, "GpmMetricsGet");
