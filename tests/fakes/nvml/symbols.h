/*
 * Every NVML function that the fake has: one line each. The list gives the prototypes, the names
 * that a scenario may use, and the counters of calls.
 *
 * A library cannot lose a symbol once it is loaded, so an older driver is a build of its own:
 *   -DFAKE_NVML_OMIT_nvmlDeviceGetMemoryInfo_v2   leaves that symbol out (any symbol of the list);
 *   -DFAKE_NVML_R530                              is the branch whose _v3 lists have 32-byte
 * entries.
 */
#pragma once

#include "abi.h"

/* The exporter knows R530 by a symbol that is there and one that is not. */
#ifdef FAKE_NVML_R530
#define FAKE_NVML_OMIT_nvmlDeviceGetRunningProcessDetailList 1
#elif defined(FAKE_NVML_OMIT_nvmlDeviceGetRunningProcessDetailList)
#define FAKE_NVML_OMIT_nvmlDeviceGetConfComputeMemSizeInfo 1
#endif

/* clang-format off */
#define NVML_SYMBOLS(F) \
    F(int, nvmlInit_v2, (void)) \
    F(int, nvmlInit, (void)) \
    F(int, nvmlInitWithFlags, (unsigned flags)) \
    F(int, nvmlShutdown, (void)) \
    F(const char *, nvmlErrorString, (int code)) \
    F(int, nvmlSystemGetDriverVersion, (char *buf, unsigned len)) \
    F(int, nvmlSystemGetNVMLVersion, (char *buf, unsigned len)) \
    F(int, nvmlDeviceGetCount_v2, (unsigned *count)) \
    F(int, nvmlDeviceGetCount, (unsigned *count)) \
    F(int, nvmlDeviceGetHandleByIndex_v2, (unsigned index, void **ret_dev)) \
    F(int, nvmlDeviceGetHandleByIndex, (unsigned index, void **ret_dev)) \
    F(int, nvmlDeviceGetHandleByUUID, (const char *uuid, void **ret_dev)) \
    F(int, nvmlDeviceGetUUID, (void *dev, char *buf, unsigned len)) \
    F(int, nvmlDeviceGetIndex, (void *dev, unsigned *index)) \
    F(int, nvmlDeviceGetMinorNumber, (void *dev, unsigned *minor)) \
    F(int, nvmlDeviceGetName, (void *dev, char *buf, unsigned len)) \
    F(int, nvmlDeviceGetSerial, (void *dev, char *buf, unsigned len)) \
    F(int, nvmlDeviceGetPciInfo_v3, (void *dev, struct nvml_pci_info *pci)) \
    F(int, nvmlDeviceGetPciInfo_v2, (void *dev, struct nvml_pci_info *pci)) \
    F(int, nvmlDeviceGetPciInfo, (void *dev, struct nvml_pci_info *pci)) \
    F(int, nvmlDeviceGetVirtualizationMode, (void *dev, unsigned *mode)) \
    F(int, nvmlDeviceGetPersistenceMode, (void *dev, unsigned *mode)) \
    F(int, nvmlDeviceGetComputeMode, (void *dev, unsigned *mode)) \
    F(int, nvmlDeviceGetCurrPcieLinkGeneration, (void *dev, unsigned *generation)) \
    F(int, nvmlDeviceGetCurrPcieLinkWidth, (void *dev, unsigned *width)) \
    F(int, nvmlDeviceGetTotalEnergyConsumption, (void *dev, unsigned long long *energy_mj)) \
    F(int, nvmlDeviceGetPowerUsage, (void *dev, unsigned *power_mw)) \
    F(int, nvmlDeviceGetEnforcedPowerLimit, (void *dev, unsigned *limit_mw)) \
    F(int, nvmlDeviceGetPowerManagementLimit, (void *dev, unsigned *limit_mw)) \
    F(int, nvmlDeviceGetPowerManagementDefaultLimit, (void *dev, unsigned *limit_mw)) \
    F(int, nvmlDeviceGetPowerManagementLimitConstraints, \
      (void *dev, unsigned *min_mw, unsigned *max_mw)) \
    F(int, nvmlDeviceGetFieldValues, (void *dev, int count, struct nvml_field_value *values)) \
    F(int, nvmlDeviceGetClockInfo, (void *dev, int type, unsigned *clock_mhz)) \
    F(int, nvmlDeviceGetMaxClockInfo, (void *dev, int type, unsigned *clock_mhz)) \
    F(int, nvmlDeviceGetTemperatureV, (void *dev, struct nvml_temperature *temperature)) \
    F(int, nvmlDeviceGetTemperature, (void *dev, int sensor, unsigned *celsius)) \
    F(int, nvmlDeviceGetPerformanceState, (void *dev, unsigned *state)) \
    F(int, nvmlDeviceGetCurrentClocksEventReasons, (void *dev, unsigned long long *mask)) \
    F(int, nvmlDeviceGetCurrentClocksThrottleReasons, (void *dev, unsigned long long *mask)) \
    F(int, nvmlDeviceGetTotalEccErrors, \
      (void *dev, int error_type, int counter_type, unsigned long long *errors)) \
    F(int, nvmlDeviceGetUtilizationRates, (void *dev, struct nvml_utilization *utilization)) \
    F(int, nvmlDeviceGetMemoryInfo_v2, (void *dev, struct nvml_memory_v2 *memory)) \
    F(int, nvmlDeviceGetMemoryInfo, (void *dev, struct nvml_memory *memory)) \
    F(int, nvmlDeviceGetConfComputeMemSizeInfo, \
      (void *dev, struct nvml_conf_compute_mem_size *size)) \
    F(int, nvmlDeviceGetComputeRunningProcesses_v3, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetComputeRunningProcesses_v2, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetComputeRunningProcesses, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetGraphicsRunningProcesses_v3, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetGraphicsRunningProcesses_v2, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetGraphicsRunningProcesses, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetMPSComputeRunningProcesses_v3, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetMPSComputeRunningProcesses_v2, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetMPSComputeRunningProcesses, (void *dev, unsigned *count, void *infos)) \
    F(int, nvmlDeviceGetRunningProcessDetailList, \
      (void *dev, struct nvml_process_detail_list *list)) \
    F(int, nvmlDeviceGetProcessUtilization, \
      (void *dev, struct nvml_process_utilization_sample *samples, unsigned *count, \
       unsigned long long last_seen_us)) \
    F(int, nvmlDeviceGetProcessesUtilizationInfo, \
      (void *dev, struct nvml_processes_utilization_info *info)) \
    F(int, nvmlDeviceGetAccountingMode, (void *dev, unsigned *mode)) \
    F(int, nvmlDeviceGetAccountingPids, (void *dev, unsigned *count, unsigned *pids)) \
    F(int, nvmlDeviceGetAccountingStats, \
      (void *dev, unsigned pid, struct nvml_accounting_stats *stats)) \
    F(int, nvmlDeviceGetMigMode, (void *dev, unsigned *current, unsigned *pending)) \
    F(int, nvmlDeviceGetMaxMigDeviceCount, (void *dev, unsigned *count)) \
    F(int, nvmlDeviceGetMigDeviceHandleByIndex, (void *dev, unsigned index, void **ret_dev)) \
    F(int, nvmlDeviceGetGpuInstanceId, (void *dev, unsigned *id)) \
    F(int, nvmlDeviceGetComputeInstanceId, (void *dev, unsigned *id)) \
    F(int, nvmlDeviceGetAttributes_v2, (void *dev, struct nvml_attributes *attributes)) \
    F(int, nvmlDeviceGetAttributes, (void *dev, struct nvml_attributes *attributes)) \
    F(int, nvmlDeviceGetGpuInstanceProfileInfo, \
      (void *dev, unsigned profile, struct nvml_gpu_instance_profile *info)) \
    F(int, nvmlDeviceGetGpuInstanceById, (void *dev, unsigned id, void **ret_instance)) \
    F(int, nvmlGpuInstanceGetInfo, (void *instance, struct nvml_gpu_instance_info *info)) \
    F(int, nvmlGpmMigSampleGet, (void *dev, unsigned gpu_instance, void *sample)) \
    F(int, nvmlDeviceGetActiveVgpus, (void *dev, unsigned *count, unsigned *vgpus)) \
    F(int, nvmlVgpuInstanceGetVmID, (unsigned vgpu, char *buf, unsigned len, unsigned *type)) \
    F(int, nvmlVgpuInstanceGetUUID, (unsigned vgpu, char *buf, unsigned len)) \
    F(int, nvmlVgpuInstanceGetFbUsage, (unsigned vgpu, unsigned long long *bytes)) \
    F(int, nvmlDeviceGetVgpuUtilization, \
      (void *dev, unsigned long long last_seen_us, unsigned *type, unsigned *count, \
       struct nvml_vgpu_utilization_sample *samples)) \
    F(int, nvmlDeviceGetVgpuInstancesUtilizationInfo, \
      (void *dev, struct nvml_vgpus_utilization_info *info)) \
    F(int, nvmlGpmQueryDeviceSupport, (void *dev, struct nvml_gpm_support *support)) \
    F(int, nvmlGpmSampleAlloc, (void **ret_sample)) \
    F(int, nvmlGpmSampleFree, (void *sample)) \
    F(int, nvmlGpmSampleGet, (void *dev, void *sample)) \
    F(int, nvmlGpmMetricsGet, (struct nvml_gpm_metrics_get *get)) \
    F(int, nvmlEventSetCreate, (void **ret_set)) \
    F(int, nvmlEventSetFree, (void *set)) \
    F(int, nvmlDeviceRegisterEvents, (void *dev, unsigned long long types, void *set)) \
    F(int, nvmlDeviceGetSupportedEventTypes, (void *dev, unsigned long long *types)) \
    F(int, nvmlEventSetWait_v2, (void *set, struct nvml_event_data *data, unsigned timeout_ms)) \
    F(int, nvmlEventSetWait, (void *set, struct nvml_event_data *data, unsigned timeout_ms))
/* clang-format on */

enum symbol {
#define F(type, name, params) SYMBOL_##name,
    NVML_SYMBOLS(F)
#undef F
        SYMBOL_COUNT,
};

/* "hidden" where -DFAKE_NVML_OMIT_name was given (which defines it as 1), else "default". */
#define SYMBOL_OMITTED_1                  0,
#define SYMBOL_SECOND(first, second, ...) second
#define SYMBOL_CHOOSE(omitted)            SYMBOL_SECOND(omitted "hidden", "default", )
#define SYMBOL_EXPAND(flag)               SYMBOL_CHOOSE(SYMBOL_OMITTED_##flag)
#define SYMBOL_VISIBILITY(flag)           SYMBOL_EXPAND(flag)

#define F(type, name, params)                                                                      \
    __attribute__((visibility(SYMBOL_VISIBILITY(FAKE_NVML_OMIT_##name)))) type name params;
NVML_SYMBOLS(F)
#undef F

/* The symbol with this name, or -1. */
int symbol_find(const char *name);
