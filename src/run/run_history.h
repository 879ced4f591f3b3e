/*
 * The last report of each command, for a comparison with the next: in
 * $XDG_STATE_HOME/wattribute/run or ~/.local/state/wattribute/run, in files that only this user may
 * read. A directory or a file of somebody else, or one that others may write, is not used.
 */
#pragma once

#include "core/error.h"
#include "core/span.h"

enum { RUN_HISTORY_MAX = 1000 }; /* commands; the oldest are forgotten */

/* Opens the directory, and makes it if it is missing. `state_home` and `home` are as in the
 * environment; NULL: not set. A descriptor or -errno. */
int run_history_open(const char *state_home, const char *home);

/* The last report of this command, in malloc'ed memory. 0, -ENOENT or -errno. */
int run_history_read(int dir_fd, char *const *argv, char **ret_data, size_t *ret_len);

/* Replaces it. 0 or -errno. */
int run_history_write(int dir_fd, char *const *argv, struct span report);
