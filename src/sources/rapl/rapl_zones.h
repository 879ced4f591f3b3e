/*
 * The zones of powercap's RAPL: which of the directories in /sys/class/powercap are meters to be
 * counted.
 *
 * Directories are numbered in the order of registration and say nothing; the file `name` in them
 * does. Every socket has a zone that is plainly called "dram": whose it is, its parent says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/span.h"
#include "model/meter.h"

enum { RAPL_ZONES_MAX = 64, RAPL_ID_BYTES = 32, RAPL_DIRECTORY_BYTES = 48 };

/* Where a meter sits. */
struct rapl_place {
    uint32_t socket;
    bool has_die; /* the packages of this node are counted by die */
    uint32_t die;
};

/* The meter's id: "0", or "0-die-1". */
void rapl_place_id(const struct rapl_place *place, char id[RAPL_ID_BYTES]);

/* AMD's processors and their kin (Hygon) have RAPL with traps of its own; told by the text of
 * /sys/devices/system/cpu/modalias. */
bool rapl_modalias_is_amd(struct span modalias);
bool rapl_is_amd(int sysfs_fd);

/* "intel-rapl:0:1" or "intel-rapl-mmio:0"; the numbers are hexadecimal. */
struct rapl_directory {
    bool is_mmio;
    uint32_t zone;
    bool is_below; /* it is below a zone */
    uint32_t below;
};

/* 0, or -EINVAL for anything else, also for a control type itself. */
int rapl_parse_directory(struct span text, struct rapl_directory *ret_directory);

/* A zone's name: 0, or -EINVAL for one that is not known. `place` is that of package and psys; the
 * others have none of their own. */
int rapl_parse_name(struct span text, enum meter_kind *ret_kind, struct rapl_place *ret_place);

struct rapl_zone {
    enum meter_kind kind;
    char id[RAPL_ID_BYTES];
    char directory[RAPL_DIRECTORY_BYTES]; /* below class/powercap */
};

struct rapl_zones {
    struct rapl_zone items[RAPL_ZONES_MAX];
    size_t count;
    bool are_hidden; /* there are zones, but what they link to is not there */
};

/* Reads the directory and the names. 0 or -errno; that there are no zones is no error. Of several
 * with one kind and id, the first is to be counted. */
int rapl_zones_find(int sysfs_fd, bool is_amd, struct rapl_zones *ret_zones);
