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

/* Of the contents. A page is several times larger than the state of what it shows, and has the same
 * limit (SEALED_MAX_BYTES): it is the first that cannot be made. */
enum { STATE_FILE_CAP_BYTES = 256 << 20 };

struct state_file;

/* Opens its directory, and locks it against other processes. -EBUSY: one has it. -EEXIST: the path
 * names something that is not ours to replace: a directory, device, pipe or link, or a file that
 * does not begin as ours do. Else -errno. */
int state_file_open(const char *path, struct state_file **ret_file, struct error *err);

/* Lets the last write end for at most this long. Accepts NULL. False: the write hangs and uses it,
 * so that nothing was freed. */
bool state_file_close(struct state_file *file, uint64_t timeout_us);

/* Reads the contents into malloc'ed memory. -ENOENT: there is none. -EBADMSG: it is of another
 * version, or damaged, or others may write to it; the text says which. Else -errno. */
int state_file_read(struct state_file *file, char **ret_data, size_t *ret_len, struct error *err);

/* Renames a file that is of no use to FILE.bad, so that a person can look at it. 0 or -errno;
 * -EEXIST: that, or FILE.bad, is not ours. Before the first write. */
int state_file_set_aside(struct state_file *file);

/* strerror() for these. */
const char *state_file_strerror(int error);

/* Hands the contents to the thread and returns the number of this write. One that has not begun yet
 * is replaced. `is_durable`: it shall survive a power failure, too. */
uint64_t state_file_write(struct state_file *file, struct buffer *contents, bool is_durable);

/* 0 or -errno. */
struct state_file_result {
    int write; /* of the last write: what is in the file */
    int sync;  /* of the last durable one: what a power failure leaves, if `write` is 0 */
};

/* Waits for a write until a monotonic time. False: it is late. */
bool state_file_wait(struct state_file *file, uint64_t number, uint64_t until_us,
                     struct state_file_result *ret_result);
