/* Appends `data` to `out` as one gzip member of one part. 0 or -errno. */
#pragma once

#include "core/gzip.h"

static int gzip_compress(const char *data, size_t len, struct buffer *out)
{
    struct gzip_part part;
    const struct gzip_part *parts[] = {&part};
    int r = gzip_part_make(&part, data, len, out->cap_bytes);

    if (r == 0)
        r = gzip_join(parts, 1, out);
    gzip_part_done(&part);
    return r;
}
