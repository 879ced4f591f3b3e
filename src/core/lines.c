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

int lines_feed(struct lines *lines, struct span piece, int (*take)(void *context, struct span line),
               void *context)
{
    struct buffer *begun = &lines->begun;
    int r = 0;

    while (piece.len > 0 && r == 0) {
        const char *newline = memchr(piece.data, '\n', piece.len);
        size_t len = newline ? (size_t)(newline - piece.data) : piece.len;

        if (len > begun->cap_bytes - begun->len)
            return -EFBIG;
        if (newline && begun->len == 0) {
            r = take(context, (struct span){piece.data, len}); /* most lines are not copied */
        } else {
            buffer_bytes(begun, piece.data, len);
            if (buffer_failed(begun))
                return -ENOMEM;
            if (!newline)
                return 0;
            r = take(context, (struct span){begun->data, begun->len});
            begun->len = 0;
        }
        piece = (struct span){piece.data + len + 1, piece.len - len - 1};
    }
    return r;
}
