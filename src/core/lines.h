/* Lines: splits a stream that comes in pieces into lines of limited length. */
#pragma once

#include "core/buffer.h"
#include "core/span.h"

struct lines {
    struct buffer begun; /* the beginning of an incomplete line */
};

void lines_init(struct lines *lines, size_t max_bytes);
void lines_done(struct lines *lines);

/* Calls `take` with each line that the piece completes, without its "\n". 0, -EFBIG (a line longer
 * than max_bytes, complete or not), -ENOMEM, or a non-zero result of `take`. After an error the
 * stream is lost. */
int lines_feed(struct lines *lines, struct span piece, int (*take)(void *context, struct span line),
               void *context);
