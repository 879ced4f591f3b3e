/*
 * The trace reader and everything behind it: any bytes are an error with a text, or a ledger that
 * balances to the microjoule, and in the time of devices to the microsecond.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attribution/pipeline.h"
#include "check_books.h"
#include "core/fs.h"
#include "core/macros.h"
#include "identity/identity.h"
#include "identity/recorded_names.h"
#include "sources/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With the memory of the pipeline before, if there is one; then the new one takes its place. */
static void play(struct trace_reader *reader, enum attribution_method method,
                 struct pipeline **before)
{
    const struct pipeline_options options = {
        .gpu = {.interval_us = USEC_PER_SEC,
                .attribution = method,
                .patience_us = 60 * USEC_PER_SEC},
        .max_processes = 8, /* small, so that the caps are reached */
        .max_workloads = 4,
        .retention_us = UINT64_MAX,
        .embodied = {{[METER_GPU] = {true, 1},
                      [METER_PACKAGE] = {true, 1},
                      [METER_NODE_OVERHEAD] = {true, 1}}},
        .find_owner = identity_find_owner,
    };
    struct pipeline *pipeline;
    struct recorded_names *names;
    struct error err = {""};
    struct batch batch;
    int r;

    if (pipeline_new(&options, &pipeline) < 0 || recorded_names_new(&names) < 0)
        abort();
    if (*before)
        pipeline_hand_over_programs(*before, pipeline);
    pipeline_free(*before);
    *before = pipeline;
    batch_init(&batch);
    while ((r = trace_reader_next(reader, &batch, &err)) > 0) {
        if (pipeline_ingest(pipeline, batch.samples, batch.count) < 0)
            abort();
        if (batch.samples[0].kind == SAMPLE_NAMES)
            (void)recorded_names_learn(names, batch.samples[0].names); /* there may be no room */
        batch_reset(&batch);
    }
    if (r < 0 && err.text[0] == '\0')
        abort();
    if (pipeline_finish(pipeline) < 0)
        abort();
    pipeline_set_names(pipeline, recorded_names_find, names);
    pipeline_fix_names(pipeline, 0);
    check_books(pipeline);
    batch_done(&batch);
    recorded_names_free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_close_ int fd = memfd_create("trace", MFD_CLOEXEC);
    static const enum attribution_method methods[] = {ATTRIBUTION_INTENSITY, ATTRIBUTION_INTENSITY,
                                                      ATTRIBUTION_TIMESHARE};
    struct trace_reader *reader = NULL;
    struct pipeline *pipeline = NULL;
    struct error err = {""};
    char path[64];

    if (fd < 0 || fs_write_all(fd, (const char *)data, size) < 0)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (trace_reader_open(path, &reader, &err) == 0) {
        for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
            play(reader, methods[i], &pipeline);
            if (trace_reader_rewind(reader, &err) < 0)
                abort();
        }
    } else if (err.text[0] == '\0') {
        abort();
    }
    pipeline_free(pipeline);
    trace_reader_close(reader);
    return 0;
}
