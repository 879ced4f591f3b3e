/*
 * Sources on a clock that the test moves, with the pipeline behind them and a record of everything.
 * Closing it checks that the books balance, and that what was recorded replays to the same ledger.
 *
 * nvml_fixture.h has it with the fake NVML, drm_fixture.h with a scripted machine.
 */
#pragma once

#include "file_fixture.h"
#include "tree_fixture.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "../fakes/nvml/fake_nvml.h"
#include "../golden/golden.h"
#include "attribution/pipeline.h"
#include "core/fs.h"
#include "core/macros.h"
#include "identity/identity.h"
#include "metrics/exposition.h"
#include "metrics/ledger_json.h"
#include "sources/gpu_counters.h"
#include "sources/source.h"
#include "sources/trace.h"

#define START_US ((uint64_t)1800000000000000) /* of every script */
#define SECOND   USEC_PER_SEC
#define JOULE    ((uint64_t)1000000)

enum { UNITS_MAX = 16, SOURCES_MAX = 2 };

struct fake_machine;

struct rig {
    char root[32]; /* holds proc and sys */
    struct host host;
    struct clock_manual clock;
    struct gpu_counters counters;
    struct source_context context;
    struct {
        const struct source_ops *ops;
        void *state;
    } sources[SOURCES_MAX];
    size_t source_count;
    struct source_unit units[UNITS_MAX];
    size_t unit_count;
    struct pipeline *pipeline;
    struct trace_writer writer;
    struct buffer recorded;
    bool keeps_recording;
    bool is_requested; /* somebody waits for the reads */
    uint64_t elapsed_us, step_us;
    unsigned errors;
    /* Is shown every sample; NULL: nobody. */
    void (*see)(void *watcher, const struct sample *sample);
    void *watcher;
    /* Moves all that is scripted to `elapsed_us`. */
    void (*move)(struct rig *rig);

    /* The fake NVML, if it is loaded. */
    void *library;
    typeof(fake_nvml_set_time_us) *set_time_us;
    typeof(fake_nvml_call_count) *call_count;
    typeof(fake_nvml_open_handles) *open_handles;
    typeof(fake_nvml_init_count) *init_count;
    typeof(fake_nvml_stale_uses) *stale_uses;

    struct fake_machine *machine; /* or NULL */
};

static inline int add_unit(const struct source_context *context, const struct source_unit *unit)
{
    struct rig *rig = context->owner;

    assert_true(rig->unit_count < UNITS_MAX);
    rig->units[rig->unit_count++] = *unit;
    return 0;
}

/* By the defaults of the exporter. */
static inline struct gpu_options rig_defaults(void)
{
    return (struct gpu_options){.interval_us = SECOND,
                                .idle_policy = IDLE_POLICY_PROPORTIONAL,
                                .attribution = ATTRIBUTION_INTENSITY,
                                .patience_us = 60 * SECOND};
}

/* `rig` has its root, with proc and sys in it. */
static inline void rig_begin(struct rig *rig, struct gpu_options gpu_options)
{
    const struct pipeline_options options = {
        .gpu = gpu_options,
        .max_processes = 4096,
        .max_workloads = 4096,
        .retention_us = UINT64_MAX,
        .find_owner = identity_find_owner,
    };
    char path[64];

    snprintf(path, sizeof(path), "%s/proc", rig->root);
    rig->host.procfs_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/sys", rig->root);
    rig->host.sysfs_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    rig->host.rootfs_fd = -1;
    clock_manual_init(&rig->clock, START_US);
    gpu_counters_init(&rig->counters);
    rig->context = (struct source_context){
        .host = &rig->host,
        .clock = &rig->clock.clock,
        .interval_us = SECOND,
        .counters = &rig->counters,
        .add_unit = add_unit,
        .program_wait_ms = 60000, /* a test that is held up shows the same */
        .owner = rig,
    };
    assert_int_equal(pipeline_new(&options, &rig->pipeline), 0);
    buffer_init(&rig->recorded, 1 << 30);
    trace_write_header(&rig->recorded);
    rig->keeps_recording = true;
}

static inline void rig_add_source(struct rig *rig, const struct source_ops *ops)
{
    struct error err = {""};

    assert_true(rig->source_count < SOURCES_MAX);
    rig->sources[rig->source_count].ops = ops;
    if (ops->open(&rig->context, &rig->sources[rig->source_count].state, &err) != 0)
        fail_msg("%s: %s", ops->name, err.text);
    rig->source_count++;
}

static inline void take(struct rig *rig, struct batch *batch)
{
    for (size_t i = 0; rig->see && i < batch->count; i++)
        rig->see(rig->watcher, &batch->samples[i]);
    if (rig->keeps_recording)
        for (size_t i = 0; i < batch->count; i++)
            trace_write_sample(&rig->writer, &batch->samples[i], &rig->recorded, NULL);
    assert_int_equal(pipeline_ingest(rig->pipeline, batch->samples, batch->count), 0);
    batch_reset(batch);
}

