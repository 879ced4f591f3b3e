/*
 * System calls in named groups, by their purpose: those that the libraries of a server or client
 * may use, in any version, and those that no such process ever needs. A call in no group fails with
 * ENOSYS, as on an older kernel: libraries expect that, and fall back. Calls that are allowed for
 * some arguments only are in syscall_filter.c.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct syscall_group {
    const char *name;
    enum syscall_use {
        SYSCALL_COMMON,        /* for every process */
        SYSCALL_CONNECTING,    /* for a client; sockets are limited to the internet */
        SYSCALL_READING_FILES, /* for a client that may read files; opening is limited to that */
        SYSCALL_DENIED,        /* fail with EPERM: a library may try them and do without */
        SYSCALL_FATAL, /* no library calls these by chance: the process was taken over, and ends */
    } use;
    const uint32_t *calls;
    size_t count;
};

extern const struct syscall_group syscall_groups[];
extern const size_t syscall_groups_count;

/* By number, from the C library's headers (tools/syscall-names). NULL: no such call. */
extern const char *const syscall_names[];
extern const size_t syscall_names_count;
