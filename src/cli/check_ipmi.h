/* The part of `wattribute check` that is about the node's BMC: whether it tells the node's power.
 */
#pragma once

#include "cli/report.h"
#include "host/host.h"

/* Asks it once: blocks for at most 5 s. */
void check_ipmi(struct report *report, const struct host *host);
