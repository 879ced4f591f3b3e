#include "attribution/pipeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribution/grow.h"
#include "core/macros.h"

/* A row without names by then is shown without. A runtime that is slow but responds, as when it
 * starts many containers at once, gets more time than one that hangs. */
static const uint64_t HOLD_US = 15 * USEC_PER_SEC, HOLD_AWAITED_US = 60 * USEC_PER_SEC;

int pipeline_new(const struct pipeline_options *options, struct pipeline **ret_pipeline)
{
    struct ledger_options ledger_options = {
        .max_processes = options->max_processes,
        .max_workloads = options->max_workloads,
        .retention_us = options->retention_us,
        .embodied = options->embodied,
    };
    struct pipeline *pipeline = calloc(1, sizeof(*pipeline));

    if (!pipeline)
        return -ENOMEM;
    if (options->has_history)
        ledger_options.history = pipeline->history = history_new();
    if ((options->has_history && !pipeline->history) ||
        ledger_new(&ledger_options, &pipeline->ledger) < 0) {
        history_free(pipeline->history);
        free(pipeline);
        return -ENOMEM;
    }
    pipeline->options = *options;
    pipeline->options.gpu.find_owner = options->find_owner;
    if (options->find_names) {
        pipeline->options.gpu.find_names = options->find_names;
        pipeline->options.gpu.find_vm = options->find_vm;
        pipeline->options.gpu.names_context = options->names_context;
    }
    pipeline->price = options->price;
    if (options->price.cost.known)
        memcpy(pipeline->currency, options->price.cost.currency, sizeof(pipeline->currency));
    ledger_set_price(pipeline->ledger, &pipeline->price, 0);
    node_init(&pipeline->node, pipeline->ledger);
    pipeline->node.resumed = &pipeline->resumed;
    pipeline->node.has_no_usage = options->has_no_usage;
    node_overhead_init(&pipeline->overhead, &options->overhead, options->gpu.interval_us,
                       &pipeline->node, pipeline->gpus);
    *ret_pipeline = pipeline;
    return 0;
}

static void remove_gpu(struct pipeline *pipeline, uint32_t index)
{
    if (!pipeline->gpus[index])
        return;
    ledger_allow_forgetting(pipeline->ledger, pipeline->gpus[index]->meter, UINT64_MAX);
    gpu_done(pipeline->gpus[index]);
    free(pipeline->gpus[index]);
    pipeline->gpus[index] = NULL;
}

void pipeline_free(struct pipeline *pipeline)
{
    if (!pipeline)
        return;
    for (uint32_t i = 0; i < SAMPLE_GPU_MAX; i++)
        remove_gpu(pipeline, i);
    program_archive_done(&pipeline->archive);
    resumed_meters_done(&pipeline->resumed);
    node_overhead_done(&pipeline->overhead);
    node_done(&pipeline->node);
    free(pipeline->sightings.items);
    free(pipeline->measured);
    ledger_free(pipeline->ledger);
    history_free(pipeline->history);
    free(pipeline);
}

/* It is gone, or has another index now. What it counts until it is back is a gap. */
static void retire_gpu(struct pipeline *pipeline, uint32_t index)
{
    struct gpu *gpu = pipeline->gpus[index];
    struct resumed_meter meter;

    (void)gpu_finish(gpu);
    program_archive_keep(&pipeline->archive, gpu);
    meter = gpu_resumed_meter(gpu);
    if (resumed_meters_keep(&pipeline->resumed, &meter) < 0)
        ledger_note_unknown_gap(pipeline->ledger, gpu->meter);
    remove_gpu(pipeline, index);
}

