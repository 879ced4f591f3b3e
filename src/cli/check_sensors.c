#include "cli/check_sensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/macros.h"
#include "sources/overlap.h"
#include "sources/resctrl/resctrl.h"
#include "sources/sensors/cray_counters.h"
#include "sources/sensors/hwmon_parse.h"
#include "sources/sensors/hwmon_scan.h"

static void check_meter(struct report *report, const struct host *host,
                        const struct hwmon_found *found)
{
    char what[64], text[64];
    struct span said = {text, 0};
    uint64_t value;
    int r = fs_read_at(host->sysfs_fd, found->path, text, sizeof(text), &said.len);

    snprintf(what, sizeof(what), "hwmon: %s %s", meter_words[found->kind],
             found->kind == METER_NODE ? "" : found->id);
    if (r == 0)
        r = found->counts ? hwmon_parse_energy(said, &value) : hwmon_parse_power(said, &value);
    report->meters += r == 0;
    if (r == 0 && found->counts)
        report_add(report, what, VERDICT_OK, NULL, "%s, counter %s", found->what, found->path);
    else if (r == 0)
        report_add(report, what, VERDICT_OK, NULL, "%s, %" PRIu64 " W, %s", found->what,
                   value / 1000000, found->path);
    else
        report_add(report, what, VERDICT_MISSING,
                   r == -EACCES ? "run as root" : "look for newer firmware of the board",
                   "%s, %s: %s", found->what, found->path,
                   r == -EACCES ? strerror(-r) : "no usable value");
}

void check_hwmon(struct report *report, const struct host *host,
                 const struct source_switches *switches)
{
    struct hwmon_scan scan;

    hwmon_scan(host, switches, &scan);
    for (size_t i = 0; i < scan.count; i++)
        check_meter(report, host, &scan.found[i]);
    if (scan.repeated > 0)
        report_add(report, "hwmon", VERDICT_LIMITED, NULL,
                   "chips left alone, as another says that it measures the same: %zu",
                   scan.repeated);
    if (scan.elsewhere > 0)
        report_add(report, "hwmon", VERDICT_OK, NULL,
                   "chips left alone, as their CPUs have finer meters: %zu", scan.elsewhere);
    if (scan.count + scan.elsewhere == 0)
        report_add(report, "hwmon", VERDICT_MISSING,
                   "modprobe acpi_power_meter (NVIDIA Grace: boot with "
                   "acpi_power_meter.force_cap_on=y); nothing to do where the firmware has none",
                   "no chip measures the node, a module or the CPUs");
}

static void check_counter(struct report *report, enum cray_file file,
                          const struct cray_value *value, bool elsewhere)
{
    char what[64];

    snprintf(what, sizeof(what), "cray: %s", cray_file_names[file]);
    report->meters += value->valid && !elsewhere && file != CRAY_POWER;
    if (!value->valid)
        report_add(report, what, VERDICT_LIMITED, "look at the file's mode, and the blade's log",
                   "no usable value in cray/pm_counters/%s", cray_file_names[file]);
    else if (elsewhere)
        report_add(report, what, VERDICT_OK, NULL, "left alone: RAPL is finer");
    else
        report_add(report, what, VERDICT_OK, NULL, "%" PRIu64 " %s", value->number,
                   file == CRAY_POWER ? "W" : "J");
}

void check_cray(struct report *report, const struct host *host,
                const struct source_switches *switches)
{
    struct cray_counters counters;
    struct cray_value values[CRAY_FILES] = {0};
    int r = cray_counters_open(host->sysfs_fd, &counters);

    if (r == -ENODEV)
        return;
    if (r == 0) {
        r = cray_counters_read(&counters, values);
        cray_counters_close(&counters);
    }
    if (r < 0) {
        report_add(report, "cray", VERDICT_MISSING, r == -EACCES ? "run as root" : NULL,
                   "cray/pm_counters cannot be read: %s", strerror(-r));
        return;
    }
    check_counter(report, CRAY_POWER, &values[CRAY_POWER], false);
    check_counter(report, CRAY_ENERGY, &values[CRAY_ENERGY], false);
    check_counter(report, CRAY_CPU_ENERGY, &values[CRAY_CPU_ENERGY],
                  overlap_rapl_measures(host, switches, METER_PACKAGE));
    check_counter(report, CRAY_MEMORY_ENERGY, &values[CRAY_MEMORY_ENERGY],
                  overlap_rapl_measures(host, switches, METER_DRAM));
}

void check_resctrl(struct report *report, const struct host *host)
{
    struct resctrl *resctrl;
    size_t count;

    if (resctrl_new(host, &resctrl) < 0)
        return;
    (void)resctrl_read(resctrl, 0);
    if (resctrl_read(resctrl, USEC_PER_SEC)) { /* what is counted can only be seen twice */
        count = resctrl_container_count(resctrl);
        if (count > 0)
            report_add(report, "memory traffic", VERDICT_OK, NULL,
                       "fs/resctrl has groups of containers: %zu", count);
        else
            report_add(report, "memory traffic", VERDICT_LIMITED,
                       "let the container runtime make them: docs/power.md",
                       "fs/resctrl counts, but has no groups of containers");
    }
    resctrl_free(resctrl);
}
