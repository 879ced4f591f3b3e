/*
 * State file: a checksummed file that is replaced as a whole, by a thread of its own: a disk may be
 * slow, or hang. It holds secrets, so only its owner may read it. It knows nothing of what is in
 * it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"

enum { STATE_FILE_CAP_BYTES = 256 << 20 };

struct state_file;

/* Opens its directory, and locks it against other processes. -EBUSY: one has it; else -errno. */
int state_file_open(const char *path, struct state_file **ret_file, struct error *err);

/* Lets the last write end for at most this long. Accepts NULL. False: the write hangs and uses it,
 * so that nothing was freed. */
bool state_file_close(struct state_file *file, uint64_t timeout_us);

/* Reads the contents into malloc'ed memory. -ENOENT: there is none. -EBADMSG: it is no state file
 * of this version, or damaged, or others may write to it; the text says which. */
int state_file_read(struct state_file *file, char **ret_data, size_t *ret_len, struct error *err);

/* Renames a file that is of no use to FILE.bad, so that a person can look at it. 0 or -errno.
 * Before the first write. */
int state_file_set_aside(struct state_file *file);

/* Hands the contents to the thread and returns the number of this write. One that has not begun yet
 * is replaced. `is_durable`: it shall survive a power failure, too. */
uint64_t state_file_write(struct state_file *file, struct buffer *contents, bool is_durable);

/* Waits for a write until a monotonic time. False: it is late. Else 0 or -errno in *ret_error. */
bool state_file_wait(struct state_file *file, uint64_t number, uint64_t until_us, int *ret_error);
