/* The part of `wattribute check` that is about the node's BMC on the network. */
#pragma once

#include "cli/report.h"
#include "config/options.h"

/* If --redfish.url is given, logs in, asks once, and logs out: blocks for some seconds. */
void check_redfish(struct report *report, const struct options *options);
