/*
 * Reads what the cgroups of all workloads have used. Files stay open, and each is read once a
 * cycle, from its beginning and at once: a descriptor that is kept can never show another cgroup,
 * also if one of the same name is made (measured: ENODEV). Not thread-safe.
 *
 * What ends takes its counters with it. So that short workloads and the last seconds of long ones
 * are seen, there is something to do between two cycles: cgroup_reader_attend.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/host.h"
#include "model/usage.h"
#include "sources/cgroup/tree.h"

struct cgroup_reader;

/* Of the last cycle. */
struct cgroup_reader_stats {
    uint64_t workloads;
    uint64_t files_read;
    uint64_t files_failed; /* could be opened but not read, or were too large */
    uint64_t unkept;       /* workloads whose files are opened each time: too many descriptors */
    uint64_t unread;       /* workloads whose files could not be opened, for lack of descriptors */
    uint64_t left_out;     /* directories beyond the caps */
    uint64_t watched, listed; /* directories that may get workloads: watched, or listed each time */
    uint64_t told;            /* workloads of which the kernel says when their last process ends */
};

#define CGROUP_READER_NEVER UINT64_MAX

/*
 * The host stays the caller's. Keeps descriptors up to the soft RLIMIT_NOFILE, less some for
 * others; whoever raises that pays with the kernel's memory, which counts as ours: 4.7 KB for each
 * (measured, Linux 6.18). 0, -ENOMEM, or -ENOENT: no cgroup file system is there.
 */
int cgroup_reader_new(const struct host *host, cgroup_find_owner *find_owner, void *context,
                      struct cgroup_reader **ret_reader);
void cgroup_reader_free(struct cgroup_reader *reader);

/* Lower caps, for what is to come. */
void cgroup_reader_set_caps(struct cgroup_reader *reader, size_t workloads, size_t files,
                            size_t watches);

/*
 * One cycle: finds what has come and gone, and reads. With `rescan`, all directories are looked
 * at, and limits are read again; the first cycle is one. What fails costs the values that it would
 * have told, for this cycle. May block as long as the file system does.
 */
void cgroup_reader_read(struct cgroup_reader *reader, bool rescan);

/*
 * Between two cycles, whenever the descriptor is readable and when the time has come that the last
 * call returned (CGROUP_READER_NEVER: nothing is to be done before the next event): finds what has
 * come and gone, and reads what has begun, or may be about to end. Does nothing before the first
 * cycle. Costs as much as happens; whoever calls it must keep that in bounds. The descriptor may be
 * -1: there are no events.
 */
uint64_t cgroup_reader_attend(struct cgroup_reader *reader, uint64_t now_us);
int cgroup_reader_event_fd(const struct cgroup_reader *reader);

/* What was read, and those that have ended since the last report, with what was read of them last.
 * Valid until anything else is called; in the order in which they appeared. */
const struct usage_owner *cgroup_reader_items(const struct cgroup_reader *reader,
                                              size_t *ret_count);

/* Says that what was read has been counted: it is what the next cycles are compared with, and those
 * that have ended are forgotten. */
void cgroup_reader_set_reported(struct cgroup_reader *reader);

void cgroup_reader_get_stats(const struct cgroup_reader *reader,
                             struct cgroup_reader_stats *ret_stats);

/* Calls `take` with each descriptor that is kept: to measure against. */
void cgroup_reader_for_each_file(const struct cgroup_reader *reader,
                                 void (*take)(void *context, int fd), void *context);
