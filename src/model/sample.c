#include "model/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"

/* Graphics, SM, occupancy, integer, tensor, HMMA, DRAM, fp64, fp32, fp16 (nvml.h:
 * NVML_GPM_METRIC_*). */
const uint8_t sample_gpm_ids[SAMPLE_GPM_COUNT] = {1, 2, 3, 4, 5, 7, 10, 11, 12, 13};

const struct sample_names *sample_names_copy(struct arena *arena, const struct sample_names *names)
{
    struct sample_names *copy = arena_alloc(arena, sizeof(*copy));

    if (!copy)
        return NULL;
    copy->kind = names->kind;
    copy->id = arena_copy(arena, names->id, strlen(names->id));
    if (!copy->id)
        return NULL;
    for (int i = 0; i < WORKLOAD_TEXTS; i++) {
        copy->texts[i] =
            names->texts[i][0] ? arena_copy(arena, names->texts[i], strlen(names->texts[i])) : "";
        if (!copy->texts[i])
            return NULL;
    }
    return copy;
}

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
    if (!array_reserve(&batch->samples, &batch->capacity, batch->count, sizeof(*batch->samples)))
        return -ENOMEM;
    batch->samples[batch->count++] = *sample;
    return 0;
}
