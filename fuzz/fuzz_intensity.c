/*
 * The estimator and everything around it: any sequence of samples of one GPU, in any order and with
 * any values, gives books that balance to the microjoule and numbers that are numbers.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "attribution/pipeline.h"
#include "check_books.h"
#include "core/macros.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Few enough to meet again, more than the estimator has places for. */
enum { PIDS = 48, KINDS = 4, LISTED_MAX = 64 };

struct input {
    const uint8_t *data;
    size_t size;
};

static uint32_t take(struct input *input, size_t bytes)
{
    uint32_t value = 0;

    for (; bytes > 0 && input->size > 0; bytes--, input->size--)
        value = value << 8 | *input->data++;
    return value;
}

struct play {
    struct pipeline *pipeline;
    uint64_t now_us, counter_uj;
};

static void feed(const struct play *play, struct sample sample)
{
    sample.t_us = play->now_us;
    if (pipeline_ingest(play->pipeline, &sample, 1) < 0)
        abort();
}

static void feed_device(const struct play *play, const char *uuid)
{
    feed(play, (struct sample){.kind = SAMPLE_DEVICE,
                               .device = {.uuid = uuid, .name = "", .driver = "580"}});
}

static void feed_gpm(const struct play *play, struct input *input)
{
    struct sample sample = {
        .kind = SAMPLE_GPM,
        .gpm = {.valid = (uint16_t)take(input, 2), .instance = SAMPLE_NO_INSTANCE}};
    uint32_t unit = take(input, 1) < 250 ? 400 : UINT32_MAX / 255; /* percents, or absurd */

    for (size_t i = 0; i < SAMPLE_GPM_COUNT; i++)
        sample.gpm.millipercent[i] = take(input, 1) * unit;
    feed(play, sample);
}

static void feed_label(const struct play *play, struct input *input)
{
    uint64_t ago_us = take(input, 1) * 10000ULL;

    feed(play, (struct sample){.kind = SAMPLE_LABEL,
                               .label = {.pid = take(input, 1) % PIDS,
                                         .at_us = play->now_us - MIN(ago_us, play->now_us),
                                         .sm_percent = (uint16_t)(take(input, 1) % 128),
                                         .memory_percent = (uint16_t)(take(input, 1) % 128),
                                         .in_proc = ago_us % 3 == 0}});
}

static void feed_list(const struct play *play, struct input *input)
{
    struct sample_listed entries[LISTED_MAX];
    enum sample_list_kind kind = (enum sample_list_kind)(take(input, 1) % SAMPLE_LIST_KINDS);
    size_t count = take(input, 1) % LISTED_MAX;
    uint32_t first = take(input, 1), stride = take(input, 1);

    for (size_t i = 0; i < count; i++)
        entries[i] = (struct sample_listed){(first + (uint32_t)i * stride) % PIDS, 1 << 20,
                                            SAMPLE_NO_INSTANCE, SAMPLE_NO_INSTANCE};
    feed(play, (struct sample){.kind = SAMPLE_LIST,
                               .list = {.kind = kind, .count = count, .entries = entries}});
}

static void feed_process(const struct play *play, struct input *input)
{
    static const char *const names[KINDS] = {"a", "b", "nvidia-cuda-mps-server", ""};
    uint32_t kind = take(input, 1);

    feed(play, (struct sample){.kind = SAMPLE_PROCESS,
                               .process = {.pid = take(input, 1) % PIDS,
                                           .uid = kind % 7 ? kind % 3 : SAMPLE_UID_UNKNOWN,
                                           .start_us = 1 + take(input, 1),
                                           .name = names[kind % KINDS],
                                           .cgroup = kind % 5 ? "" : "/a"}});
}

static void feed_utilisation(const struct play *play, struct input *input)
{
    feed(play, (struct sample){.kind = SAMPLE_UTILISATION,
                               .utilisation = {.gpu_percent = (uint8_t)(take(input, 1) % 101),
                                               .sm_clock_mhz = take(input, 2)}});
}

static void feed_event(const struct play *play, uint32_t event)
{
    if (event % 4 == 0)
        feed(play, (struct sample){.kind = SAMPLE_LOST});
    else if (event % 4 == 1)
        feed_device(play, event & 128 ? "GPU-1" : "GPU-0");
    else
        pipeline_sweep(play->pipeline, play->now_us);
}

static void step(struct play *play, struct input *input)
{
    uint32_t what = take(input, 1);

    switch (what % 8) {
    case 0:
        play->now_us += 1 + take(input, 1) * 20000ULL;
        break;
    case 1:
        play->counter_uj += take(input, 2) * 4000ULL; /* up to 262 J */
        if (what == 249)
            play->counter_uj = 0;
        feed(play, (struct sample){.kind = what & 64 ? SAMPLE_INTEGRAL : SAMPLE_ENERGY,
                                   .counter_uj = play->counter_uj});
        break;
    case 2:
        feed_gpm(play, input);
        break;
    case 3:
        feed_label(play, input);
        break;
    case 4:
        feed_list(play, input);
        break;
    case 5:
        feed_process(play, input);
        break;
    case 6:
        feed_utilisation(play, input);
        break;
    case 7:
        feed_event(play, take(input, 1));
        break;
    }
}

static void check_numbers(const struct gpu *gpu)
{
    const struct intensity *intensity = &gpu->learning->intensity;
    const struct states *states = &intensity->states;

    for (size_t s = 0; s < states->count; s++) {
        if (!(states->all[s].weight > 0) || !isfinite(states_watts(states, &states->all[s].mean)))
            abort();
        for (size_t t = 0; t <= TENANTS_MAX; t++)
            if (!(states->all[s].share[t] >= 0 && states->all[s].share[t] < 1.001))
                abort();
    }
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        if (!(intensity->known & (1U << t)))
            continue;
        if (!(intensity->watts[t] > 0) || !isfinite(intensity->watts_error[t][t]))
            abort();
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            if (!(intensity->signatures[t][f] >= 0))
                abort();
    }
}

static void own_by_cgroup(const struct sample_process *who, struct workload_owner *ret_owner)
{
    *ret_owner = (struct workload_owner){.kind = who->cgroup[0] ? WORKLOAD_UNIT : WORKLOAD_PROCESS};
    snprintf(ret_owner->id, sizeof(ret_owner->id), "%s", who->cgroup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t intervals_us[] = {USEC_PER_SEC, 100000, 2 * USEC_PER_SEC, 300000};
    struct input input = {data, size};
    uint32_t how = take(&input, 1);
    const struct pipeline_options options = {
        .gpu = {.interval_us = intervals_us[how % 4],
                .idle_policy = (enum idle_policy)(how / 4 % 4),
                .attribution = ATTRIBUTION_INTENSITY,
                .patience_us = how & 16 ? 0 : 60 * USEC_PER_SEC},
        .max_processes = how & 32 ? 8 : 100, /* the cap is reached, or not */
        .max_workloads = 100,
        .retention_us = UINT64_MAX,
        .find_owner = own_by_cgroup,
    };
    struct play play = {.now_us = how & 64 ? 0 : 1794725358000000};

    if (pipeline_new(&options, &play.pipeline) < 0)
        abort();
    feed_device(&play, "GPU-0");
    while (input.size > 0)
        step(&play, &input);
    if (pipeline_finish(play.pipeline) < 0)
        abort();
    check_books(play.pipeline);
    check_numbers(play.pipeline->gpus[0]);
    pipeline_free(play.pipeline);
    return 0;
}
