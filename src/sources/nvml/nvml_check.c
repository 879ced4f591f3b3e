/* What `wattribute check` reports of NVIDIA's driver and its GPUs. */
#include <stdio.h>

#include "core/macros.h"
#include "model/report.h"
#include "sources/nvml/nvml.h"

/* One thing that NVML may or may not tell of a GPU. */
static void report_call(struct report *report, const struct nvml_library *nvml, uint32_t index,
                        const char *what, bool exists, int code, const char *remedy)
{
    char name[64];

    snprintf(name, sizeof(name), "gpu %u: %s", index, what);
    if (!exists)
        report_add(report, name, VERDICT_LIMITED, "install a newer driver",
                   "the driver's library has no such function");
    else if (code == NVML_SUCCESS || code == NVML_NOT_FOUND || code == NVML_INSUFFICIENT_SIZE)
        report_add(report, name, VERDICT_OK, NULL, "available");
    else
        report_add(report, name, VERDICT_LIMITED, remedy, "%s", nvml_library_error(nvml, code));
}

static void report_gpu(struct report *report, const struct nvml_library *nvml, uint32_t index)
{
    struct nvml_device *device;
    char uuid[NVML_UUID_BYTES] = "", name[NVML_NAME_BYTES] = "", what[64];
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    unsigned long long energy_mj;
    uint32_t count = 0;
    int code = nvml->device_by_index(index, &device);

    snprintf(what, sizeof(what), "gpu %u", index);
    if (code != NVML_SUCCESS) {
        report_add(report, what, VERDICT_MISSING,
                   "run as a user that may open /dev/nvidia*, or give the container this GPU", "%s",
                   nvml_library_error(nvml, code));
        return;
    }
    (void)nvml->uuid(device, uuid, sizeof(uuid));
    if (nvml->name)
        (void)nvml->name(device, name, sizeof(name));
    report->gpus++;
    report_add(report, what, VERDICT_OK, NULL, "%.90s, %.90s", name, uuid);
    report_call(
        report, nvml, index, "energy counter", nvml->energy_mj != NULL,
        nvml->energy_mj ? nvml->energy_mj(device, &energy_mj) : 0,
        "none: this board has no counter; its power is integrated instead, always estimated");
    report_call(report, nvml, index, "process samples", nvml->process_samples != NULL,
                nvml->process_samples ? nvml->process_samples(device, NULL, &count, 0) : 0,
                "none with MIG enabled: energy is then shared without them");
    count = 0;
    report_call(report, nvml, index, "process list", nvml->lists[0] != NULL,
                nvml->lists[0] ? nvml->lists[0](device, &count, NULL) : 0,
                "run as root, or with the mig/monitor capability");
    code = nvml->gpm_support ? nvml->gpm_support(device, &support) : NVML_NOT_SUPPORTED;
    if (code == NVML_SUCCESS && !support.is_supported)
        code = NVML_NOT_SUPPORTED;
    report_call(report, nvml, index, "GPM activity", nvml->gpm_support != NULL, code,
                "none: needs Hopper or newer; nothing is lost but a finer estimate");
}

void nvml_check(const struct source_context *context, struct report *report)
{
    struct nvml_library nvml;
    struct error err = {""};
    uint32_t count = 0;
    char driver[NVML_DRIVER_BYTES] = "";
    int code, r = nvml_library_open(context->nvml_library, &nvml, &err);

    if (r < 0) {
        report_add(
            report, "nvidia library", VERDICT_MISSING,
            "install NVIDIA's driver (Debian: apt install nvidia-driver), or run the container with "
            "the NVIDIA runtime; nothing to do on a node without NVIDIA GPUs",
            "%s", err.text);
        return;
    }
    report_add(report, "nvidia library", VERDICT_OK, NULL, "%s is here", context->nvml_library);
    code = nvml.init();
    if (code != NVML_SUCCESS) {
        report_add(
            report, "nvidia driver", VERDICT_MISSING,
            code == NVML_NO_PERMISSION ? "run as a user that may open /dev/nvidia*"
            : code == NVML_LIB_RM_VERSION_MISMATCH
                ? "reboot, or reload the driver: it was upgraded under the running kernel module"
                : "load the driver: modprobe nvidia",
            "%s", nvml_library_error(&nvml, code));
        nvml_library_close(&nvml);
        return;
    }
    if (nvml.driver_version)
        (void)nvml.driver_version(driver, sizeof(driver));
    report_add(report, "nvidia driver", VERDICT_OK, NULL, "%.79s", driver);
    code = nvml.device_count(&count);
    if (code != NVML_SUCCESS || count == 0)
        report_add(report, "gpus", VERDICT_MISSING, "give the container a GPU",
                   "the driver shows none");
    for (uint32_t i = 0; i < MIN(count, (uint32_t)SAMPLE_GPU_MAX); i++)
        report_gpu(report, &nvml, i);
    (void)nvml.shutdown();
    nvml_library_close(&nvml);
}