/* Plays on for so long. */
static inline void play(struct rig *rig, uint64_t duration_us)
{
    uint64_t until_us = rig->elapsed_us + duration_us;
    struct batch batch;

    batch_init(&batch);
    for (; rig->elapsed_us < until_us; rig->elapsed_us += rig->step_us) {
        struct error err;

        rig->move(rig);
        rig->clock.now_us = START_US + rig->elapsed_us;
        for (size_t i = 0; rig->elapsed_us % SECOND == 0 && i < rig->source_count; i++) {
            rig->errors += rig->sources[i].ops->read(rig->sources[i].state, &batch, &err) < 0;
            take(rig, &batch);
        }
        for (size_t i = rig->unit_count; i-- > 0;) {
            int r;

            batch.is_requested = rig->is_requested;
            r = rig->units[i].ops->read(rig->units[i].state, &batch, &err);
            take(rig, &batch);
            rig->errors += r < 0;
            if (r != -ENODEV)
                continue;
            rig->units[i].ops->close(rig->units[i].state);
            rig->units[i] = rig->units[--rig->unit_count];
        }
    }
    batch_done(&batch);
}

static inline struct snapshot *books(const struct rig *rig)
{
    struct snapshot *snapshot = malloc(sizeof(*snapshot));

    assert_non_null(snapshot);
    snapshot_init(snapshot);
    assert_int_equal(pipeline_snapshot(rig->pipeline, rig->clock.now_us, 5 * SECOND, snapshot), 0);
    for (size_t m = 0; m < snapshot->meter_count; m++)
        assert_int_equal(snapshot->meters[m].imbalance_uj, 0);
    return snapshot;
}

static inline void close_books(struct snapshot *snapshot)
{
    snapshot_done(snapshot);
    free(snapshot);
}

static inline void check_page(const struct rig *rig, const char *path)
{
    const struct exposition_options options = {
        .format = PAGE_TEXT, .process_prefix = "my_gpu_process", .version = "1.2.3"};
    struct snapshot *snapshot = books(rig);
    struct buffer page;

    snapshot->start_us = START_US;
    buffer_init(&page, 16 << 20);
    exposition_render(snapshot, &options, EXPOSITION_ALL, &page);
    golden_check(path, &page);
    buffer_done(&page);
    close_books(snapshot);
}

static inline struct snapshot_process process_of(const struct rig *rig, uint32_t gpu, uint32_t pid)
{
    struct snapshot *snapshot = books(rig);
    struct snapshot_process found = {0};

    for (size_t i = 0; i < snapshot->process_count; i++)
        if (snapshot->processes[i].gpu == gpu && snapshot->processes[i].pid == pid &&
            !snapshot->processes[i].superseded)
            found = snapshot->processes[i];
    close_books(snapshot);
    assert_int_equal(found.pid, pid);
    found.name = NULL;
    return found;
}

static inline const struct ledger_meter *meter_of(const struct rig *rig, int gpu)
{
    return ledger_meter(rig->pipeline->ledger, rig->pipeline->gpus[gpu]->meter);
}

static inline void print_ledger(const struct pipeline *pipeline, struct buffer *out)
{
    struct snapshot snapshot;

    snapshot_init(&snapshot);
    assert_int_equal(pipeline_snapshot(pipeline, 0, 0, &snapshot), 0);
    buffer_init(out, 1 << 24);
    ledger_json(&snapshot, out);
    snapshot_done(&snapshot);
}

/* What was recorded, through the reader and a second pipeline: the same ledger, to the byte; and
 * written again, the same record. */
static inline void check_replay(const struct rig *rig)
{
    struct pipeline *pipeline;
    struct trace_reader *reader;
    struct buffer live, replayed, again;
    struct trace_writer writer = {0};
    struct error err = {""};
    struct batch batch;
    char path[64];
    int fd = memfd_create("recorded", MFD_CLOEXEC), r;

    assert_int_equal(fs_write_all(fd, rig->recorded.data, rig->recorded.len), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_int_equal(pipeline_new(&rig->pipeline->options, &pipeline), 0);
    if (trace_reader_open(path, &reader, &err) != 0)
        fail_msg("%s", err.text);
    batch_init(&batch);
    buffer_init(&again, 1 << 30);
    trace_write_header(&again);
    while ((r = trace_reader_next(reader, &batch, &err)) > 0) {
        trace_write_sample(&writer, &batch.samples[0], &again, NULL);
        assert_int_equal(pipeline_ingest(pipeline, batch.samples, batch.count), 0);
        batch_reset(&batch);
    }
    if (r < 0)
        fail_msg("%s", err.text);
    pipeline_finish(pipeline);
    print_ledger(rig->pipeline, &live);
    print_ledger(pipeline, &replayed);
    if (live.len != replayed.len || memcmp(live.data, replayed.data, live.len) != 0)
        fail_msg("live:\n%.*s\nreplayed:\n%.*s", (int)live.len, live.data, (int)replayed.len,
                 replayed.data);
    assert_int_equal(again.len, rig->recorded.len);
    assert_memory_equal(again.data, rig->recorded.data, again.len);
    buffer_done(&again);
    buffer_done(&live);
    buffer_done(&replayed);
    batch_done(&batch);
    trace_reader_close(reader);
    pipeline_free(pipeline);
    close(fd);
}

static inline void rig_end(struct rig *rig)
{
    pipeline_finish(rig->pipeline);
    close_books(books(rig));
    if (rig->keeps_recording)
        check_replay(rig);
    for (size_t i = 0; i < rig->unit_count; i++)
        rig->units[i].ops->close(rig->units[i].state);
    for (size_t i = 0; i < rig->source_count; i++)
        rig->sources[i].ops->close(rig->sources[i].state);
    pipeline_free(rig->pipeline);
    buffer_done(&rig->recorded);
    close(rig->host.procfs_fd);
    close(rig->host.sysfs_fd);
    tree_remove(rig->root, "");
}
