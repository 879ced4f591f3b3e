#include "model/batch.h"

#include <errno.h>
#include <stdlib.h>

void batch_init(struct batch *batch)
{
    *batch = (struct batch){0};
    arena_init(&batch->arena, BATCH_ARENA_CAP_BYTES);
}

void batch_done(struct batch *batch)
{
    free(batch->samples);
    arena_done(&batch->arena);
    batch_init(batch);
}

void batch_reset(struct batch *batch)
{
    batch->count = 0;
    arena_reset(&batch->arena);
}

int batch_add(struct batch *batch, const struct sample *sample)
{
    if (batch->count == BATCH_SAMPLES_MAX)
        return -EFBIG;
    if (batch->count == batch->capacity) {
        size_t capacity = batch->capacity ? batch->capacity * 2 : 64;
        struct sample *samples = realloc(batch->samples, capacity * sizeof(*samples));

        if (!samples)
            return -ENOMEM;
        batch->samples = samples;
        batch->capacity = capacity;
    }
    batch->samples[batch->count++] = *sample;
    return 0;
}
