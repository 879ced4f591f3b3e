#include "sources/nvml/nvml_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "core/macros.h"
#include "model/sample.h"

/* One function: where its address goes, its names from the newest to the oldest, and whether we can
 * do without it. */
struct symbol {
    size_t offset;
    const char *names[3];
    bool required;
};

#define SYMBOL(member, required, ...)                                                              \
    {                                                                                              \
        offsetof(struct nvml_library, member), {__VA_ARGS__}, required                             \
    }

static const struct symbol symbols[] = {
    SYMBOL(init, true, "nvmlInit_v2", "nvmlInit"),
    SYMBOL(shutdown, true, "nvmlShutdown"),
    SYMBOL(error_string, true, "nvmlErrorString"),
    SYMBOL(device_count, true, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
    SYMBOL(device_by_index, true, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
    SYMBOL(uuid, true, "nvmlDeviceGetUUID"),
    SYMBOL(driver_version, false, "nvmlSystemGetDriverVersion"),
    SYMBOL(name, false, "nvmlDeviceGetName"),
    SYMBOL(minor, false, "nvmlDeviceGetMinorNumber"),
    SYMBOL(pci_info, false, "nvmlDeviceGetPciInfo_v3"), /* older ones fill only the short bus id */
    SYMBOL(energy_mj, false, "nvmlDeviceGetTotalEnergyConsumption"),
    SYMBOL(power_mw, false, "nvmlDeviceGetPowerUsage"),
    SYMBOL(power_limit_mw, false, "nvmlDeviceGetEnforcedPowerLimit",
           "nvmlDeviceGetPowerManagementLimit"),
    SYMBOL(utilization, false, "nvmlDeviceGetUtilizationRates"),
    SYMBOL(clock_mhz, false, "nvmlDeviceGetClockInfo"),
    SYMBOL(temperature_v, false, "nvmlDeviceGetTemperatureV"),
    SYMBOL(temperature, false, "nvmlDeviceGetTemperature"),
    SYMBOL(memory_v2, false, "nvmlDeviceGetMemoryInfo_v2"),
    SYMBOL(memory_v1, false, "nvmlDeviceGetMemoryInfo"),
    SYMBOL(throttle_reasons, false, "nvmlDeviceGetCurrentClocksEventReasons",
           "nvmlDeviceGetCurrentClocksThrottleReasons"),
    SYMBOL(performance_state, false, "nvmlDeviceGetPerformanceState"),
    SYMBOL(ecc_errors, false, "nvmlDeviceGetTotalEccErrors"),
    SYMBOL(fields, false, "nvmlDeviceGetFieldValues"),
    SYMBOL(pcie_generation, false, "nvmlDeviceGetCurrPcieLinkGeneration"),
    SYMBOL(pcie_width, false, "nvmlDeviceGetCurrPcieLinkWidth"),
    SYMBOL(process_samples, false, "nvmlDeviceGetProcessUtilization"),
    SYMBOL(accounting_mode, false, "nvmlDeviceGetAccountingMode"),
    SYMBOL(accounting_pids, false, "nvmlDeviceGetAccountingPids"),
    SYMBOL(accounting_stats, false, "nvmlDeviceGetAccountingStats"),
    SYMBOL(gpm_support, false, "nvmlGpmQueryDeviceSupport"),
    SYMBOL(gpm_alloc, false, "nvmlGpmSampleAlloc"),
    SYMBOL(gpm_free, false, "nvmlGpmSampleFree"),
    SYMBOL(gpm_sample, false, "nvmlGpmSampleGet"),
    SYMBOL(gpm_metrics, false, "nvmlGpmMetricsGet"),
    SYMBOL(event_set_create, false, "nvmlEventSetCreate"),
    SYMBOL(event_set_free, false, "nvmlEventSetFree"),
    SYMBOL(register_events, false, "nvmlDeviceRegisterEvents"),
    SYMBOL(event_wait, false, "nvmlEventSetWait_v2", "nvmlEventSetWait"),
};

/* The process lists. The plain names are macros in the vendor's header; as symbols they are version
 * 1, with entries of 16 bytes. */
static const char *const list_names[SAMPLE_LIST_KINDS][3] = {
    [SAMPLE_LIST_COMPUTE] = {"nvmlDeviceGetComputeRunningProcesses_v3",
                             "nvmlDeviceGetComputeRunningProcesses_v2",
                             "nvmlDeviceGetComputeRunningProcesses"},
    [SAMPLE_LIST_MPS] = {"nvmlDeviceGetMPSComputeRunningProcesses_v3",
                         "nvmlDeviceGetMPSComputeRunningProcesses_v2",
                         "nvmlDeviceGetMPSComputeRunningProcesses"},
    [SAMPLE_LIST_GRAPHICS] = {"nvmlDeviceGetGraphicsRunningProcesses_v3",
                              "nvmlDeviceGetGraphicsRunningProcesses_v2",
                              "nvmlDeviceGetGraphicsRunningProcesses"},
};

static void resolve_lists(struct nvml_library *library)
{
    bool wide = dlsym(library->handle, "nvmlDeviceGetConfComputeMemSizeInfo") &&
                !dlsym(library->handle, "nvmlDeviceGetRunningProcessDetailList");

    library->list_entry_bytes = sizeof(struct nvml_process);
    for (int kind = 0; kind < SAMPLE_LIST_KINDS; kind++)
        for (int i = 0; i < 3 && !library->lists[kind]; i++) {
            void *address = dlsym(library->handle, list_names[kind][i]);

            if (!address)
                continue;
            memcpy(&library->lists[kind], &address, sizeof(address));
            library->list_versions[kind] = i < 2 ? NVML_LIST_V2 : NVML_LIST_V1;
            /* Branch R530 alone wrote a field more, and only with _v3. */
            if (wide && i == 0)
                library->list_entry_bytes = sizeof(struct nvml_process) + sizeof(uint64_t);
        }
}

int nvml_library_open(const char *file, struct nvml_library *ret_library, struct error *err)
{
    struct nvml_library library = {.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};

    if (!library.handle)
        return error_set(err, -ENODEV, "%s", dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *address = NULL;

        for (size_t n = 0; n < ARRAY_SIZE(symbols[i].names) && !address; n++)
            if (symbols[i].names[n])
                address = dlsym(library.handle, symbols[i].names[n]);
        if (!address && symbols[i].required) {
            dlclose(library.handle);
            return error_set(err, -ENOTSUP, "%s has no %s: not NVIDIA's library?", file,
                             symbols[i].names[0]);
        }
        memcpy((char *)&library + symbols[i].offset, &address, sizeof(address));
    }
    resolve_lists(&library);
    *ret_library = library;
    return 0;
}

void nvml_library_close(struct nvml_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    *library = (struct nvml_library){0};
}

const char *nvml_library_error(const struct nvml_library *library, int code)
{
    const char *text = library->error_string ? library->error_string(code) : NULL;

    return text ? text : "unknown error";
}
