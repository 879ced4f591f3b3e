/* The state of a pipeline: any bytes are rejected, or give books that balance, that a run can go on
 * with, and that can be packed again. */
#include <stdint.h>
#include <stdlib.h>

#include "attribution/pipeline.h"
#include "core/macros.h"
#include "emissions/choice.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t NOW_US = 1800000000000000;

static void own_by_cgroup(const struct sample_process *who, struct workload_owner *ret_owner)
{
    (void)who;
    *ret_owner = (struct workload_owner){.kind = WORKLOAD_UNIT, .id = "a.service"};
}

static struct pipeline *new_pipeline(void)
{
    const struct pipeline_options options = {
        .gpu = {.interval_us = USEC_PER_SEC, .attribution = ATTRIBUTION_INTENSITY},
        .max_processes = 16,
        .max_workloads = 16,
        .retention_us = 300 * USEC_PER_SEC,
        .embodied = {{[METER_GPU] = {true, 1000000}}},
        .find_owner = own_by_cgroup,
    };
    struct pipeline *pipeline;

    if (pipeline_new(&options, &pipeline) < 0)
        abort();
    return pipeline;
}

static void check_books(const struct pipeline *pipeline)
{
    struct snapshot snapshot;

    for (uint32_t i = 0; i < ledger_meter_count(pipeline->ledger); i++)
        if (!ledger_is_balanced(pipeline->ledger, i))
            abort();
    snapshot_init(&snapshot);
    if (pipeline_snapshot(pipeline, NOW_US, USEC_PER_SEC, &snapshot) < 0)
        abort();
    snapshot_done(&snapshot);
}

static int resume(struct pipeline *pipeline, struct span bytes, bool is_same_boot)
{
    const struct pipeline_resumption resumption = {.is_same_boot = is_same_boot, .now_us = NOW_US};

    return pipeline_unpack_state(pipeline, &(struct unpack){.rest = bytes}, &resumption);
}

/* A board and a process that may be in the state, an hour later. */
static void go_on(struct pipeline *pipeline)
{
    static const struct sample_listed listed = {10, 1 << 20, SAMPLE_NO_INSTANCE,
                                                SAMPLE_NO_INSTANCE};
    static const struct counter hardware = {.last = 5000000, .max_per_s = 1000000000};
    const struct sample samples[] = {
        {.kind = SAMPLE_DEVICE,
         .device = {.uuid = "GPU-0", .name = "NVIDIA H200", .driver = "580"}},
        {.kind = SAMPLE_PROCESS,
         .t_us = NOW_US,
         .process = {.pid = 10, .cgroup = "/a", .name = "p", .program = {17, 18}}},
        {.kind = SAMPLE_LIST, .t_us = NOW_US, .list = {.count = 1, .entries = &listed}},
        {.kind = SAMPLE_ENERGY, .t_us = NOW_US, .counter_uj = 3007000000},
        {.kind = SAMPLE_LABEL,
         .t_us = NOW_US,
         .label = {.pid = 10, .at_us = NOW_US, .sm_percent = 9}},
        {.kind = SAMPLE_ENERGY, .t_us = NOW_US + 5 * USEC_PER_SEC, .counter_uj = 3107000000},
        {.kind = SAMPLE_METER,
         .t_us = NOW_US,
         .meter = {.source = "rapl", .kind = METER_PACKAGE, .id = "0", .hardware = &hardware}},
        {.kind = SAMPLE_USAGE, .t_us = NOW_US, .usage = {.is_first = true}},
        {.kind = SAMPLE_USAGE, .t_us = NOW_US + USEC_PER_SEC, .usage = {.busy_us = 5}},
    };

    (void)pipeline_ingest(pipeline, samples, ARRAY_SIZE(samples));
    (void)pipeline_finish(pipeline);
    pipeline_sweep(pipeline, NOW_US + 7200 * USEC_PER_SEC);
    check_books(pipeline);
}

static void check_again(struct pipeline *pipeline)
{
    struct pipeline *again = new_pipeline();
    struct buffer packed;

    buffer_init(&packed, 256 << 20);
    pipeline_pack_state(pipeline, &packed);
    if (!buffer_failed(&packed) && resume(again, (struct span){packed.data, packed.len}, true) < 0)
        abort();
    buffer_done(&packed);
    check_books(again);
    pipeline_free(again);
}

static void check_factors(struct span bytes)
{
    struct coder coder = {.in.rest = bytes};
    struct choice choice = {.count = 1};

    choice.lines[0] =
        (struct choice_entry){.factor = {.provider = "rte", .zone = "FR"}, .is_live = true};
    choice_code(&choice, (struct choice_now){NOW_US, USEC_PER_SEC}, 0, &coder);
    if (choice.lines[0].factor.ug_per_kwh > PRICE_FACTOR_MAX_G * (uint64_t)1000000)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span bytes = {(const char *)data + 1, size - 1};
    struct pipeline *pipeline;

    if (size == 0)
        return 0;
    check_factors(bytes);
    pipeline = new_pipeline();
    if (resume(pipeline, bytes, data[0] & 1) == 0) {
        check_books(pipeline);
        check_again(pipeline);
        go_on(pipeline);
        check_again(pipeline);
    }
    pipeline_free(pipeline);
    return 0;
}
