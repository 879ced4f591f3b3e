/* What `wattribute check` finds about names: cgroups, process events, runtimes, the kubelet. */
#pragma once

#include "app/options.h"
#include "app/report.h"
#include "model/host.h"

/* Asks each of them once, within some seconds. */
void check_identity(struct report *report, const struct host *host, const struct options *options);
