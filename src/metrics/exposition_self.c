/* The exporter itself: is it right, is it well. */
#include "metrics/exposition_parts.h"

static void ledger_health(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_LEDGER_IMBALANCE);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        exposition_meter_row(text, &snapshot->meters[i], snapshot->meters[i].imbalance_uj, MICRO);
}

static void source_row(struct text *text, const struct snapshot_source *source, enum metric metric)
{
    text_sample(text);
    text_label(text, "source", source->name);
    if (metric == METRIC_SOURCE_UP)
        text_value(text, source->up, WHOLE);
    else if (metric == METRIC_SOURCE_AGE)
        text_value(text, (int64_t)source->age_us, MICRO);
    else if (metric == METRIC_SOURCE_DURATION)
        text_value(text, (int64_t)source->duration_us, MICRO);
    else
        text_value(text, (int64_t)source->errors, WHOLE);
}

static void sources(struct text *text, const struct snapshot *snapshot)
{
    for (enum metric metric = METRIC_SOURCE_UP; metric <= METRIC_SOURCE_ERRORS; metric++) {
        text_family(text, metric);
        for (size_t i = 0; i < snapshot->source_count; i++)
            source_row(text, &snapshot->sources[i], metric);
    }
    text_family(text, METRIC_SOURCE_RESETS);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        exposition_meter_row(text, &snapshot->meters[i], (int64_t)snapshot->meters[i].resets,
                             WHOLE);
}

static void dropped(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_SAMPLES_DROPPED);
    for (size_t i = 0; i < snapshot->gpu_count; i++) {
        const struct snapshot_gpu *gpu = &snapshot->gpus[i];
        const struct {
            const char *reason;
            uint64_t count;
        } reasons[] = {{"garbage", gpu->labels_garbage},
                       {"repeated", gpu->labels_repeated},
                       {"late", gpu->labels_late}};

        for (size_t r = 0; r < ARRAY_SIZE(reasons); r++) {
            text_sample(text);
            text_label_u64(text, "gpu", gpu->gpu);
            text_label(text, "reason", reasons[r].reason);
            text_value(text, (int64_t)reasons[r].count, WHOLE);
        }
    }
    text_family(text, METRIC_SERIES_DROPPED);
    text_sample(text);
    text_label(text, "limit", "max-processes");
    text_value(text, (int64_t)snapshot->processes_dropped, WHOLE);
    text_sample(text);
    text_label(text, "limit", "max-workloads");
    text_value(text, (int64_t)snapshot->workloads_dropped, WHOLE);
}

static void one_value(struct text *text, enum metric metric, uint64_t value, unsigned digits)
{
    text_family(text, metric);
    text_sample(text);
    text_value(text, (int64_t)value, digits);
}

static void children(struct text *text, const struct snapshot *snapshot)
{
    text_family(text, METRIC_CHILD_STARTS);
    for (size_t i = 0; i < snapshot->child_count; i++) {
        text_sample(text);
        text_label(text, "child", snapshot->children[i].name);
        text_value(text, (int64_t)snapshot->children[i].starts, WHOLE);
    }
    one_value(text, METRIC_FRONT_STARTS,
              snapshot->child_count > 0 ? snapshot->children[0].starts : 0, WHOLE);
}

static void program(struct text *text, const struct snapshot *snapshot,
                    const struct exposition_options *options)
{
    if (options->pue_millionths > 0)
        one_value(text, METRIC_PUE, options->pue_millionths, MICRO);
    if (snapshot->processes_scanned) {
        one_value(text, METRIC_NODE_PROCESSES, snapshot->node_processes, WHOLE);
        one_value(text, METRIC_NODE_PROCESSES_OUTSIDE, snapshot->node_processes_outside, WHOLE);
    }
    one_value(text, METRIC_REPLAY_ACTIVE, snapshot->replay_active, WHOLE);
    children(text, snapshot);
    text_family(text, METRIC_BUILD_INFO);
    text_sample(text);
    text_label(text, "version", options->version);
    text_value(text, 1, WHOLE);
    one_value(text, METRIC_SELF_CPU, snapshot->self_cpu_us, MICRO);
    if (snapshot->self_rss_bytes > 0)
        one_value(text, METRIC_SELF_MEMORY, snapshot->self_rss_bytes, WHOLE);
    one_value(text, METRIC_SELF_START_TIME, snapshot->start_us, MICRO);
}

void exposition_self(struct text *text, const struct snapshot *snapshot,
                     const struct exposition_options *options)
{
    ledger_health(text, snapshot);
    sources(text, snapshot);
    dropped(text, snapshot);
    program(text, snapshot, options);
}
