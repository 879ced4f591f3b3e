/*
 * The processes of a command: all that descend from this process, which adopts those whose parent
 * has ended (PR_SET_CHILD_SUBREAPER). One that comes and goes between two scans is not seen; what
 * it used is in the sum once somebody has waited for it. Of one that nobody waits for (SIGCHLD is
 * ignored) it is what was last seen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "run/command.h"

enum { FAMILY_MAX = 65536, FAMILY_NAME_BYTES = 64 };

struct relative {
    pid_t pid, parent;
    uint64_t start_ticks; /* since boot */
    char name[FAMILY_NAME_BYTES];
    uint64_t cpu_us;        /* its own */
    uint64_t waited_cpu_us; /* of those that it has waited for */
    uint64_t gone_cpu_us;   /* of its children that are gone, as they were last seen */
    uint64_t gone_after_us; /* and how long before their end that was, in all */
    uint64_t memory_bytes;  /* that no other process shares */
    bool is_alive;
    bool is_reaped; /* by this process, when it and those that it waited for had used: */
    uint64_t reaped_cpu_us;
    uint64_t scan; /* that saw it last */
};

struct family {
    int proc_fd;                   /* the real /proc, whatever --path.procfs is */
    const struct command *waiting; /* children of ours that do not run yet, and do not count */
    size_t waiting_count;
    struct relative *items;
    size_t count, capacity;
    uint64_t scans;
    uint64_t scanned_us;    /* monotonic */
    uint64_t reaped_cpu_us; /* of children that it has waited for, and that are not in `items` */
    bool is_cut;            /* there were more than FAMILY_MAX, or no memory for them */
};

/* Adopts orphans from now on. 0 or -errno. */
int family_init(struct family *family);
void family_done(struct family *family);

/* A process has been started, or has ended but was not waited for: notes what it is and has used.
 */
void family_note(struct family *family, pid_t pid);

/* A child was waited for: what it and those that it had waited for have used. */
void family_reap(struct family *family, pid_t pid, uint64_t cpu_us);

/* Finds all of them. */
void family_scan(struct family *family);

/* What all of them have used, those that are gone, too; and the memory of those that are there. */
uint64_t family_cpu_us(const struct family *family);
uint64_t family_memory_bytes(const struct family *family);

/* What that may lack: how long those ran that nobody waited for, after they were last seen. */
uint64_t family_missed_us(const struct family *family);

/* One that was ever seen; NULL: nobody of the family had this pid. */
const struct relative *family_find(const struct family *family, pid_t pid);
size_t family_count_alive(const struct family *family);

/* Pure. From /proc/PID/stat. 0 or -EBADMSG. */
int family_parse_stat(const char *text, size_t len, uint64_t tick_us,
                      struct relative *ret_relative);
