/*
 * Sandbox: what a process gives up before it talks to strangers. After it a process is nobody, has
 * no capabilities, can gain none, dies with its parent, and makes only the system calls that its
 * role allows (syscall_filter.h).
 */
#pragma once

#include "core/error.h"
#include "process/syscall_filter.h"

enum { SANDBOX_NOBODY = 65534 };

/* A crash must not write secrets to a file, and nobody of the same user may trace the process. A
 * change of user takes it back, so sandbox_drop_privileges does it once more. */
void sandbox_forbid_dumps(void);

/*
 * In this order: the first single-threaded, before the first byte is read and with every
 * descriptor open and every listener set up; then threads may be started (they inherit what was
 * dropped); then each thread is filtered by its own call. Not undone. 0 or -errno; after an error
 * the process must not serve.
 *
 * Root becomes nobody. Where it may not change its user (no CAP_SETUID, or no such user in this
 * user namespace), it stays root without capabilities; all else is dropped still.
 */
int sandbox_drop_privileges(struct error *err);
int sandbox_filter_calls(enum syscall_role role, struct error *err);
