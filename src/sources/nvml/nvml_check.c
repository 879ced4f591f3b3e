/* What `wattribute check` reports of NVIDIA GPUs. */
#include <stdio.h>

#include "core/macros.h"
#include "model/report.h"
#include "sources/gpu_counters.h"
#include "sources/nvml/nvml.h"

/* Whether a function of the driver works for a GPU. */
static void report_function(struct report *report, const struct nvml_library *nvml, uint32_t index,
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

/* A board in MIG mode, and what is read of each MIG device. */
struct mig_report {
    bool is_on;
    uint32_t found;
    int list_code, memory_code; /* of the last device */
};

static void report_mig_device(struct report *report, const struct nvml_library *nvml,
                              uint32_t index, uint32_t slot, struct nvml_device *device,
                              struct mig_report *mig)
{
    struct nvml_memory_v2 memory = {.version = NVML_VERSION(struct nvml_memory_v2, 2)};
    uint32_t gpu_instance = 0, compute_instance = 0, count = 0;
    char uuid[NVML_UUID_BYTES] = "", name[NVML_NAME_BYTES] = "", what[64];

    if (!nvml->gpu_instance || nvml->gpu_instance(device, &gpu_instance) != NVML_SUCCESS ||
        !nvml->compute_instance ||
        nvml->compute_instance(device, &compute_instance) != NVML_SUCCESS)
        return;
    (void)nvml->uuid(device, uuid, sizeof(uuid));
    if (nvml->name)
        (void)nvml->name(device, name, sizeof(name));
    mig->found++;
    mig->list_code = nvml->lists[0] ? nvml->lists[0](device, &count, NULL) : NVML_NOT_SUPPORTED;
    mig->memory_code = nvml->memory_v2 ? nvml->memory_v2(device, &memory) : NVML_NOT_SUPPORTED;
    snprintf(what, sizeof(what), "gpu %u: MIG device %u", index, slot);
    report_add(report, what, VERDICT_OK, NULL, "%.40s, %.90s, GPU instance %u, compute instance %u",
               nvml_mig_profile(name), uuid, gpu_instance, compute_instance);
}

static struct mig_report report_mig(struct report *report, const struct nvml_library *nvml,
                                    uint32_t index, struct nvml_device *device)
{
    struct mig_report mig = {.list_code = NVML_NOT_SUPPORTED, .memory_code = NVML_NOT_SUPPORTED};
    uint32_t mode = 0, pending = 0, slots = 0, slices, sm_count;
    char what[64];

    if (!nvml->mig_mode || nvml->mig_mode(device, &mode, &pending) != NVML_SUCCESS ||
        mode != NVML_MIG_ENABLED)
        return mig;
    mig.is_on = true;
    nvml_mig_size(nvml, device, &slices, &sm_count);
    snprintf(what, sizeof(what), "gpu %u: MIG mode", index);
    report_add(report, what, VERDICT_OK, NULL, "enabled, %u slices", slices);
    if (nvml->mig_devices_max)
        (void)nvml->mig_devices_max(device, &slots);
    for (uint32_t i = 0; nvml->mig_device && i < MIN(slots, (uint32_t)SAMPLE_INSTANCES_MAX); i++) {
        struct nvml_device *mig_device;

        if (nvml->mig_device(device, i, &mig_device) == NVML_SUCCESS)
            report_mig_device(report, nvml, index, i, mig_device, &mig);
    }
    snprintf(what, sizeof(what), "gpu %u: MIG devices", index);
    if (mig.found == 0)
        report_add(report, what, VERDICT_LIMITED,
                   "create instances (nvidia-smi mig -cgi PROFILE -C); in a container, set "
                   "NVIDIA_MIG_MONITOR_DEVICES=all and run it privileged",
                   "none is visible: all energy of this board is unattributed or idle");
    return mig;
}

/* Each MIG device shows its own processes and memory; the board shows all, to whoever may see. */
static void report_mig_access(struct report *report, const struct nvml_library *nvml,
                              uint32_t index, struct nvml_device *device,
                              const struct mig_report *mig)
{
    uint32_t count = 0;
    int code = nvml->lists[0] ? nvml->lists[0](device, &count, NULL) : NVML_NOT_SUPPORTED;
    char what[64];

    snprintf(what, sizeof(what), "gpu %u: process samples", index);
    report_add(
        report, what, VERDICT_LIMITED,
        "none in MIG mode: energy is divided among instances by the activity of their units or, "
        "without GPM, by their slices",
        "the driver has none in MIG mode");
    snprintf(what, sizeof(what), "gpu %u: process list", index);
    if (code == NVML_SUCCESS || code == NVML_INSUFFICIENT_SIZE)
        report_add(report, what, VERDICT_OK, NULL, "available, of all instances");
    else if (mig->list_code == NVML_SUCCESS || mig->list_code == NVML_INSUFFICIENT_SIZE)
        report_add(report, what, VERDICT_LIMITED,
                   "to see all instances, give the mig/monitor capability: run as root or in a "
                   "privileged container, or set NVIDIA_MIG_MONITOR_DEVICES=all",
                   "only of the MIG devices above: %s", nvml_library_error(nvml, code));
    else
        report_add(report, what, VERDICT_LIMITED,
                   "give the mig/monitor capability: run as root or in a privileged container, or "
                   "set NVIDIA_MIG_MONITOR_DEVICES=all",
                   "%s", nvml_library_error(nvml, code));
    if (mig->found > 0)
        report_function(
            report, nvml, index, "instance memory", nvml->memory_v2, mig->memory_code,
            "none: the series of the instances' memory are missing, and a process that is "
            "not listed goes unnoticed");
}

static void report_gpm(struct report *report, const struct nvml_library *nvml, uint32_t index,
                       struct nvml_device *device, bool is_mig, bool *ret_has_gpm)
{
    struct nvml_gpm_support support = {.version = NVML_GPM_VERSION};
    int code = nvml->gpm_support ? nvml->gpm_support(device, &support) : NVML_NOT_SUPPORTED;

    if (code == NVML_SUCCESS && !support.is_supported)
        code = NVML_NOT_SUPPORTED;
    *ret_has_gpm = code == NVML_SUCCESS;
    report_function(report, nvml, index, is_mig ? "GPM of instances" : "GPM activity",
                    is_mig ? nvml->gpm_mig_sample && nvml->gpm_support : nvml->gpm_support != NULL,
                    code,
                    is_mig ? "none: needs Hopper or newer; energy is divided by the slices of "
                             "instances with a process, listed or not"
                           : "none: needs Hopper or newer; DCGM has it of older boards, see dcgm "
                             "below; nothing is lost but a finer estimate");
}

static bool is_shared(const struct nvml_library *nvml, struct nvml_device *device)
{
    for (size_t i = 0; i < ARRAY_SIZE(nvml->lists); i++) {
        uint32_t count = 0;

        if (nvml->lists[i] && nvml->lists[i](device, &count, NULL) == NVML_INSUFFICIENT_SIZE &&
            count > 1)
            return true;
    }
    return false;
}

static void report_vgpus(struct report *report, const struct nvml_library *nvml, uint32_t index,
                         struct nvml_device *device)
{
    uint32_t vgpus[SAMPLE_VGPUS_MAX], count = SAMPLE_VGPUS_MAX;
    int mode = 0, code;
    char what[64];

    if (!nvml->virtualization_mode || nvml->virtualization_mode(device, &mode) != NVML_SUCCESS ||
        mode != NVML_VIRTUALIZATION_HOST_VGPU)
        return;
    code = nvml->active_vgpus ? nvml->active_vgpus(device, &count, vgpus) : NVML_NOT_SUPPORTED;
    snprintf(what, sizeof(what), "gpu %u: vGPU host", index);
    if (code != NVML_SUCCESS) {
        report_add(report, what, VERDICT_LIMITED,
                   "run as root, with the host driver of NVIDIA's vGPU software", "%s",
                   nvml_library_error(nvml, code));
        return;
    }
    report_add(report, what, VERDICT_OK, NULL, "%u active vGPUs", count);
    for (uint32_t i = 0; i < MIN(count, (uint32_t)SAMPLE_VGPUS_MAX); i++) {
        char vm[NVML_UUID_BYTES] = "", uuid[NVML_UUID_BYTES] = "";
        int type = 0;

        if (nvml->vgpu_vm)
            (void)nvml->vgpu_vm(vgpus[i], vm, sizeof(vm), &type);
        if (nvml->vgpu_uuid)
            (void)nvml->vgpu_uuid(vgpus[i], uuid, sizeof(uuid));
        snprintf(what, sizeof(what), "gpu %u: vGPU %u", index, vgpus[i]);
        report_add(report, what, VERDICT_OK, NULL, "%.90s, of the machine %.90s", uuid, vm);
    }
    report_function(report, nvml, index, "vGPU samples",
                    nvml->vgpu_samples || nvml->vgpu_samples_v1, NVML_SUCCESS, NULL);
}

static void report_gpu(const struct source_context *context, struct report *report,
                       const struct nvml_library *nvml, uint32_t index)
{
    struct nvml_device *device;
    char uuid[NVML_UUID_BYTES] = "", name[NVML_NAME_BYTES] = "", what[64];
    struct mig_report mig;
    unsigned long long energy_mj;
    uint32_t count = 0;
    bool has_gpm;
    int code = nvml->device_by_index(index, &device);

    snprintf(what, sizeof(what), "gpu %u", index);
    if (code != NVML_SUCCESS) {
        report_add(report, what, VERDICT_FAILED,
                   "run as a user that may open /dev/nvidia*, or give the container this GPU", "%s",
                   nvml_library_error(nvml, code));
        return;
    }
    (void)nvml->uuid(device, uuid, sizeof(uuid));
    if (nvml->name)
        (void)nvml->name(device, name, sizeof(name));
    report->gpus++;
    report_add(report, what, VERDICT_OK, NULL, "%.90s, %.90s", name, uuid);
    report_function(
        report, nvml, index, "energy counter", nvml->energy_mj,
        nvml->energy_mj ? nvml->energy_mj(device, &energy_mj) : 0,
        "none: this board has no counter; its power is integrated instead, always estimated");
    mig = report_mig(report, nvml, index, device);
    if (mig.is_on) {
        report_mig_access(report, nvml, index, device, &mig);
    } else {
        report_function(report, nvml, index, "process samples", nvml->process_samples,
                        nvml->process_samples ? nvml->process_samples(device, NULL, &count, 0) : 0,
                        "none: energy is then shared without them");
        count = 0;
        report_function(report, nvml, index, "process list", nvml->lists[0],
                        nvml->lists[0] ? nvml->lists[0](device, &count, NULL) : 0, "run as root");
        report->has_shared_gpu |= is_shared(nvml, device);
    }
    report_gpm(report, nvml, index, device, mig.is_on, &has_gpm);
    gpu_counters_want(context->counters, index, has_gpm || mig.is_on ? NULL : uuid);
    report_vgpus(report, nvml, index, device);
}

static void report_driver(const struct source_context *context, struct report *report,
                          const struct nvml_library *nvml)
{
    char driver[NVML_DRIVER_BYTES] = "";
    uint32_t count = 0;
    int code = nvml->init();

    if (code != NVML_SUCCESS) {
        report_add(
            report, "nvidia driver",
            code == NVML_DRIVER_NOT_LOADED ? VERDICT_MISSING : VERDICT_FAILED,
            code == NVML_NO_PERMISSION ? "run as a user that may open /dev/nvidia*"
            : code == NVML_LIB_RM_VERSION_MISMATCH
                ? "reboot, or reload the driver: it was upgraded under the running kernel module"
                : "load the driver: modprobe nvidia",
            "%s", nvml_library_error(nvml, code));
        return;
    }
    if (nvml->driver_version)
        (void)nvml->driver_version(driver, sizeof(driver));
    report_add(report, "nvidia driver", VERDICT_OK, NULL, "%.79s", driver);
    code = nvml->device_count(&count);
    if (code != NVML_SUCCESS || count == 0)
        report_add(report, "gpus", code == NVML_SUCCESS ? VERDICT_MISSING : VERDICT_FAILED,
                   "give the container a GPU", "%s",
                   code == NVML_SUCCESS ? "the driver shows none" : nvml_library_error(nvml, code));
    for (uint32_t i = 0; i < MIN(count, (uint32_t)SAMPLE_GPU_MAX); i++)
        report_gpu(context, report, nvml, i);
    (void)nvml->shutdown();
}

void nvml_check(const struct source_context *context, struct report *report)
{
    struct nvml_library nvml;
    struct error err = {""};

    if (nvml_library_open(context->nvml_library, &nvml, &err) < 0) {
        report_add(
            report, "nvidia library", VERDICT_MISSING,
            "install NVIDIA's driver (Debian: apt install nvidia-driver), or run the container with "
            "the NVIDIA runtime; nothing to do on a node without NVIDIA GPUs",
            "%s", err.text);
        return;
    }
    report_add(report, "nvidia library", VERDICT_OK, NULL, "%s is here", context->nvml_library);
    report_driver(context, report, &nvml);
    nvml_library_close(&nvml);
}
