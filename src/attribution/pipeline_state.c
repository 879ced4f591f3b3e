/* The pipeline in a state file: what was learned, the meters, and the books. */
#include "attribution/pipeline.h"

#include <string.h>

#include "attribution/grow.h"
#include "core/macros.h"

_Static_assert(NODE_METERS_MAX + SAMPLE_GPU_MAX <= RESUMED_METERS_MAX,
               "room for all that are read");

/* Meters: those of the GPUs, of the node, and those that were not read yet, or are gone. */
static void pack_meters(struct pipeline *pipeline, struct coder *coder)
{
    const struct node *node = &pipeline->node;
    size_t read_count = node->meter_count, kept_count;
    struct resumed_meter meter;

    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        read_count += pipeline->gpus[i] != NULL;
    kept_count = MIN(pipeline->resumed.count, RESUMED_METERS_MAX - read_count);
    code_count(coder, read_count + kept_count, RESUMED_METERS_MAX);
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i]) {
            meter = gpu_resumed_meter(pipeline->gpus[i]);
            resumed_meter_code(&meter, coder);
        }
    for (size_t i = 0; i < node->meter_count; i++) {
        meter = node_resumed_meter(&node->meters[i]);
        resumed_meter_code(&meter, coder);
    }
    for (size_t i = 0; i < kept_count; i++)
        resumed_meter_code(&pipeline->resumed.items[i], coder);
}

static void unpack_meters(struct pipeline *pipeline, struct coder *coder)
{
    struct resumed_meters *meters = &pipeline->resumed;
    size_t count = code_count(coder, 0, RESUMED_METERS_MAX);

    if (grow_zeroed(&meters->items, &meters->slots, count, sizeof(*meters->items)) < 0)
        coder_reject(coder);
    while (meters->count < count && !coder->in.is_broken)
        resumed_meter_code(&meters->items[meters->count++], coder);
}

/* Nothing of the previous run is later than now, even if the clock was set back since. */
static void limit_times(struct pipeline *pipeline, const struct pipeline_resumption *resumption)
{
    struct ledger *ledger = pipeline->ledger;

    for (uint32_t i = 0; i < ledger_meter_count(ledger); i++)
        ledger_set_clock_back(ledger, i, resumption->now_us);
    for (size_t i = 0; i < pipeline->resumed.count; i++) {
        uint64_t read_us = pipeline->resumed.items[i].read_us + (uint64_t)resumption->clock_step_us;

        pipeline->resumed.items[i].read_us = MIN(read_us, resumption->now_us);
    }
}

/* Nobody will learn who used what was pending when the previous run ended. */
static void book_pending(struct pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->resumed.count; i++) {
        struct resumed_meter *meter = &pipeline->resumed.items[i];
        uint32_t index;

        if (meter->is_booked && ledger_find_meter(pipeline->ledger, meter->kind, meter->id, &index))
            ledger_book_gap(pipeline->ledger, index, meter->pending_uj, meter->read_us,
                            meter->read_us);
        meter->pending_uj = 0;
    }
}

uint64_t pipeline_unknown_gaps(const struct pipeline *pipeline)
{
    uint64_t gaps = 0;

    for (uint32_t i = 0; i < ledger_meter_count(pipeline->ledger); i++)
        gaps += ledger_meter(pipeline->ledger, i)->unknown_gaps;
    return gaps;
}

/* Costs in another currency are other series, which start at 0. */
static void code_currency(struct pipeline *pipeline, struct coder *coder)
{
    char now[sizeof(pipeline->currency)];

    memcpy(now, pipeline->currency, sizeof(now));
    code_array_text(coder, pipeline->currency, sizeof(pipeline->currency));
    if (now[0] == '\0' || strcmp(now, pipeline->currency) == 0)
        return;
    memcpy(pipeline->currency, now, sizeof(now));
    ledger_drop_costs(pipeline->ledger);
}

void pipeline_pack_state(struct pipeline *pipeline, struct buffer *out)
{
    struct coder coder = {.out = out};

    program_archive_code(&pipeline->archive, pipeline->gpus, &coder);
    node_overhead_code(&pipeline->overhead, &coder);
    pack_meters(pipeline, &coder);
    ledger_code_state(pipeline->ledger, &coder);
    code_currency(pipeline, &coder);
    workload_usages_code(&pipeline->node.usages, &coder);
}

int pipeline_unpack_state(struct pipeline *pipeline, struct unpack *in,
                          const struct pipeline_resumption *resumption)
{
    struct coder coder = {.in = *in};

    program_archive_code(&pipeline->archive, pipeline->gpus, &coder);
    node_overhead_code(&pipeline->overhead, &coder);
    unpack_meters(pipeline, &coder);
    if (!resumption->is_same_boot) {
        pipeline->overhead.before.deficit_uj = 0;
        for (size_t i = 0; i < pipeline->resumed.count; i++)
            pipeline->resumed.items[i].has_counter = false;
        return coder.in.is_broken ? -EBADMSG : 0; /* the books end with the boot */
    }
    ledger_code_state(pipeline->ledger, &coder);
    if (!coder.in.is_broken)
        code_currency(pipeline, &coder);
    if (!coder.in.is_broken)
        workload_usages_code(&pipeline->node.usages, &coder);
    if (unpack_end(&coder.in) < 0)
        return -EBADMSG;
    limit_times(pipeline, resumption);
    book_pending(pipeline);
    return 0;
}
