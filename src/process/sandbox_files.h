/*
 * Sandbox files: which files a process that talks to strangers may open at all, whoever it is. One
 * that had to stay root could else read all that root may. By Landlock, so from Linux 5.13 on.
 */
#pragma once

#include "core/error.h"

/*
 * From here on the calling thread, and those that it starts, can open what is at and below these
 * paths (NULL ends them) for reading, and nothing else. A path that is not there is left out; one
 * that is replaced later is not followed, but what is replaced below it is. Not undone.
 *
 * Comes after sandbox_drop_privileges, which sets no_new_privs, and before sandbox_filter_calls. 0
 * or -errno; 0 also where the kernel has no Landlock, or a filter from outside denies it, which is
 * logged: then nothing is limited.
 */
int sandbox_limit_files(const char *const *paths, struct error *err);