static int add_gpu(struct pipeline *pipeline, uint32_t index, const struct sample_device *device)
{
    struct gpu *gpu = pipeline->gpus[index];
    struct resumed_meter before;

    if (gpu && strcmp(gpu->uuid, device->uuid) == 0)
        return gpu_describe(gpu, device);
    node_overhead_close_window(&pipeline->overhead);
    for (uint32_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i] && (i == index || strcmp(pipeline->gpus[i]->uuid, device->uuid) == 0))
            retire_gpu(pipeline, i);
    gpu = malloc(sizeof(*gpu));
    if (!gpu || gpu_init(gpu, index, device, &pipeline->options.gpu, pipeline->ledger,
                         &pipeline->sightings) < 0) {
        free(gpu);
        return -ENOMEM;
    }
    program_archive_recall(&pipeline->archive, gpu);
    if (resumed_meters_take(&pipeline->resumed, METER_GPU, "", device->uuid, &before)) {
        gpu_resume(gpu, &before);
        resumed_meter_done(&before);
    }
    pipeline->gpus[index] = gpu;
    return 0;
}

/* The count of a meter that is booked. 0 or -ENOMEM. */
static int measure(struct pipeline *pipeline, uint32_t meter, uint64_t t_us, uint64_t counter_uj,
                   uint64_t breaks, bool is_modelled)
{
    if (grow_zeroed(&pipeline->measured, &pipeline->measured_slots, meter + 1,
                    sizeof(*pipeline->measured)) < 0)
        return -ENOMEM;
    measured_take(&pipeline->measured[meter], t_us, counter_uj, breaks, is_modelled,
                  pipeline->history);
    return 0;
}

/* The rest has no counter: it is that of the whole node less those of the parts. Late ones among
 * them make it go back for a while. */
static int measure_overhead(struct pipeline *pipeline)
{
    const struct node_overhead *overhead = &pipeline->overhead;
    const struct node_overhead_reading *now = &overhead->latest;
    uint64_t counter_uj =
        now->total_uj - now->parts_uj - (overhead->includes_gpus ? now->gpus_uj : 0);
    uint64_t breaks = now->lapses + now->gpu_resets + ((uint64_t)now->meter_count << 32) +
                      ((uint64_t)overhead->includes_gpus << 48);
    const struct measured *before =
        overhead->meter < pipeline->measured_slots ? &pipeline->measured[overhead->meter] : NULL;

    if (before && before->breaks == breaks && (int64_t)(counter_uj - before->counter_uj) < 0)
        counter_uj = before->counter_uj;
    return measure(pipeline, overhead->meter, now->t_us, counter_uj, breaks, false);
}

static bool is_reading(const struct sample *sample)
{
    return sample->kind == SAMPLE_ENERGY || sample->kind == SAMPLE_INTEGRAL ||
           sample->kind == SAMPLE_METER || sample->kind == SAMPLE_USAGE;
}

/* What the hardware has counted, after its books are open. */
static int measure_sample(struct pipeline *pipeline, const struct sample *sample)
{
    const struct gpu *gpu = pipeline->gpus[sample->gpu];
    const struct node_meter *meter;

    if (gpu && (sample->kind == SAMPLE_ENERGY || sample->kind == SAMPLE_INTEGRAL))
        return measure(pipeline, gpu->meter, sample->t_us, sample->counter_uj, sample->kind, false);
    if (sample->kind != SAMPLE_METER)
        return 0;
    meter = node_find_meter(&pipeline->node, &sample->meter);
    if (meter && meter->meter != LEDGER_NONE)
        return measure(pipeline, meter->meter, sample->t_us, sample->meter.counter_uj,
                       sample->meter.breaks, meter->modelled);
    if (pipeline->overhead.meter != LEDGER_NONE && pipeline->overhead.latest.t_us == sample->t_us)
        return measure_overhead(pipeline);
    return 0;
}

int pipeline_ingest(struct pipeline *pipeline, const struct sample *samples, size_t count)
{
    bool failed = false;

    for (size_t i = 0; i < count; i++) {
        const struct sample *sample = &samples[i];
        struct gpu *gpu = pipeline->gpus[sample->gpu];

        if (is_reading(sample)) /* the times of others may be of no clock */
            history_advance(pipeline->history, sample->t_us);
        if (sample->kind >= SAMPLE_METER) {
            failed |= node_ingest(&pipeline->node, sample) < 0;
            failed |= node_overhead_ingest(&pipeline->overhead, sample) < 0;
        } else if (sample->kind == SAMPLE_DEVICE) {
            failed |= add_gpu(pipeline, sample->gpu, &sample->device) < 0;
        } else if (gpu) {
            failed |= gpu_ingest(gpu, sample) < 0;
        }
        failed |= measure_sample(pipeline, sample) < 0;
    }
    return failed ? -ENOMEM : 0;
}

