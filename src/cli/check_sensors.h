/* What `wattribute check` finds about power: hwmon's chips and a Cray's counters; and about memory
 * traffic, by which the energy of memory is divided. */
#pragma once

#include "cli/report.h"
#include "host/host.h"
#include "sources/switches.h"

/* Reads each of them once, as long as that takes. */
void check_hwmon(struct report *report, const struct host *host,
                 const struct source_switches *switches);

/* Says nothing on a machine that is not a Cray. */
void check_cray(struct report *report, const struct host *host,
                const struct source_switches *switches);

/* Says nothing on a machine where resctrl is not mounted, or cannot count. */
void check_resctrl(struct report *report, const struct host *host);
