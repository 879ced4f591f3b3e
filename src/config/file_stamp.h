/* What tells one version of a file from the next, without reading it: so that files which are
 * changed while the exporter runs, as Secrets of a pod are, are read again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct file_stamp {
    uint64_t inode, size_bytes;
    struct timespec changed;
    int error; /* it cannot be looked at */
};

/*
 * Looks at the file, through links. Returns whether it is another version than at the last look, or
 * has come or gone. To be called before the file is read, so that what changes meanwhile is found
 * at the next look. NULL: there is no such file.
 */
bool file_stamp_renew(struct file_stamp *mark, const char *path);
