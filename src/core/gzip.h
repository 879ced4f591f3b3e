/* gzip, in and out: the only user of zlib. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/buffer.h"
#include "core/error.h"

/* A text compressed on its own, fast (level 1), to be joined with others in one gzip member. */
struct gzip_part {
    struct buffer packed;
    uint32_t crc;
    size_t len; /* of the text */
};

/* 0 or -errno; in both cases gzip_part_done frees it. */
int gzip_part_make(struct gzip_part *part, const char *data, size_t len, size_t cap_bytes);

/* Accepts a zeroed one. */
void gzip_part_done(struct gzip_part *part);

/* Appends one gzip member with all parts. 0 or -errno. */
int gzip_join(const struct gzip_part *const *parts, size_t count, struct buffer *out);

/* CRC-32, as in gzip. */
uint32_t gzip_checksum(const char *data, size_t len);

struct gzip_reader;

/* Reads from the offset of `fd`, which it owns on success; text that is not gzip is read as is. */
int gzip_reader_open(int fd, struct gzip_reader **ret_reader);
void gzip_reader_close(struct gzip_reader *reader);

int gzip_reader_rewind(struct gzip_reader *reader);

/* Up to `size_bytes` of text; *ret_len is 0 at the end. Blocks as the file does. -EBADMSG: corrupt
 * or truncated; -EFBIG: a bomb (over 200 times the size of its file; real traces are below 10). */
int gzip_reader_read(struct gzip_reader *reader, char *buffer, size_t size_bytes, size_t *ret_len,
                     struct error *err);

struct gzip_writer;

/* Writes gzip to `fd`, which it owns on success. */
int gzip_writer_open(int fd, struct gzip_writer **ret_writer);
/* 0 or -errno, such as -ENOSPC; the file is then truncated. */
int gzip_writer_write(struct gzip_writer *writer, const char *data, size_t len);

/* Flushes, so that a reader finds whole lines. */
int gzip_writer_flush(struct gzip_writer *writer);

/* Ends the file. 0 or -errno: only then is it whole. Accepts NULL. */
int gzip_writer_close(struct gzip_writer *writer);
