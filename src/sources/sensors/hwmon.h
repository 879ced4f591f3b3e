/*
 * Power of the node, of Grace modules and of CPUs, from hwmon's chips (hwmon_scan.h).
 *
 * Most of them have no counter: their power is integrated. A value that stands still is not
 * believed, as a machine that runs never draws the same to the microwatt for long: the controller
 * behind it hangs, and says nothing until it moves again.
 */
#pragma once

#include "sources/source.h"

extern const struct source_ops hwmon_source;
