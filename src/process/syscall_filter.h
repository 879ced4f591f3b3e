/*
 * System-call filters, made from groups of calls.
 *
 * A process that talks to the network may make the calls of some groups only. A refused call is
 * logged once with its name and group, and fails; one of a fatal group ends the process by SIGSYS.
 * A call in no group fails with ENOSYS, as on an older kernel: libraries expect that, and fall
 * back.
 *
 * The collector may make every call but those of some groups, which fail with EPERM: the calls of
 * NVIDIA's library differ between versions, and a list of those of one version would break it with
 * another. Its children inherit this filter; their own goes on top of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Built with AddressSanitizer, which does at exit what no sandbox allows. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

enum syscall_role {
    /* What a thread may do beyond serving on the sockets that it has: */
    SYSCALL_SERVER,          /* nothing */
    SYSCALL_CLIENT,          /* connect to servers, and read files */
    SYSCALL_FILELESS_CLIENT, /* connect to servers */
    /* Everything but what the collector and its libraries never need. */
    SYSCALL_COLLECTOR,
};

/* For the calling thread and those that it will start. Needs no_new_privs. 0 or -errno. */
int syscall_filter_install(enum syscall_role role);

/* syscall_groups.c: system calls by their purpose. Calls that are allowed for some arguments only
 * are in syscall_filter.c. */
struct syscall_group {
    const char *name;
    enum syscall_use {
        SYSCALL_COMMON,        /* for every process */
        SYSCALL_CONNECTING,    /* for a client; sockets are limited to the internet */
        SYSCALL_READING_FILES, /* for a client that may read files; opening is limited to that */
        SYSCALL_DENIED,        /* fail with EPERM: a library may try them and do without */
        SYSCALL_FATAL, /* no library calls these by chance: the process was taken over, and ends */
    } use;
    bool is_denied_to_collector;
    const uint32_t *calls;
    size_t count;
};

extern const struct syscall_group syscall_groups[];
extern const size_t syscall_groups_count;

/* By number, from the C library's headers (tools/syscall-names). NULL: no such call. */
extern const char *const syscall_names[];
extern const size_t syscall_names_count;
