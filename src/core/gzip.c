#define ZLIB_CONST /* zlib: input pointers are const */

#include "core/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/macros.h"

enum {
    WINDOW_BITS_GZIP = 15 + 16, /* zlib: 16 more asks for a gzip header */
    READ_BUFFER_BYTES = 64 * 1024,
    BOMB_RATIO = 200,
};
static const uint64_t BOMB_FREE_BYTES = 16 << 20; /* small files may compress as they like */

int gzip_compress(const char *data, size_t len, struct buffer *out)
{
    unsigned char block[16 * 1024];
    z_stream stream = {0};
    int r;

    if (len > UINT32_MAX)
        return -EFBIG;
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS_GZIP, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return -ENOMEM;
    stream.next_in = (const unsigned char *)data;
    stream.avail_in = (unsigned)len;
    do {
        stream.next_out = block;
        stream.avail_out = sizeof(block);
        r = deflate(&stream, Z_FINISH);
        buffer_bytes(out, (const char *)block, sizeof(block) - stream.avail_out);
    } while (r == Z_OK);
    deflateEnd(&stream);
    return r != Z_STREAM_END || buffer_failed(out) ? -ENOMEM : 0;
}

struct gzip_reader {
    gzFile file;
    uint64_t out_bytes;
};

int gzip_reader_open(int fd, struct gzip_reader **ret_reader)
{
    struct gzip_reader *reader = calloc(1, sizeof(*reader));

    if (!reader)
        return -ENOMEM;
    reader->file = gzdopen(fd, "rb");
    if (!reader->file) {
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

    /* At a cut end gzread returns what there was; only the code tells that the trailer is missing.
     */
    if (n < 0 || (n == 0 && code != Z_OK)) {
        if (code == Z_ERRNO)
            return error_set(err, -EIO, "cannot read: %s", strerror(errno));
        if (code == Z_BUF_ERROR)
            return error_set(err, -EBADMSG, "gzip data end too early (file cut short?)");
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
};

int gzip_writer_open(int fd, struct gzip_writer **ret_writer)
{
    struct gzip_writer *writer = calloc(1, sizeof(*writer));

    if (!writer)
        return -ENOMEM;
    writer->file = gzdopen(fd, "wb6");
    if (!writer->file) {
        free(writer);
        return -ENOMEM;
    }
    *ret_writer = writer;
    return 0;
}

int gzip_writer_write(struct gzip_writer *writer, const char *data, size_t len)
{
    while (len > 0) {
        unsigned part = (unsigned)MIN(len, (size_t)1 << 20);

        if (gzwrite(writer->file, data, part) != (int)part)
            return errno ? -errno : -EIO;
        data += part;
        len -= part;
    }
    return 0;
}

int gzip_writer_flush(struct gzip_writer *writer)
{
    return gzflush(writer->file, Z_SYNC_FLUSH) == Z_OK ? 0 : -EIO;
}

int gzip_writer_close(struct gzip_writer *writer)
{
    int code;

    if (!writer)
        return 0;
    code = gzclose_w(writer->file);
    free(writer);
    return code == Z_OK ? 0 : -EIO;
}
