/*
 * libnvidia-ml.so.1, loaded at run time, with our own declarations of the part of its ABI that we
 * use: no vendor header is needed to build. Layouts are those of x86-64 and aarch64 Linux, checked
 * below. A function that this driver does not have is NULL, and what it reports is absent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "model/sample.h"

enum nvml_return {
    NVML_SUCCESS = 0,
    NVML_UNINITIALIZED = 1,
    NVML_INVALID_ARGUMENT = 2,
    NVML_NOT_SUPPORTED = 3,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_FOUND = 6,
    NVML_INSUFFICIENT_SIZE = 7,
    NVML_DRIVER_NOT_LOADED = 9,
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
    NVML_MIG_ENABLED = 1,
    NVML_GPU_INSTANCE_PROFILES_MAX = 64, /* 18 in the header of R590 */
    NVML_VIRTUALIZATION_HOST_VGPU = 3,
    NVML_VM_ID_UUID = 1,
    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_FIELD_PCIE_REPLAY = 94,
    NVML_FIELD_NVLINK_TX_KIB = 138, /* scope NVML_FIELD_ALL_LINKS: all links */
    NVML_FIELD_NVLINK_RX_KIB = 139,
    NVML_FIELD_PCIE_TX_BYTES = 197,
    NVML_FIELD_PCIE_RX_BYTES = 198,
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

struct nvml_device; /* opaque, as all of these */
struct nvml_gpu_instance_handle;
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

/* The entries of lists since v2; R530 wrote eight bytes more. */
struct nvml_process {
    uint32_t pid;
    uint64_t used_memory; /* all ones: not available */
    uint32_t gpu_instance, compute_instance;
};

enum { NVML_PROCESS_BYTES_MAX = sizeof(struct nvml_process) + sizeof(uint64_t) };

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

union nvml_value {
    double d;
    int32_t i;
    uint32_t u32;
    uint64_t u64;
    int64_t i64;
    uint16_t u16;
};

