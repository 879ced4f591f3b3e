/*
 * Batch: the samples of one read of one source, with the memory that they point into. Filled by the
 * source, then handed over whole and not changed again.
 */
#pragma once

#include <stddef.h>

#include "core/arena.h"
#include "model/sample.h"

enum { BATCH_ARENA_CAP_BYTES = 64 << 20, BATCH_SAMPLES_MAX = 1 << 20 };

struct batch {
    struct sample *samples;
    size_t count;
    size_t capacity;
    struct arena arena; /* lists and strings of the samples */
    struct batch *next; /* for whoever queues batches */
};

void batch_init(struct batch *batch);
void batch_done(struct batch *batch);

/* Empties it but keeps its memory. */
void batch_reset(struct batch *batch);

/* Copies the sample; what it points to must live in the batch's arena. 0, -ENOMEM, or -EFBIG. */
int batch_add(struct batch *batch, const struct sample *sample);
