/* Overlap: what another source measures already. Energy must not be booked from two meters, and
 * RAPL is finer than other sensors of a CPU. */
#pragma once

#include <stdbool.h>

#include "host/host.h"
#include "model/meter.h"
#include "sources/source.h"

/* RAPL has readable zones of this kind, METER_PACKAGE or METER_DRAM, and is not switched off. */
bool overlap_rapl_measures(const struct host *host, const struct source_switches *switches,
                           enum meter_kind kind);

/* RAPL does, or a Cray's controller counts the energy of the CPUs. */
bool overlap_measures_package(const struct host *host, const struct source_switches *switches);
