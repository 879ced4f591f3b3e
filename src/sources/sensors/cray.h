/*
 * Energy of the node, of its CPUs and of its memory, as the controller of a Cray's blade counts it.
 * It also counts the accelerators: those have meters of their own, and are left to them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/span.h"
#include "sources/source.h"

extern const struct source_ops cray_source;

/*
 * The files of /sys/cray/pm_counters, read as one: the controller writes all of them anew ten times
 * a second, and counts that in `freshness`.
 */
enum cray_file {
    CRAY_FRESHNESS,
    CRAY_STARTUP, /* how often the controller was started: its counters may begin anew then */
    CRAY_POWER,   /* the node with its accelerators, in W */
    CRAY_ENERGY,  /* in J, as all that follow */
    CRAY_CPU_ENERGY,
    CRAY_MEMORY_ENERGY,
    CRAY_FILES,
};

struct cray_value {
    bool valid;
    uint64_t number;
    uint64_t t_us; /* since the epoch, by the controller's clock; 0: not in the file */
};

struct cray_counters {
    int dir_fd;
    int fds[CRAY_FILES]; /* -1: is not there */
    /* fs_reread; tests change files between two calls. */
    int (*read_kept)(int fd, char *buffer, size_t size_bytes, size_t *ret_len);
};

/* "873 W 1734094386462336 us"; without a unit, only "873". -EINVAL, or -ERANGE: beyond what a node
 * can draw or count. */
int cray_parse(enum cray_file file, struct span text, struct cray_value *ret_value);

/* 0, -ENODEV: not a Cray, or -errno: none of its energy counters can be opened. */
int cray_counters_open(int sysfs_fd, struct cray_counters *ret_counters);
void cray_counters_close(struct cray_counters *counters);

/* Opens files that were missing, or stopped answering, at the last attempt. Returns as the first.
 */
int cray_counters_reopen(struct cray_counters *counters);

/*
 * Reads all files of one freshness; those without an answer are not valid. -EAGAIN: it changed
 * during each of three reads. A file that is gone is closed.
 */
int cray_counters_read(struct cray_counters *counters, struct cray_value ret_values[CRAY_FILES]);
