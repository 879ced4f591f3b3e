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

#include "host/host.h"
#include "model/meter.h"
#include "sources/switches.h"

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
