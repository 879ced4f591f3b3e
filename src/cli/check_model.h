/* What `wattribute check` finds about the model of a machine without a meter of its processors. */
#pragma once

#include "cli/report.h"
#include "config/options.h"
#include "host/host.h"

/* Says nothing where it is off and RAPL measures the processors. */
void check_model(struct report *report, const struct host *host, const struct options *options);
