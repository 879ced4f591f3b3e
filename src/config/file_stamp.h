/* Tells versions of a file apart without reading it, so that files which change while the exporter
 * runs, such as a pod's Secrets, are read again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct file_stamp {
    uint64_t inode, size_bytes;
    struct timespec changed;
    int error; /* of stat() */
};

/* Returns whether the file changed, came or went since the last call; follows links. Call it before
 * reading the file: a change in between is then found by the next call. NULL: no file. */
bool file_stamp_update(struct file_stamp *stamp, const char *path);