void pipeline_set_attached(struct pipeline *pipeline, uint32_t gpu, struct attached *attached,
                           size_t count)
{
    if (gpu < SAMPLE_GPU_MAX && pipeline->gpus[gpu])
        gpu_set_attached(pipeline->gpus[gpu], attached, count);
    else
        free(attached);
}

void pipeline_lose_devices(struct pipeline *pipeline, uint64_t now_us)
{
    for (uint32_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i])
            (void)gpu_ingest(pipeline->gpus[i],
                             &(struct sample){.kind = SAMPLE_LOST, .gpu = i, .t_us = now_us});
}

void pipeline_set_price(struct pipeline *pipeline, const struct price *price, uint64_t from_us)
{
    struct price *now = &pipeline->price, news = *price;

    news.factor.known = now->factor.known && price->factor.known;
    news.cost.known = now->cost.known && price->cost.known;
    if (news.factor.known)
        now->factor = news.factor;
    if (news.cost.known)
        now->cost = news.cost;
    now->pue_millionths = news.pue_millionths;
    ledger_set_price(pipeline->ledger, &news, from_us);
}

void pipeline_learn_idle(struct pipeline *pipeline, enum meter_kind kind, const char *id,
                         uint64_t power_mw)
{
    struct node *node = &pipeline->node;

    for (size_t i = 0; i < node->meter_count; i++)
        if (node->meters[i].kind == kind && strcmp(node->meters[i].id, id) == 0)
            idle_learn(&node->meters[i].idle, /* context= */ false, power_mw * 1000, USEC_PER_SEC);
}

int pipeline_finish(struct pipeline *pipeline)
{
    bool failed = false;

    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (pipeline->gpus[i])
            failed |= gpu_finish(pipeline->gpus[i]) < 0;
    node_finish(&pipeline->node);
    return failed ? -ENOMEM : 0;
}

void pipeline_hand_over_programs(struct pipeline *from, struct pipeline *to)
{
    program_archive_move(&from->archive, &to->archive);
    for (size_t i = 0; i < SAMPLE_GPU_MAX; i++)
        if (from->gpus[i])
            program_archive_keep(&to->archive, from->gpus[i]);
}

void pipeline_sweep(struct pipeline *pipeline, uint64_t now_us)
{
    pipeline_name_history(pipeline); /* before a workload is retired */
    if (pipeline->options.has_no_usage)
        workload_usages_expire(&pipeline->node.usages, now_us);
    ledger_sweep(pipeline->ledger, now_us);
}

void pipeline_set_names(struct pipeline *pipeline, pipeline_find_names *find, void *context)
{
    pipeline->options.find_names = find;
    pipeline->options.names_context = context;
}

int pipeline_fix_names(struct pipeline *pipeline, uint64_t now_us)
{
    const struct pipeline_options *options = &pipeline->options;
    struct ledger_unnamed unnamed = {0};
    int result = 0;

    while (options->find_names && ledger_next_unnamed(pipeline->ledger, now_us, &unnamed)) {
        struct workload_names names = {0};

        if (!options->find_names(options->names_context, &unnamed.owner, &names)) {
            bool is_awaited = options->are_names_awaited &&
                              options->are_names_awaited(options->names_context, &unnamed.owner);

            if (now_us < unnamed.opened_us + (is_awaited ? HOLD_AWAITED_US : HOLD_US))
                continue;
        }
        if (ledger_fix_names(pipeline->ledger, &unnamed, &names) < 0)
            result = -ENOMEM;
    }
    return result;
}
