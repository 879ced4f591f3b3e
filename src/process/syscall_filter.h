/*
 * The system-call filter of a process that talks to strangers, made from the groups of
 * syscall_groups.h. A refused call is logged once with its name and group, and fails; one of a
 * fatal group ends the process by SIGSYS.
 */
#pragma once

/* Built with AddressSanitizer, which does at exit what no sandbox allows. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif

/* What a thread may do beyond serving on the sockets that it has. */
enum syscall_role {
    SYSCALL_SERVER,          /* nothing */
    SYSCALL_CLIENT,          /* connect to servers, and read files */
    SYSCALL_FILELESS_CLIENT, /* connect to servers */
};

/* For the calling thread and those that it will start. Needs no_new_privs. 0 or -errno. */
int syscall_filter_install(enum syscall_role role);
