/*
 * Power of the node, of Grace modules and of CPUs, from hwmon's chips.
 *
 * GPUs have meters of their own, and what a power supply, a regulator or a shunt measures is
 * unknown without the board's plan: they are left alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "model/meter.h"
#include "sources/source.h"

extern const struct source_ops hwmon_source;

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

/* Finds the chips that measure the node, a module or the CPUs. Leaves to other sources what they
 * measure, unless they are off; `switches` may be NULL. Reads names and labels, never a measured
 * value, which may take a while. */
void hwmon_scan(const struct host *host, const struct source_switches *switches,
                struct hwmon_scan *ret_scan);

/* From here on: parsers of its files. Pure. */

/* Power in uW. -EINVAL: not a number (negative ones, too). -ENODATA: a value by which firmware and
 * drivers mean "unknown". */
int hwmon_parse_power(struct span text, uint64_t *ret_uw);

/* What an ACPI power meter of a Grace measures. */
struct hwmon_rail {
    enum meter_kind kind; /* METER_KINDS: an unknown rail */
    const char *what;
    uint32_t socket;
};

/* "Grace Power Socket 1". -EINVAL: not of this form, so not a meter of a Grace. */
int hwmon_parse_rail(struct span text, struct hwmon_rail *ret_rail);

/* "Esocket1" of amd_energy. -EINVAL: another label. */
int hwmon_parse_socket(struct span text, uint32_t *ret_socket);
