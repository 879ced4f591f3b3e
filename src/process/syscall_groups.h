/*
 * System calls in named groups, by what they are for: what the libraries of a server or client may
 * use, in any version, and what no such process ever needs. syscall_filter.c turns them into a
 * filter. A call in no group fails with ENOSYS, as on a kernel that is older than it: libraries
 * expect that, and fall back.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct syscall_group {
    const char *name;
    const uint32_t *calls;
    size_t count;
};

/* For every process. Calls that are allowed for some arguments only are in syscall_filter.c. */
extern const struct syscall_group syscall_groups_common[];
extern const size_t syscall_groups_common_count;

/* For one that asks servers; sockets are limited to the internet. */
extern const struct syscall_group syscall_group_connecting;

/* For one that may read files; opening is limited to reading. */
extern const struct syscall_group syscall_group_reading_files;

/* They fail with EPERM: a library may try them and do without. */
extern const struct syscall_group syscall_groups_denied[];
extern const size_t syscall_groups_denied_count;

/* No library calls these by chance: whoever does has taken the process over, which ends. */
extern const struct syscall_group syscall_groups_fatal[];
extern const size_t syscall_groups_fatal_count;
