/* The part of `wattribute check` that is about the node's BMC on the network. */
#pragma once

#include "config/options.h"
#include "model/report.h"

/* If --redfish.url is given, logs in, asks once, and logs out: blocks for some seconds. */
void check_redfish(struct report *report, const struct options *options);
