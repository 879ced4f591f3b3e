/*
 * The NVML C ABI on x86-64 as far as the fake answers it: codes, enums, version words and structs.
 * Written from the reference page on NVML, not from the exporter's own declarations, so that a
 * mistake in one of them shows in a test.
 */
#pragma once

#include <stddef.h>
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
    NVML_INSUFFICIENT_RESOURCES = 23,
    NVML_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_UNKNOWN = 999,
};

enum {
    NVML_CLOCK_GRAPHICS = 0,
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEMORY = 2,
    NVML_CLOCK_VIDEO = 3,

    NVML_VALUE_U32 = 1,
    NVML_VALUE_U64 = 3,

    NVML_MODE_COMPUTE = 0,
    NVML_MODE_GRAPHICS = 1,
    NVML_MODE_MPS = 2,

    NVML_EVENT_XID = 0x8,
    /* Single-bit and double-bit ECC, P-state, XID, clock. */
    NVML_EVENTS_SUPPORTED = 0x1f,

    NVML_GPM_VERSION = 1,
    NVML_GPM_METRIC_MAX = 333,
};

#define NVML_NO_INSTANCE   UINT32_MAX
#define NVML_NOT_AVAILABLE UINT64_MAX

#define NVML_VERSION_WORD(type, number) ((uint32_t)sizeof(type) | (uint32_t)(number) << 24)

struct nvml_pci_info {
    char bus_id_legacy[16];
    uint32_t domain;
    uint32_t bus;
    uint32_t device;
    uint32_t pci_device_id;
    uint32_t pci_subsystem_id;
    char bus_id[32];
};

struct nvml_utilization {
    uint32_t gpu;
    uint32_t memory;
};

struct nvml_memory {
    uint64_t total;
    uint64_t free;
    uint64_t used;
};

struct nvml_memory_v2 {
    uint32_t version;
    uint64_t total;
    uint64_t reserved;
    uint64_t free;
    uint64_t used;
};

/* The longest form of an entry of a process list. The shorter forms are its first 16 and 24 bytes.
 */
struct nvml_process_detail {
    uint32_t pid;
    uint64_t used_gpu_memory;
    uint32_t gpu_instance_id;
    uint32_t compute_instance_id;
    uint64_t used_gpu_cc_protected_memory;
};

enum {
    NVML_PROCESS_INFO_V1_SIZE = 16,
    NVML_PROCESS_INFO_V2_SIZE = 24,
    NVML_PROCESS_INFO_R530_SIZE = 32,
};

struct nvml_process_detail_list {
    uint32_t version;
    uint32_t mode;
    uint32_t num_proc_array_entries;
    struct nvml_process_detail *proc_array;
};

struct nvml_process_utilization_sample {
    uint32_t pid;
    uint64_t time_stamp;
    uint32_t sm_util;
    uint32_t mem_util;
    uint32_t enc_util;
    uint32_t dec_util;
};

struct nvml_process_utilization_info {
    uint64_t time_stamp;
    uint32_t pid;
    uint32_t sm_util;
    uint32_t mem_util;
    uint32_t enc_util;
    uint32_t dec_util;
    uint32_t jpg_util;
    uint32_t ofa_util;
};

struct nvml_processes_utilization_info {
    uint32_t version;
    uint32_t process_samples_count;
    uint64_t last_seen_time_stamp;
    struct nvml_process_utilization_info *proc_util_array;
};

struct nvml_accounting_stats {
    uint32_t gpu_utilization;
    uint32_t memory_utilization;
    uint64_t max_memory_usage;
    uint64_t time;
    uint64_t start_time;
    uint32_t is_running;
    uint32_t reserved[5];
};

struct nvml_attributes {
    uint32_t multiprocessor_count;
    uint32_t shared_copy_engine_count;
    uint32_t shared_decoder_count;
    uint32_t shared_encoder_count;
    uint32_t shared_jpeg_count;
    uint32_t shared_ofa_count;
    uint32_t gpu_instance_slice_count;
    uint32_t compute_instance_slice_count;
    uint64_t memory_size_mb;
};

struct nvml_gpu_instance_info {
    void *device;
    uint32_t id;
    uint32_t profile_id;
    uint32_t placement_start;
    uint32_t placement_size;
};

struct nvml_gpu_instance_profile {
    uint32_t id;
    uint32_t is_p2p_supported;
    uint32_t slice_count;
    uint32_t instance_count;
    uint32_t multiprocessor_count;
    uint32_t copy_engine_count;
    uint32_t decoder_count;
    uint32_t encoder_count;
    uint32_t jpeg_count;
    uint32_t ofa_count;
    uint64_t memory_size_mb;
};

