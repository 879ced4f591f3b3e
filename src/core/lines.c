#include "core/lines.h"

#include <errno.h>

void lines_init(struct lines *lines, size_t max_bytes)
{
    buffer_init(&lines->begun, max_bytes);
}

void lines_done(struct lines *lines)
{
    buffer_done(&lines->begun);
}

/* Most lines come in one piece and are not copied. */
static int finish_line(struct lines *lines, struct span end,
                       int (*take)(void *context, struct span line), void *context)
{
    struct buffer *begun = &lines->begun;
    int r;

    if (begun->len == 0)
        return take(context, end);
    buffer_bytes(begun, end.data, end.len);
    if (buffer_failed(begun))
        return -ENOMEM;
    r = take(context, (struct span){begun->data, begun->len});
    begun->len = 0;
    return r;
}

int lines_feed(struct lines *lines, struct span piece, int (*take)(void *context, struct span line),
               void *context)
{
    struct buffer *begun = &lines->begun;

    while (piece.len > 0) {
        const char *newline = memchr(piece.data, '\n', piece.len);
        size_t len = newline ? (size_t)(newline - piece.data) : piece.len;
        int r;

        if (len > begun->cap_bytes - begun->len)
            return -EFBIG;
        if (!newline) {
            buffer_bytes(begun, piece.data, len);
            return buffer_failed(begun) ? -ENOMEM : 0;
        }
        r = finish_line(lines, (struct span){piece.data, len}, take, context);
        if (r != 0)
            return r;
        piece = (struct span){newline + 1, piece.len - len - 1};
    }
    return 0;
}
