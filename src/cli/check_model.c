#include "cli/check_model.h"

#include <errno.h>
#include <string.h>

#include "config/source_switches.h"
#include "sources/estimate/cpu_power.h"
#include "sources/overlap.h"

static unsigned whole_watts(uint64_t power_uw)
{
    return (unsigned)((power_uw + 500000) / 1000000);
}

static void check_table(struct report *report, const struct host *host, bool is_on)
{
    struct cpu_identity cpu = {0};
    struct cpu_power power;
    int r = cpu_power_of_host(host, &cpu, &power);

    report->has_model = r == 0 && is_on;
    if (r == 0)
        report_add(report, "model", is_on ? VERDICT_OK : VERDICT_MISSING,
                   is_on ? NULL : "where no meter measures the processors: --model.cpu=auto",
                   "%s%s, %u CPU%s: %u W idle, %u W busy",
                   is_on ? "" : "off; known for this machine: ", power.generation,
                   (unsigned)cpu.cpus, PLURAL_S(cpu.cpus), whole_watts(power.idle_uw),
                   whole_watts(power.full_uw));
    else
        report_add(report, "model", VERDICT_MISSING,
                   "where no meter measures the processors: --model.idle-watts and "
                   "--model.full-watts",
                   "%swhat this processor draws is not known: %s family %u model %u, '%s'",
                   is_on ? "" : "off; ", cpu.vendor, (unsigned)cpu.family, (unsigned)cpu.model,
                   cpu.name);
}

void check_model(struct report *report, const struct host *host, const struct options *options)
{
    struct source_switches switches;
    struct source_estimate model;

    source_switches_read(options, &switches);
    source_switches_read_model(options, &model);
    if (!model.is_on && overlap_rapl_measures(host, &switches, METER_PACKAGE))
        return;
    if (model.is_on && !model.by_table) {
        report->has_model = true;
        report_add(report, "model", VERDICT_OK, NULL, "as given: %u W idle, %u W busy",
                   whole_watts(model.idle_uw), whole_watts(model.full_uw));
    } else {
        check_table(report, host, model.is_on);
    }
}
