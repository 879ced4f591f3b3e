/*
 * Lets real processes stand in for those of a trace: a file with lines `OLD NEW`, read again when
 * it changes. A pid that is not in it stays as it is, and so does every pid without a file.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct pids {
    char *path;
    struct stat stat;
    struct pids_pair {
        uint64_t from;
        uint64_t to;
    } * pairs;
    size_t count;
};

/* Looks at the file; a NULL path is no file. */
void pids_refresh(struct pids *pids, const char *path);
uint32_t pids_map(const struct pids *pids, uint64_t pid);
void pids_destroy(struct pids *pids);
