/*
 * Sandbox: what a process gives up before it talks to strangers. After it a process is nobody, has
 * no capabilities, can gain none, dies with its parent, and is killed (SIGSYS) at the first system
 * call that serving does not need: no file can be opened, no socket made, no program run.
 *
 * With TLS and passwords it may also draw random numbers, and has a thread that does nothing but
 * compute. Where the front also asks an API, one thread of it may do what that takes, and no more:
 * make connections, and read the files of one directory, which is the root of the process by then.
 * One that asks a BMC may make connections only. Their other calls fail with EPERM.
 *
 * The asker is a process of its own, all of which may do that, and what looking up names takes:
 * threads, and reading any file that nobody may read, unless sandbox_files.h limits these.
 */
#pragma once

#include <sys/types.h>

#include "core/error.h"

enum { SANDBOX_NOBODY = 65534 };

/* Whose system calls a thread may make. */
enum sandbox_role {
    SANDBOX_SERVER,          /* one that serves, alone in its process */
    SANDBOX_THREADED_SERVER, /* the same beside another thread */
    SANDBOX_TLS_SERVER,      /* that, and with random numbers */
    SANDBOX_WORKER,          /* one that computes for a server: memory, locks, and one socket */
    SANDBOX_CLIENT,          /* one that asks servers over TLS: sockets, and reading files */
    SANDBOX_FILELESS_CLIENT, /* that, without files */
    SANDBOX_ASKER,           /* that, with files, and with look-ups in threads of libcurl's */
};

/*
 * All of it, for a front that only serves. Call with every descriptor open and every listener set
 * up, and before the first byte is read. Not undone. Runs single-threaded only. 0 or -errno; after
 * an error the process must not serve.
 *
 * Where root may not change its user (no CAP_SETUID, or no such user in this user namespace), it
 * stays root without capabilities; all else is dropped still.
 */
int sandbox_enter_front(struct error *err);

/*
 * The same in steps, in this order: the first two single-threaded, then threads may be started
 * (they inherit what was dropped), then each of them is filtered by its own call.
 *
 * `user` is whom root becomes.
 */
int sandbox_change_root(const char *directory, struct error *err);
int sandbox_drop_privileges(uid_t user, struct error *err);
int sandbox_filter_calls(enum sandbox_role role, struct error *err);
