/*
 * Sandbox: what the front gives up before it talks to strangers. After it a process is nobody, has
 * no capabilities, can gain none, dies with its parent, and is killed (SIGSYS) at the first system
 * call that serving does not need: no file can be opened, no socket made, no program run.
 */
#pragma once

#include "core/error.h"

/*
 * Call with every descriptor open and every listener set up, and before the first byte is read. Not
 * undone. Runs single-threaded only. 0 or -errno; after an error the process must not serve.
 *
 * Where root may not change its user (no CAP_SETUID, or no such user in this user namespace), it
 * stays root without capabilities; all else is dropped still.
 */
int sandbox_enter_front(struct error *err);