struct nvml_field_value {
    uint32_t field_id, scope_id;
    int64_t timestamp_us, latency_us;
    int value_type;
    int result;
    union nvml_value value;
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

/* Of a MIG device. */
struct nvml_attributes {
    uint32_t sm_count;
    uint32_t copy_engines, decoders, encoders, jpeg_engines, ofa_engines; /* shared */
    uint32_t gpu_instance_slices, compute_instance_slices;
    uint64_t memory_mib;
};

struct nvml_gpu_instance_profile {
    uint32_t id, is_p2p_supported, slices, instances, sm_count;
    uint32_t copy_engines, decoders, encoders, jpeg_engines, ofa_engines;
    uint64_t memory_mib;
};

/* The placement is counted in memory slices. */
struct nvml_gpu_instance_info {
    struct nvml_device *device;
    uint32_t id, profile_id, placement_start, placement_size;
};

struct nvml_vgpu_sample_v1 {
    uint32_t vgpu;
    uint64_t timestamp_us;
    union nvml_value sm, memory, encoder, decoder;
};

struct nvml_vgpu_sample {
    uint64_t timestamp_us;
    uint32_t vgpu;
    union nvml_value sm, memory, encoder, decoder, jpeg, ofa;
};

struct nvml_vgpu_samples {
    uint32_t version;
    int value_type;
    uint32_t count;
    uint64_t since_us;
    struct nvml_vgpu_sample *samples;
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
_Static_assert(sizeof(struct nvml_process_sample) <= NVML_PROCESS_BYTES_MAX, "one buffer for both");
_Static_assert(sizeof(struct nvml_temperature) == 12, "Temperature_v1");
_Static_assert(sizeof(struct nvml_field_value) == 40, "FieldValue");
_Static_assert(sizeof(struct nvml_event_data) == 32, "EventData");
_Static_assert(sizeof(struct nvml_accounting_stats) == 56, "AccountingStats");
_Static_assert(sizeof(struct nvml_attributes) == 40, "DeviceAttributes");
_Static_assert(offsetof(struct nvml_attributes, gpu_instance_slices) == 24, "DeviceAttributes");
_Static_assert(sizeof(struct nvml_gpu_instance_profile) == 48, "GpuInstanceProfileInfo");
_Static_assert(sizeof(struct nvml_gpu_instance_info) == 24, "GpuInstanceInfo");
_Static_assert(sizeof(struct nvml_vgpu_sample_v1) == 48, "VgpuInstanceUtilizationSample");
_Static_assert(sizeof(struct nvml_vgpu_sample) == 64, "VgpuInstanceUtilizationInfo_v1");
_Static_assert(sizeof(struct nvml_vgpu_samples) == 32, "VgpuInstancesUtilizationInfo_v1");

/* The largest header's; older drivers fit. */
enum { NVML_GPM_VERSION = 1, NVML_GPM_METRICS_MAX = 333 };

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

/* Each function: its member, its parameters, and its names from the newest to the oldest. All
 * return a code of enum nvml_return. Those of a DEVICE take that first, and are optional, too. */
/* clang-format off */
#define NVML_FUNCTIONS(REQUIRED, OPTIONAL, DEVICE)                                                 \
    REQUIRED(init, (void), "nvmlInit_v2", "nvmlInit")                                              \
    REQUIRED(shutdown, (void), "nvmlShutdown")                                                     \
    REQUIRED(device_count, (uint32_t *), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")            \
    REQUIRED(device_by_index, (uint32_t index, struct nvml_device **),                             \
             "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")                        \
    REQUIRED(uuid, (struct nvml_device *, char *, uint32_t size), "nvmlDeviceGetUUID")             \
    OPTIONAL(driver_version, (char *, uint32_t size), "nvmlSystemGetDriverVersion")                \
    OPTIONAL(gpm_alloc, (struct nvml_gpm_sample **), "nvmlGpmSampleAlloc")                         \
    OPTIONAL(gpm_free, (struct nvml_gpm_sample *), "nvmlGpmSampleFree")                            \
    OPTIONAL(gpm_metrics, (struct nvml_gpm_metrics *), "nvmlGpmMetricsGet")                        \
    OPTIONAL(event_set_create, (struct nvml_event_set **), "nvmlEventSetCreate")                   \
    OPTIONAL(event_set_free, (struct nvml_event_set *), "nvmlEventSetFree")                        \
    OPTIONAL(event_wait, (struct nvml_event_set *, struct nvml_event_data *, uint32_t timeout_ms), \
             "nvmlEventSetWait_v2", "nvmlEventSetWait")                                            \
    OPTIONAL(gpu_instance_info, (struct nvml_gpu_instance_handle *,                                \
             struct nvml_gpu_instance_info *), "nvmlGpuInstanceGetInfo")                           \
    OPTIONAL(vgpu_vm, (uint32_t vgpu, char *, uint32_t size, int *type),                           \
             "nvmlVgpuInstanceGetVmID")                                                            \
    OPTIONAL(vgpu_uuid, (uint32_t vgpu, char *, uint32_t size), "nvmlVgpuInstanceGetUUID")         \
    OPTIONAL(vgpu_memory, (uint32_t vgpu, unsigned long long *bytes),                              \
             "nvmlVgpuInstanceGetFbUsage")                                                         \
    DEVICE(name, (char *, uint32_t size), "nvmlDeviceGetName")                                     \
    DEVICE(minor, (uint32_t *), "nvmlDeviceGetMinorNumber")                                        \
    /* Older versions fill only the short bus id. */                                               \
    DEVICE(pci_info, (struct nvml_pci_info *), "nvmlDeviceGetPciInfo_v3")                          \
    DEVICE(energy_mj, (unsigned long long *), "nvmlDeviceGetTotalEnergyConsumption")               \
    DEVICE(power_mw, (uint32_t *), "nvmlDeviceGetPowerUsage")                                      \
    DEVICE(power_limit_mw, (uint32_t *), "nvmlDeviceGetEnforcedPowerLimit",                        \
           "nvmlDeviceGetPowerManagementLimit")                                                    \
    DEVICE(utilization, (struct nvml_utilization *), "nvmlDeviceGetUtilizationRates")              \
    DEVICE(clock_mhz, (int type, uint32_t *), "nvmlDeviceGetClockInfo")                            \
    DEVICE(temperature_v, (struct nvml_temperature *), "nvmlDeviceGetTemperatureV")                \
    DEVICE(temperature, (int sensor, uint32_t *celsius), "nvmlDeviceGetTemperature")               \
    DEVICE(memory_v2, (struct nvml_memory_v2 *), "nvmlDeviceGetMemoryInfo_v2")                     \
    DEVICE(memory_v1, (struct nvml_memory_v1 *), "nvmlDeviceGetMemoryInfo")                        \
    DEVICE(throttle_reasons, (unsigned long long *mask),                                           \
           "nvmlDeviceGetCurrentClocksEventReasons",                                               \
           "nvmlDeviceGetCurrentClocksThrottleReasons")                                            \
    DEVICE(performance_state, (int *), "nvmlDeviceGetPerformanceState")                            \
    DEVICE(ecc_errors, (int type, int counter, unsigned long long *),                              \
           "nvmlDeviceGetTotalEccErrors")                                                          \
    DEVICE(fields, (int count, struct nvml_field_value *), "nvmlDeviceGetFieldValues")             \
    DEVICE(pcie_generation, (uint32_t *), "nvmlDeviceGetCurrPcieLinkGeneration")                   \
    DEVICE(pcie_width, (uint32_t *), "nvmlDeviceGetCurrPcieLinkWidth")                             \
    DEVICE(process_samples, (struct nvml_process_sample *, uint32_t *count,                        \
           unsigned long long since_us), "nvmlDeviceGetProcessUtilization")                        \
    DEVICE(accounting_mode, (int *), "nvmlDeviceGetAccountingMode")                                \
    DEVICE(accounting_pids, (uint32_t *count, uint32_t *pids), "nvmlDeviceGetAccountingPids")      \
    DEVICE(accounting_stats, (uint32_t pid, struct nvml_accounting_stats *),                       \
           "nvmlDeviceGetAccountingStats")                                                         \
    DEVICE(gpm_support, (struct nvml_gpm_support *), "nvmlGpmQueryDeviceSupport")                  \
    DEVICE(gpm_sample, (struct nvml_gpm_sample *), "nvmlGpmSampleGet")                             \
    DEVICE(gpm_mig_sample, (uint32_t gpu_instance, struct nvml_gpm_sample *),                      \
           "nvmlGpmMigSampleGet")                                                                  \
    DEVICE(mig_mode, (uint32_t *current, uint32_t *pending), "nvmlDeviceGetMigMode")               \
    DEVICE(mig_devices_max, (uint32_t *), "nvmlDeviceGetMaxMigDeviceCount")                        \
    DEVICE(mig_device, (uint32_t index, struct nvml_device **),                                    \
           "nvmlDeviceGetMigDeviceHandleByIndex")                                                  \
    DEVICE(gpu_instance, (uint32_t *), "nvmlDeviceGetGpuInstanceId")                               \
    DEVICE(compute_instance, (uint32_t *), "nvmlDeviceGetComputeInstanceId")                       \
    DEVICE(attributes, (struct nvml_attributes *), "nvmlDeviceGetAttributes_v2",                   \
           "nvmlDeviceGetAttributes")                                                              \
    DEVICE(gpu_instance_profile, (uint32_t profile, struct nvml_gpu_instance_profile *),           \
           "nvmlDeviceGetGpuInstanceProfileInfo")                                                  \
    DEVICE(gpu_instance_by_id, (uint32_t id, struct nvml_gpu_instance_handle **),                  \
           "nvmlDeviceGetGpuInstanceById")                                                         \
    DEVICE(virtualization_mode, (int *), "nvmlDeviceGetVirtualizationMode")                        \
    DEVICE(active_vgpus, (uint32_t *count, uint32_t *vgpus), "nvmlDeviceGetActiveVgpus")           \
    DEVICE(vgpu_samples, (struct nvml_vgpu_samples *),                                             \
           "nvmlDeviceGetVgpuInstancesUtilizationInfo")                                            \
    DEVICE(vgpu_samples_v1, (unsigned long long since_us, int *value_type, uint32_t *count,        \
           struct nvml_vgpu_sample_v1 *), "nvmlDeviceGetVgpuUtilization")                          \
    DEVICE(register_events, (unsigned long long types, struct nvml_event_set *),                   \
           "nvmlDeviceRegisterEvents")
/* clang-format on */

struct nvml_library {
    void *handle;
    const char *(*error_string)(int code);
#define NVML_UNPACK(...)                     __VA_ARGS__
#define NVML_MEMBER(member, parameters, ...) int(*member) parameters;
#define NVML_OF_DEVICE(member, parameters, ...)                                                    \
    int (*member)(struct nvml_device *, NVML_UNPACK parameters);
    NVML_FUNCTIONS(NVML_MEMBER, NVML_MEMBER, NVML_OF_DEVICE)
    int (*lists[SAMPLE_LIST_KINDS])(struct nvml_device *, uint32_t *count, void *entries);
    size_t list_entry_bytes[SAMPLE_LIST_KINDS];
};

/* -ENODEV: there is no such library. Other errors carry a text. Does not talk to the driver. */
int nvml_library_open(const char *file, struct nvml_library *ret_library, struct error *err);
void nvml_library_close(struct nvml_library *library);

/* The library's own words for a code. */
const char *nvml_library_error(const struct nvml_library *library, int code);
