/*
 * Another job of the front, with --redfish.url: a thread that asks the node's BMC for its power and
 * hands the readings to the collector. What goes wrong with it costs these; the front serves on.
 */
#pragma once

#include <stdint.h>

#include "config/redfish_config.h"
#include "core/error.h"

struct front_redfish;

/*
 * Reads the files and looks up the host, so call it while that is possible. The first question is
 * asked after `delay_us`. It takes over `power_fd`, its end of the channel for readings, also on
 * failure. 0 or -errno: then there are no readings.
 */
int front_redfish_open(const struct redfish_flags *flags, uint64_t delay_us, int power_fd,
                       struct front_redfish **ret_redfish, struct error *err);

/* Starts the thread, which puts itself into its sandbox first. */
int front_redfish_start(struct front_redfish *redfish, struct error *err);

/* Asks the thread to log out and end, and does not wait. Accepts NULL. */
void front_redfish_stop(struct front_redfish *redfish);

/* Waits for it, at most two seconds. Accepts NULL. */
void front_redfish_close(struct front_redfish *redfish);
