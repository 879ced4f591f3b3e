/*
 * The processes of a procfs: the numeric names of its directory, with what tells one process from
 * the next that has the same pid.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct process_list_item {
    uint64_t ino; /* of /proc/PID */
    uint32_t pid;
};

/* Sorted by pid, each once. */
struct process_list {
    struct process_list_item *items;
    size_t count, capacity;
    uint64_t left_out; /* those beyond the cap */
};

/* The kernel's answer where it could not make the inode (fs/proc/base.c, proc_fill_cache): it tells
 * nothing. */
enum { PROCESS_LIST_INO_UNKNOWN = 1 };

void process_list_done(struct process_list *list);

/* Reads the whole directory anew, with `buffer` (aligned as by malloc) for its entries. 0 or
 * -errno: then the list is of no use. */
int process_list_read(struct process_list *list, int procfs_fd, size_t cap, void *buffer,
                      size_t buffer_bytes);
