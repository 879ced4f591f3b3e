/* What `wattribute check` finds about RAPL: the meters of processors and memory. */
#pragma once

#include "cli/report.h"
#include "host/host.h"

/* Reads each meter twice, some milliseconds apart. */
void check_rapl(struct report *report, const struct host *host);
