/*
 * libnvidia-ml.so.1, found at run time. Every function is resolved by name, the newest version
 * first; a pointer that is NULL means that this driver does not have it, and that what it tells is
 * absent.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "sources/nvml/nvml_abi.h"

/* Which of a function's versions was found. */
enum nvml_list_version { NVML_LIST_NONE, NVML_LIST_V1, NVML_LIST_V2 /* and v3: same entries */ };

typedef int nvml_list_function(struct nvml_device *, uint32_t *count, void *entries);

struct nvml_library {
    void *handle;

    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int code);
    int (*driver_version)(char *text, uint32_t size);
    int (*device_count)(uint32_t *count);
    int (*device_by_index)(uint32_t index, struct nvml_device **device);
    int (*uuid)(struct nvml_device *, char *text, uint32_t size);
    int (*name)(struct nvml_device *, char *text, uint32_t size);
    int (*minor)(struct nvml_device *, uint32_t *minor);
    int (*pci_info)(struct nvml_device *, struct nvml_pci_info *info);

    int (*energy_mj)(struct nvml_device *, unsigned long long *energy_mj);
    int (*power_mw)(struct nvml_device *, uint32_t *power_mw);
    int (*power_limit_mw)(struct nvml_device *, uint32_t *limit_mw);
    int (*utilization)(struct nvml_device *, struct nvml_utilization *utilization);
    int (*clock_mhz)(struct nvml_device *, int type, uint32_t *clock_mhz);
    int (*temperature_v)(struct nvml_device *, struct nvml_temperature *temperature);
    int (*temperature)(struct nvml_device *, int sensor, uint32_t *temperature_c);
    int (*memory_v2)(struct nvml_device *, struct nvml_memory_v2 *memory);
    int (*memory_v1)(struct nvml_device *, struct nvml_memory_v1 *memory);
    int (*throttle_reasons)(struct nvml_device *, unsigned long long *mask);
    int (*performance_state)(struct nvml_device *, int *state);
    int (*ecc_errors)(struct nvml_device *, int type, int counter, unsigned long long *count);
    int (*fields)(struct nvml_device *, int count, struct nvml_field_value *values);
    int (*pcie_generation)(struct nvml_device *, uint32_t *generation);
    int (*pcie_width)(struct nvml_device *, uint32_t *width);

    nvml_list_function *lists[3]; /* by enum sample_list_kind */
    enum nvml_list_version list_versions[3];
    size_t list_entry_bytes; /* of version 2 entries: 24, or the 32 of R530 */
    int (*process_samples)(struct nvml_device *, struct nvml_process_sample *samples,
                           uint32_t *count, unsigned long long since_us);

    int (*accounting_mode)(struct nvml_device *, int *mode);
    int (*accounting_pids)(struct nvml_device *, uint32_t *count, uint32_t *pids);
    int (*accounting_stats)(struct nvml_device *, uint32_t pid,
                            struct nvml_accounting_stats *stats);

    int (*gpm_support)(struct nvml_device *, struct nvml_gpm_support *support);
    int (*gpm_alloc)(struct nvml_gpm_sample **sample);
    int (*gpm_free)(struct nvml_gpm_sample *sample);
    int (*gpm_sample)(struct nvml_device *, struct nvml_gpm_sample *sample);
    int (*gpm_metrics)(struct nvml_gpm_metrics *metrics);

    int (*event_set_create)(struct nvml_event_set **set);
    int (*event_set_free)(struct nvml_event_set *set);
    int (*register_events)(struct nvml_device *, unsigned long long types,
                           struct nvml_event_set *set);
    int (*event_wait)(struct nvml_event_set *set, struct nvml_event_data *data,
                      uint32_t timeout_ms);
};

/* -ENODEV: there is no such library. Other errors carry a text. Does not talk to the driver. */
int nvml_library_open(const char *file, struct nvml_library *ret_library, struct error *err);
void nvml_library_close(struct nvml_library *library);

/* The library's own words for a code. */
const char *nvml_library_error(const struct nvml_library *library, int code);
