/* Lines: cuts a stream that comes in pieces into its lines. No line is longer than a limit. */
#pragma once

#include "core/buffer.h"
#include "core/span.h"

struct lines {
    struct buffer begun; /* what has come of the line that is not whole yet */
};

void lines_init(struct lines *lines, size_t max_bytes);
void lines_done(struct lines *lines);

/*
 * Calls `take` with each line that the piece makes whole, without its "\n". 0, -EFBIG (a line is
 * longer than max_bytes, ended or not), -ENOMEM, or what `take` returned that is not 0. After an
 * error the stream is lost.
 */
int lines_feed(struct lines *lines, struct span piece, int (*take)(void *context, struct span line),
               void *context);