struct nvml_vgpu_utilization_sample {
    uint32_t vgpu_instance;
    uint64_t time_stamp;
    uint64_t sm_util;
    uint64_t mem_util;
    uint64_t enc_util;
    uint64_t dec_util;
};

struct nvml_vgpu_utilization_info {
    uint64_t time_stamp;
    uint32_t vgpu_instance;
    uint64_t sm_util;
    uint64_t mem_util;
    uint64_t enc_util;
    uint64_t dec_util;
    uint64_t jpg_util;
    uint64_t ofa_util;
};

struct nvml_vgpus_utilization_info {
    uint32_t version;
    uint32_t sample_val_type;
    uint32_t vgpu_instance_count;
    uint64_t last_seen_time_stamp;
    struct nvml_vgpu_utilization_info *vgpu_util_array;
};

struct nvml_field_value {
    uint32_t field_id;
    uint32_t scope_id;
    int64_t timestamp;
    int64_t latency_usec;
    uint32_t value_type;
    uint32_t nvml_return;
    union {
        uint32_t u32[2];
        uint64_t u64;
    } value;
};

struct nvml_gpm_metric {
    uint32_t metric_id;
    uint32_t nvml_return;
    double value;
    const char *short_name;
    const char *long_name;
    const char *unit;
};

struct nvml_gpm_metrics_get {
    uint32_t version;
    uint32_t num_metrics;
    void *sample1;
    void *sample2;
    struct nvml_gpm_metric metrics[];
};

struct nvml_gpm_support {
    uint32_t version;
    uint32_t is_supported_device;
};

struct nvml_event_data {
    void *device;
    uint64_t event_type;
    uint64_t event_data;
    uint32_t gpu_instance_id;
    uint32_t compute_instance_id;
};

/* The unversioned wait call is older than the instance ids. */
enum { NVML_EVENT_DATA_V1_SIZE = 24 };

struct nvml_temperature {
    uint32_t version;
    uint32_t sensor_type;
    int32_t temperature;
};

/* Confidential computing: the page gives no layout; two counts of KiB in the public header. */
struct nvml_conf_compute_mem_size {
    uint64_t protected_kib;
    uint64_t unprotected_kib;
};

#define ABI_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#define ABI_OFFSET(type, field, at)                                                                \
    _Static_assert(offsetof(struct type, field) == (at), #type "." #field)

ABI_SIZE(nvml_pci_info, 68);
ABI_OFFSET(nvml_pci_info, bus_id, 36);
ABI_SIZE(nvml_utilization, 8);
ABI_SIZE(nvml_memory, 24);
ABI_SIZE(nvml_memory_v2, 40);
ABI_OFFSET(nvml_memory_v2, used, 32);
ABI_SIZE(nvml_process_detail, 32);
ABI_OFFSET(nvml_process_detail, used_gpu_cc_protected_memory, 24);
ABI_SIZE(nvml_process_detail_list, 24);
ABI_SIZE(nvml_process_utilization_sample, 32);
ABI_OFFSET(nvml_process_utilization_sample, dec_util, 28);
ABI_SIZE(nvml_process_utilization_info, 40);
ABI_OFFSET(nvml_process_utilization_info, ofa_util, 32);
ABI_SIZE(nvml_processes_utilization_info, 24);
ABI_SIZE(nvml_accounting_stats, 56);
ABI_OFFSET(nvml_accounting_stats, is_running, 32);
ABI_SIZE(nvml_attributes, 40);
ABI_OFFSET(nvml_attributes, memory_size_mb, 32);
ABI_SIZE(nvml_gpu_instance_info, 24);
ABI_OFFSET(nvml_gpu_instance_info, placement_start, 16);
ABI_SIZE(nvml_gpu_instance_profile, 48);
ABI_OFFSET(nvml_gpu_instance_profile, memory_size_mb, 40);
ABI_SIZE(nvml_vgpu_utilization_sample, 48);
ABI_OFFSET(nvml_vgpu_utilization_sample, sm_util, 16);
ABI_SIZE(nvml_vgpu_utilization_info, 64);
ABI_OFFSET(nvml_vgpu_utilization_info, sm_util, 16);
ABI_SIZE(nvml_vgpus_utilization_info, 32);
ABI_OFFSET(nvml_vgpus_utilization_info, vgpu_util_array, 24);
ABI_SIZE(nvml_field_value, 40);
ABI_OFFSET(nvml_field_value, value, 32);
ABI_SIZE(nvml_gpm_metric, 40);
ABI_SIZE(nvml_gpm_metrics_get, 24);
ABI_SIZE(nvml_gpm_support, 8);
ABI_SIZE(nvml_event_data, 32);
ABI_SIZE(nvml_temperature, 12);

#undef ABI_SIZE
#undef ABI_OFFSET
