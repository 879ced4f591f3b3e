/*
 * Which of hwmon's chips measure the node, a module or the CPUs.
 *
 * GPUs have their own meters, and what a power supply, a regulator or a shunt measures nobody knows
 * without the board's plan: they are left alone. Names and labels are read, never a measured value:
 * that may take a while.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "host/host.h"
#include "model/meter.h"
#include "sources/source.h"

enum { HWMON_METERS_MAX = 64, HWMON_PATH_BYTES = 64 };

struct hwmon_found {
    enum meter_kind kind;
    char id[12];                    /* the socket, or "hwmon" of a node */
    const char *what;               /* for people; a literal */
    bool counts;                    /* energy in uJ; else power in uW */
    char path[HWMON_PATH_BYTES];    /* below sysfs */
    char refresh[HWMON_PATH_BYTES]; /* of the file that says how often it changes, in ms; or "" */
};

struct hwmon_scan {
    struct hwmon_found found[HWMON_METERS_MAX]; /* kind and id are once in it */
    size_t count;
    size_t repeated;  /* left out because kind and id were there already */
    size_t elsewhere; /* left out because another source has finer meters of it */
};

/* What others measure is left to them, unless they are off; `switches` may be NULL. */
void hwmon_scan(const struct host *host, const struct source_switches *switches,
                struct hwmon_scan *ret_scan);

/* From here on: parsers of what its files say. Pure. */

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
