/*
 * Every process of the node and who owns it, kept from scan to scan.
 *
 * A scan reads the directory of procfs, and only of processes that are new (or whose turn it is,
 * because processes do move between cgroups) the files. The inode number of /proc/PID tells one
 * process from the next with the same pid: the kernel makes a new inode for each.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/host.h"
#include "model/workload.h"

enum { PROCESS_TABLE_MAX = 1 << 20, PROCESS_TABLE_OWNERS_MAX = 1 << 16 };

struct process_table;

/* A workload that has processes on this node now. */
struct process_table_owner {
    struct workload_owner owner;
    uint32_t pid;   /* of one of its processes */
    uint32_t uid;   /* of that process; UINT32_MAX: not read */
    uint32_t count; /* processes */
};

struct process_table_stats {
    uint64_t processes, owners;
    uint64_t files_read;    /* by the last scan */
    uint64_t outside;       /* processes outside of our cgroup namespace */
    uint64_t lines_skipped; /* of cgroup files, since the start */
};

int process_table_new(const struct host *host, struct process_table **ret_table);
void process_table_free(struct process_table *table);

/* Calls `appeared` for each owner that has its first process. 0 or -errno: then it was not, or not
 * wholly, scanned, and what was known before stays. With `all`, every process is read anew. */
int process_table_scan(struct process_table *table, bool all,
                       void (*appeared)(void *context, const struct process_table_owner *owner),
                       void *context);

/* NULL if the pid was not there at the last scan. Valid until the next one. */
const struct process_table_owner *process_table_find(const struct process_table *table,
                                                     uint32_t pid);

/* The owners that have processes: index from 0 on, NULL behind the last. */
const struct process_table_owner *process_table_owner_at(const struct process_table *table,
                                                         size_t index);
void process_table_get_stats(const struct process_table *table,
                             struct process_table_stats *ret_stats);
