/* What `wattribute check` finds about names: cgroups, process events, runtimes, the kubelet. */
#pragma once

#include "config/options.h"
#include "host/host.h"
#include "model/report.h"

/* Asks each of them once, within some seconds. */
void check_identity(struct report *report, const struct host *host, const struct options *options);
