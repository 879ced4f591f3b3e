#define ZLIB_CONST /* zlib: input pointers are const */

#include "core/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/macros.h"

enum {
    WINDOW_BITS_RAW = -15, /* zlib: without a header of its own */
    READ_BUFFER_BYTES = 64 * 1024,
    BOMB_RATIO = 200,
};
static const uint64_t BOMB_FREE_BYTES = 16 << 20; /* small files may compress as they like */

uint32_t gzip_checksum(const char *data, size_t len)
{
    return (uint32_t)crc32_z(0, (const unsigned char *)data, len);
}

int gzip_part_make(struct gzip_part *part, const char *data, size_t len, size_t cap_bytes)
{
    unsigned char block[16 * 1024];
    z_stream stream = {0};
    int r;

    *part = (struct gzip_part){.len = len};
    buffer_init(&part->packed, cap_bytes);
    if (len > UINT32_MAX)
        return -EFBIG;
    part->crc = gzip_checksum(data, len);
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS_RAW, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return -ENOMEM;
    stream.next_in = (const unsigned char *)data;
    stream.avail_in = (unsigned)len;
    do { /* a full flush ends at a byte, and no later block refers to earlier ones */
        stream.next_out = block;
        stream.avail_out = sizeof(block);
        r = deflate(&stream, Z_FULL_FLUSH);
        buffer_bytes(&part->packed, (const char *)block, sizeof(block) - stream.avail_out);
    } while (r == Z_OK && stream.avail_out == 0);
    deflateEnd(&stream);
    return (r != Z_OK && r != Z_BUF_ERROR) || buffer_failed(&part->packed) ? -ENOMEM : 0;
}

void gzip_part_done(struct gzip_part *part)
{
    buffer_done(&part->packed);
    *part = (struct gzip_part){0};
}

static void write_u32(struct buffer *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        buffer_char(out, (char)(value >> 8 * i));
}

int gzip_join(const struct gzip_part *const *parts, size_t count, struct buffer *out)
{
    /* RFC 1952: deflate, no name, no time, fastest, Unix; RFC 1951: the last block, empty. */
    static const char header[10] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 4, 3}, last[] = {3, 0};
    uint32_t crc = 0;
    size_t len = 0;

    buffer_bytes(out, header, sizeof(header));
    for (size_t i = 0; i < count; i++) {
        buffer_bytes(out, parts[i]->packed.data, parts[i]->packed.len);
        crc = (uint32_t)crc32_combine(crc, parts[i]->crc, (z_off_t)parts[i]->len);
        len += parts[i]->len;
    }
    buffer_bytes(out, last, sizeof(last));
    write_u32(out, crc);
    write_u32(out, (uint32_t)len);
    return buffer_failed(out) ? -ENOMEM : 0;
}

struct gzip_reader {
    gzFile file;
    uint64_t out_bytes;
};

int gzip_reader_open(int fd, struct gzip_reader **ret_reader)
{
    struct gzip_reader *reader = calloc(1, sizeof(*reader));

    if (!reader || !(reader->file = gzdopen(fd, "rb"))) {
        free(reader);
        return -ENOMEM;
    }
    gzbuffer(reader->file, READ_BUFFER_BYTES);
    *ret_reader = reader;
    return 0;
}

void gzip_reader_close(struct gzip_reader *reader)
{
    if (!reader)
        return;
    gzclose_r(reader->file);
    free(reader);
}

int gzip_reader_rewind(struct gzip_reader *reader)
{
    if (gzrewind(reader->file) < 0)
        return -ESPIPE;
    reader->out_bytes = 0;
    return 0;
}

int gzip_reader_read(struct gzip_reader *reader, char *buffer, size_t size_bytes, size_t *ret_len,
                     struct error *err)
{
    int n = gzread(reader->file, buffer, (unsigned)MIN(size_bytes, (size_t)1 << 20));
    int code = Z_OK;
    const char *why = gzerror(reader->file, &code);

    /* Of a truncated file gzread returns what there is; only the code shows it. */
    if (n < 0 || (n == 0 && code != Z_OK)) {
        if (code == Z_ERRNO)
            return error_set(err, -EIO, "cannot read: %s", strerror(errno));
        if (code == Z_BUF_ERROR)
            return error_set(err, -EBADMSG, "gzip data end too early (file cut short?)");
        if (code == Z_MEM_ERROR)
            return error_set(err, -ENOMEM, "out of memory");
        return error_set(err, -EBADMSG, "corrupt gzip data (%s)", why);
    }
    reader->out_bytes += (unsigned)n;
    if (reader->out_bytes > BOMB_FREE_BYTES) {
        z_off_t in_bytes = gzoffset(reader->file);

        if (in_bytes > 0 && reader->out_bytes / (uint64_t)in_bytes > BOMB_RATIO)
            return error_set(err, -EFBIG, "decompresses to over %d times its size (a gzip bomb?)",
                             BOMB_RATIO);
    }
    *ret_len = (size_t)n;
    return 0;
}

struct gzip_writer {
    gzFile file;
    int error; /* the first; the file is cut short there */
};

int gzip_writer_open(int fd, struct gzip_writer **ret_writer)
{
    struct gzip_writer *writer = calloc(1, sizeof(*writer));

    if (!writer || !(writer->file = gzdopen(fd, "wb6"))) {
        free(writer);
        return -ENOMEM;
    }
    *ret_writer = writer;
    return 0;
}

/* Right after a call that failed: zlib leaves the system's error in errno. */
static int write_error(struct gzip_writer *writer)
{
    if (writer->error == 0)
        writer->error = errno ? -errno : -EIO;
    return writer->error;
}

int gzip_writer_write(struct gzip_writer *writer, const char *data, size_t len)
{
    errno = 0;
    /* gzfwrite, unlike gzwrite, takes any length. */
    return gzfwrite(data, 1, len, writer->file) == len ? 0 : write_error(writer);
}

int gzip_writer_flush(struct gzip_writer *writer)
{
    errno = 0;
    return gzflush(writer->file, Z_SYNC_FLUSH) == Z_OK ? 0 : write_error(writer);
}

int gzip_writer_close(struct gzip_writer *writer)
{
    int r;

    if (!writer)
        return 0;
    errno = 0;
    r = gzflush(writer->file, Z_FINISH) == Z_OK ? 0 : write_error(writer);
    errno = 0;
    if (gzclose_w(writer->file) != Z_OK)
        r = write_error(writer);
    free(writer);
    return r;
}
