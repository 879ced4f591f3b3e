/* What `wattribute check` finds about names: cgroups, process events, runtimes, the kubelet. */
#pragma once

#include "cli/report.h"
#include "config/options.h"
#include "host/host.h"

/* Asks each of them once, within some seconds. */
void check_identity(struct report *report, const struct host *host, const struct options *options);
