/* The power of the node as its BMC tells it: DCMI over the kernel's IPMI driver, every 10 s. */
#pragma once

#include "sources/bmc/ipmi_dcmi.h"
#include "sources/bmc/ipmi_device.h"
#include "sources/source.h"

/* Asks once, for at most 5 s. -errno of ipmi_device_ask or dcmi_parse_power, with a text. */
int ipmi_ask_power(struct ipmi_device *device, struct dcmi_power *ret_power, struct error *err);

/* What the source's open does, with other system calls, which must outlive it. */
int ipmi_open_with(const struct source_context *context, const struct ipmi_calls *calls,
                   void **ret_state, struct error *err);

extern const struct source_ops ipmi_source;
