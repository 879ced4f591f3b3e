/*
 * Sandbox: what a process gives up.
 *
 * One that talks to the network has a user of its own and no capabilities and can gain none, dies
 * with its parent, and makes only the system calls that its role allows (syscall_filter.h). The
 * collector keeps its user and the capabilities that it needs (capabilities.h).
 *
 * Landlock is not for the collector: a process under it may look only at processes under it
 * (hook_ptrace_access_check in security/landlock), and /proc/PID/exe, environ and root of all
 * others would be closed to it.
 */
#pragma once

#include <stdint.h>

#include "core/error.h"
#include "process/syscall_filter.h"

/*
 * The user and the group of each child. As no other process has them, root alone may stop, signal
 * or trace it; nobody is shared by services and by NFS.
 *
 * systemd leaves 65520 to 65533 unused (systemd.io/UIDS-GIDS; those below are for DynamicUser=),
 * and Debian reserves them (Policy 9.2.2). They are not in the ranges of subuid(5), which begin at
 * 100000, and exist in a user namespace of 65536 ids. 65532 is "nonroot" in many images.
 */
enum sandbox_user {
    SANDBOX_SERVER = 65521,
    SANDBOX_BMC = 65522,
    SANDBOX_KUBERNETES = 65523,
    SANDBOX_EMISSIONS = 65524,
};

/* A crash must not write secrets to a file, and no other process of the user may trace this one. A
 * change of user reverts it, so sandbox_drop_privileges does it again. */
void sandbox_forbid_dumps(void);

/*
 * For the collector, single-threaded, with its sockets bound: gives up the capabilities that are
 * not in this set (1 << CAP_NAME), for its children, too, all that it could gain, and the system
 * calls that it never needs. It does as much of this as it can. 0, or -errno with what it could not
 * do: an old kernel or a filter from outside is no reason to stop.
 */
int sandbox_confine_collector(uint64_t capabilities, struct error *err);

/*
 * The following, in this order. Not undone. 0 or -errno; after an error the process must end.
 *
 * drop_privileges is called single-threaded, before the first byte is read and with every
 * descriptor open and every listener set up; threads started after it inherit what was dropped.
 * Root becomes `user`. Where it may not (no CAP_SETUID, or no such user in this user namespace),
 * that is logged, and it stays root without capabilities; all else is dropped still.
 */
int sandbox_drop_privileges(enum sandbox_user user, struct error *err);

/*
 * From here on the calling thread, and those that it starts, can open what is at and below these
 * paths (NULL ends them) for reading, and nothing else: a process that had to stay root could read
 * all that root may. A path that does not exist is left out; one that is replaced later is not
 * followed, but what is replaced below it is.
 *
 * By Landlock, from Linux 5.13 on. 0 also where the kernel has none, or a filter from outside
 * denies it, which is logged: then nothing is limited.
 */
int sandbox_limit_files(const char *const *paths, struct error *err);

/* For each thread. */
int sandbox_filter_calls(enum syscall_role role, struct error *err);
