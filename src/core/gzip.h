/* gzip, in and out: the only user of zlib. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"

/* A text that was compressed for itself, fast (level 1), to stand in a gzip member with others. */
struct gzip_part {
    struct buffer packed;
    uint32_t crc;
    size_t len; /* of the text */
};

/* Makes a part that is freed by gzip_part_done, also on failure. 0 or -errno. */
int gzip_part_make(struct gzip_part *part, const char *data, size_t len, size_t cap_bytes);

/* Accepts a zeroed one. */
void gzip_part_done(struct gzip_part *part);

/* Appends one gzip member with the texts of all parts. 0 or -errno. */
int gzip_join(const struct gzip_part *const *parts, size_t count, struct buffer *out);

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

struct gzip_writer;

/* Writes gzip to `fd`, which it owns on success. */
int gzip_writer_open(int fd, struct gzip_writer **ret_writer);
/* 0 or -errno, such as -ENOSPC; the file is then cut short. */
int gzip_writer_write(struct gzip_writer *writer, const char *data, size_t len);

/* Brings what was written so far to the file, so that a reader finds whole lines. */
int gzip_writer_flush(struct gzip_writer *writer);

/* Ends the file. 0 or -errno: only then is it whole. Accepts NULL. */
int gzip_writer_close(struct gzip_writer *writer);
