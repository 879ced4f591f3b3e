/* Parsers of what hwmon's files say. Pure. */
#pragma once

#include <stdint.h>

#include "core/span.h"

/* A chip that measures a node or its CPUs, by its driver's name. */
enum hwmon_chip {
    HWMON_OTHER,       /* a GPU, a power supply, a regulator, a battery, no power at all */
    HWMON_POWER_METER, /* ACPI: a node, or one rail of a Grace module */
    HWMON_AMD_ENERGY,  /* counters of every core and socket, told apart by label */
    HWMON_CPU_POWER,   /* a chip for each socket */
};

enum hwmon_chip hwmon_parse_chip(struct span name);

/* Power in uW. -EINVAL: not a number (negative ones, too). -ENODATA: a value that firmware and
 * drivers give where they know none. */
int hwmon_parse_power(struct span text, uint64_t *ret_uw);
int hwmon_parse_energy(struct span text, uint64_t *ret_uj); /* -EINVAL, -ERANGE */

enum hwmon_rail {
    HWMON_RAIL_MODULE, /* the other three, the GPU with its memory, and what the regulators lose */
    HWMON_RAIL_GRACE,  /* CPU, SysIO, and the memory of the socket */
    HWMON_RAIL_CPU,
    HWMON_RAIL_SYSIO,
    HWMON_RAIL_UNKNOWN,
};

/* "Grace Power Socket 1". -EINVAL: not of this form, so not a meter of a Grace. */
int hwmon_parse_rail(struct span text, enum hwmon_rail *ret_rail, uint32_t *ret_socket);

/* "Esocket1" of amd_energy. -EINVAL: another label. */
int hwmon_parse_socket(struct span text, uint32_t *ret_socket);
