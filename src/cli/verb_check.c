/*
 * `wattribute check`: what this node offers, what is missing, and how to enable it. Its exit status
 * is for scripts: 0, there is something to measure; 1, there is nothing; 2, `serve` refuses the
 * flags, or a file that they name.
 */
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/check_emissions.h"
#include "cli/check_identity.h"
#include "cli/check_ipmi.h"
#include "cli/check_model.h"
#include "cli/check_rapl.h"
#include "cli/check_redfish.h"
#include "cli/check_sensors.h"
#include "cli/check_tariff.h"
#include "cli/report.h"
#include "config/source_switches.h"
#include "core/macros.h"
#include "host/host.h"
#include "host/proc.h"
#include "process/descriptors.h"
#include "sources/nvml/nvml_library.h"

enum { TEXT_CAP_BYTES = 1 << 20 };

/* One thing that NVML may or may not tell of a GPU. */
static void check_call(struct report *report, const struct nvml_library *nvml, uint32_t index,
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

static void check_gpu(struct report *report, const struct nvml_library *nvml, uint32_t index)
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
    check_call(
        report, nvml, index, "energy counter", nvml->energy_mj != NULL,
        nvml->energy_mj ? nvml->energy_mj(device, &energy_mj) : 0,
        "none: this board has no counter; its power is integrated instead, always estimated");
    check_call(report, nvml, index, "process samples", nvml->process_samples != NULL,
               nvml->process_samples ? nvml->process_samples(device, NULL, &count, 0) : 0,
               "none with MIG enabled: energy is then shared without them");
    count = 0;
    check_call(report, nvml, index, "process list", nvml->lists[0] != NULL,
               nvml->lists[0] ? nvml->lists[0](device, &count, NULL) : 0,
               "run as root, or with the mig/monitor capability");
    code = nvml->gpm_support ? nvml->gpm_support(device, &support) : NVML_NOT_SUPPORTED;
    if (code == NVML_SUCCESS && !support.is_supported)
        code = NVML_NOT_SUPPORTED;
    check_call(report, nvml, index, "GPM activity", nvml->gpm_support != NULL, code,
               "none: needs Hopper or newer; nothing is lost but a finer estimate");
}

static void check_nvml(struct report *report)
{
    struct nvml_library nvml;
    struct error err = {""};
    uint32_t count = 0;
    char driver[NVML_DRIVER_BYTES] = "";
    int code, r = nvml_library_open("libnvidia-ml.so.1", &nvml, &err);

    if (r < 0) {
        report_add(
            report, "nvidia library", VERDICT_MISSING,
            "install NVIDIA's driver (Debian: apt install nvidia-driver), or run the container with "
            "the NVIDIA runtime; nothing to do on a node without NVIDIA GPUs",
            "%s", err.text);
        return;
    }
    report_add(report, "nvidia library", VERDICT_OK, NULL, "libnvidia-ml.so.1 is here");
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
        check_gpu(report, &nvml, i);
    (void)nvml.shutdown();
    nvml_library_close(&nvml);
}

/* In a PID namespace of its own, the driver hides every process outside it. */
static void check_processes(struct report *report, const struct host *host)
{
    struct proc_reader proc;
    struct sample_process init;
    struct arena arena;
    int r;

    arena_init(&arena, 1 << 20);
    proc_reader_init(&proc, host);
    r = proc_identify(&proc, 1, &arena, &init);
    if (r < 0)
        report_add(report, "processes", VERDICT_MISSING,
                   "mount the host's /proc and set --path.procfs", "procfs does not show pid 1: %s",
                   strerror(-r));
    else if (getpid() == 1)
        report_add(report, "processes", VERDICT_LIMITED,
                   "run in the host's PID namespace (docker: --pid=host, Kubernetes: hostPID)",
                   "pid 1 is this program: the driver shows no process outside of its namespace");
    else
        report_add(
            report, "processes", VERDICT_OK, NULL,
            "pid 1 is %.80s; if that is not the node's init, run in the host's PID namespace",
            init.name);
    if (geteuid() != 0)
        report_add(
            report, "privileges", VERDICT_LIMITED, "run as root, or with CAP_SYS_PTRACE",
            "not root: names of other users' executables cannot be read, only their commands");
    arena_done(&arena);
}

static bool is_on(struct report *report, const struct source_switches *switches, const char *source)
{
    bool is_off = source_is_off(switches, source);

    if (is_off)
        report_add(report, source, VERDICT_LIMITED,
                   "to read it, leave out --collector.NAME=false and --no-collector.NAME",
                   "switched off by --collector.%s", source);
    return !is_off;
}

static void check_sources(struct report *report, const struct host *host,
                          const struct options *options, const struct source_switches *switches)
{
    if (is_on(report, switches, "nvml"))
        check_nvml(report);
    if (is_on(report, switches, "rapl"))
        check_rapl(report, host);
    if (is_on(report, switches, "hwmon"))
        check_hwmon(report, host, switches);
    if (is_on(report, switches, "cray"))
        check_cray(report, host, switches);
    if (is_on(report, switches, "ipmi"))
        check_ipmi(report, host);
    if (is_on(report, switches, "redfish"))
        check_redfish(report, options);
    if (is_on(report, switches, "cgroups"))
        check_resctrl(report, host);
}

int verb_check(const struct cli *cli)
{
    const struct options *options = &cli->options;
    _cleanup_free_ struct report *report = calloc(1, sizeof(*report));
    struct host host = {-1, -1, -1, NULL};
    struct source_switches switches;
    struct error err = {"out of memory"};
    struct buffer text;
    int status;

    if (!report || descriptors_prepare(&err) < 0 ||
        host_open(options->procfs_path, options->sysfs_path, options->rootfs_path, &host, &err) <
            0) {
        print_error(&err);
        return EXIT_USAGE;
    }
    source_switches_read(options, &switches);
    check_sources(report, &host, options, &switches);
    check_model(report, &host, options);
    check_emissions(report, options);
    check_tariff(report, options);
    check_processes(report, &host);
    check_identity(report, &host, options);
    buffer_init(&text, TEXT_CAP_BYTES);
    if (options->json)
        report_print_json(report, &text);
    else
        report_print_text(report, &text);
    status = verb_print(&text);
    if (status == EXIT_OK && report->is_refused)
        status = EXIT_USAGE;
    else if (status == EXIT_OK && !report_can_measure(report))
        status = EXIT_FAILED;
    buffer_done(&text);
    host_close(&host);
    return status;
}
