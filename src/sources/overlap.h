/*
 * Overlap: what another source measures already. Energy that is booked must not be counted by two
 * meters, and RAPL is finer than what other chips say of a CPU.
 */
#pragma once

#include <stdbool.h>

#include "host/host.h"
#include "model/meter.h"
#include "sources/source.h"

/* RAPL has zones of this kind, METER_PACKAGE or METER_DRAM, and lets us read them. What is switched
 * off measures nothing. */
bool overlap_rapl_measures(const struct host *host, const struct source_switches *switches,
                           enum meter_kind kind);

/* A Cray's controller counts the energy of the CPUs. */
bool overlap_cray_measures_package(const struct host *host, const struct source_switches *switches);
