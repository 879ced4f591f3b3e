/* gzip, in and out: the only user of zlib. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"

/* Appends `data` to `out` as one gzip member, fast (level 1). 0 or -errno. */
int gzip_compress(const char *data, size_t len, struct buffer *out);

struct gzip_reader;

/* Reads the file of `fd` (plain text is read as it is) from where it stands. Owns `fd` on success.
 */
int gzip_reader_open(int fd, struct gzip_reader **ret_reader);
void gzip_reader_close(struct gzip_reader *reader);

/* Starts over at the beginning of the file. */
int gzip_reader_rewind(struct gzip_reader *reader);

/*
 * Up to `size_bytes` of decompressed text; *ret_len is 0 at the end. Blocks as the file does.
 * Errors: -EBADMSG when the data are corrupt or cut short, -EFBIG for a bomb (text over 200 times
 * the size of its file; measured traces are below 10), -EIO.
 */
int gzip_reader_read(struct gzip_reader *reader, char *buffer, size_t size_bytes, size_t *ret_len,
                     struct error *err);
