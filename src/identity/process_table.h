/*
 * Every process of the node and its owner, kept from scan to scan. Not thread-safe.
 *
 * A scan reads the directory of procfs, and the files only of processes that are new, or whose turn
 * it is, because processes do move between cgroups. The inode number of /proc/PID distinguishes
 * processes with the same pid: the kernel makes a new inode for each, and also after it has
 * reclaimed its caches; then all are read again. (A copy on a filesystem that reuses inodes, as
 * ext4 does, shows a reused pid only when its turn comes.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/host.h"
#include "model/workload.h"

enum { PROCESS_TABLE_MAX = 1 << 20, PROCESS_TABLE_OWNERS_MAX = 1 << 16 };

struct process_table;

/* A workload that has processes on this node now: one for each kind and id. */
struct process_table_owner {
    struct workload_owner owner; /* container and pod as its first process had them */
    uint32_t pid;                /* of one of its processes */
    uint32_t uid;                /* of a batch job's processes; UINT32_MAX: not read */
    uint32_t count;              /* processes */
};

/* Of the last scan. */
struct process_table_stats {
    uint64_t processes, owners;
    uint64_t files_read;
    uint64_t outside;  /* processes outside our cgroup namespace */
    uint64_t unread;   /* processes whose cgroups could not be read */
    uint64_t left_out; /* processes beyond the caps: without an owner */
};

/* The host stays the caller's and must outlive the table. 0 or -ENOMEM. */
int process_table_new(const struct host *host, struct process_table **ret_table);
void process_table_free(struct process_table *table);

/* Lower caps, for later scans. */
void process_table_set_caps(struct process_table *table, size_t processes, size_t owners);

typedef void process_table_appeared(void *context, const struct process_table_owner *owner);

/*
 * Ends with a call of `appeared` (may be NULL) for each owner that has its first process. 0 or
 * -errno: nothing was scanned, and the table stays as it was. With `all`, every process is read
 * again. May block as long as procfs does.
 */
int process_table_scan(struct process_table *table, bool all, process_table_appeared *appeared,
                       void *context);

/* The owners, by index from 0; NULL after the last. Valid until the next scan. */
const struct process_table_owner *process_table_owner_at(const struct process_table *table,
                                                         size_t index);
/* The owner's process with the next higher pid; 0 after the last. */
uint32_t process_table_next_pid(const struct process_table *table,
                                const struct process_table_owner *owner, uint32_t after_pid);

void process_table_get_stats(const struct process_table *table,
                             struct process_table_stats *ret_stats);

/* Why a scan with these stats is useless (not even our own process was read), or NULL. */
const char *process_table_error(const struct process_table_stats *stats);
