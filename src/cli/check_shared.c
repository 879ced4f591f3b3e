/*
 * What DCGM would tell of the processes that share a board, beside what is booked to them, in some
 * seconds of measurement.
 *
 * DCGM's energy of a process is what the board's counter moved since the process started
 * (GetPidInfo in DcgmHostEngineHandler.cpp): all that share the board are told all of it.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "attribution/pipeline.h"
#include "cli/cli.h"
#include "collector/source_set.h"
#include "config/node_config.h"
#include "core/macros.h"
#include "model/report.h"
#include "sources/gpu_counters.h"

static const uint64_t MEASURE_US = 4 * USEC_PER_SEC;
static const uint64_t WINDOW_US = USEC_PER_SEC;
static const uint64_t STOP_SOURCE_US = 200000;

/* What a thread that hangs goes on to use. */
struct measurement {
    struct source_switches switches;
    struct gpu_counters counters;
    struct source_set sources;
};

static void take_batch(void *context, const struct batch *batch)
{
    (void)pipeline_ingest(context, batch->samples, batch->count);
}

/* All but those of NVIDIA's boards. */
static void switch_others_off(struct source_switches *switches)
{
    for (size_t i = 0; source_table[i]; i++) {
        const char *name = source_table[i]->name;

        if (strcmp(name, "nvml") != 0 && strcmp(name, "dcgm") != 0 &&
            !source_is_off(switches, name))
            switches->off[switches->off_count++] = name;
    }
}

static void measure(struct source_set *sources, struct pipeline *pipeline, int wake_fd)
{
    uint64_t now_us = clock_system.monotonic_us(&clock_system), until_us = now_us + MEASURE_US;

    for (; now_us < until_us; now_us = clock_system.monotonic_us(&clock_system)) {
        uint64_t ignored;

        if (now_us >= source_set_next_due_us(sources))
            (void)source_set_open_due(sources, now_us, NULL);
        poll(&(struct pollfd){.fd = wake_fd, .events = POLLIN}, 1, 100);
        (void)!read(wake_fd, &ignored, sizeof(ignored));
        source_set_read(sources, now_us, take_batch, pipeline);
    }
}

static double joules(uint64_t uj)
{
    return (double)uj / 1e6;
}

static bool is_told(const struct snapshot_process *process, const struct snapshot_meter *meter,
                    uint64_t began_us)
{
    return process->gpu == meter->gpu && process->pid != 0 && !process->superseded &&
           process->start_us <= began_us;
}

static void report_board(struct report *report, const struct snapshot *snapshot,
                         const struct snapshot_meter *meter, uint64_t began_us)
{
    double counted = joules(meter->energy_uj);
    size_t count = 0;
    uint64_t booked_uj = 0;
    char what[64];

    for (size_t i = 0; i < snapshot->process_count; i++)
        count += is_told(&snapshot->processes[i], meter, began_us);
    if (count < 2)
        return;
    for (size_t i = 0; i < snapshot->process_count; i++) {
        const struct snapshot_process *process = &snapshot->processes[i];
        uint64_t process_uj = process->active_uj + process->idle_uj;

        if (!is_told(process, meter, began_us))
            continue;
        booked_uj += process_uj;
        snprintf(what, sizeof(what), "gpu %u: pid %u", meter->gpu, process->pid);
        report_add(report, what, VERDICT_OK, NULL, "%.80s%sbooked %.1f J; DCGM would say %.1f J",
                   process->name, process->name[0] ? ": " : "", joules(process_uj), counted);
    }
    snprintf(what, sizeof(what), "gpu %u: shared", meter->gpu);
    report_add(
        report, what, VERDICT_OK, NULL,
        "the board counted %.1f J, of which %.1f J are booked to these %zu processes; DCGM's "
        "figures add up to %.1f J",
        counted, joules(booked_uj), count, counted * (double)count);
}

static void report_boards(struct report *report, const struct pipeline *pipeline, uint64_t began_us)
{
    struct snapshot snapshot;

    snapshot_init(&snapshot);
    if (pipeline_snapshot(pipeline, 0, 0, &snapshot) == 0)
        for (size_t i = 0; i < snapshot.meter_count; i++)
            if (snapshot.meters[i].kind == METER_GPU)
                report_board(report, &snapshot, &snapshot.meters[i], began_us);
    snapshot_done(&snapshot);
}

bool check_shared(struct report *report, const struct host *host, const struct options *options)
{
    struct pipeline_options books = node_config_pipeline(options, true);
    _cleanup_free_ struct measurement *of = calloc(1, sizeof(*of));
    _cleanup_close_ int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    uint64_t began_us = clock_system.realtime_us(&clock_system);
    struct pipeline *pipeline = NULL;
    bool is_idle;

    books.gpu.interval_us = WINDOW_US;
    if (!report->has_shared_gpu || !of || wake_fd < 0 || pipeline_new(&books, &pipeline) < 0)
        return true;
    node_config_switches(options, &of->switches);
    switch_others_off(&of->switches);
    gpu_counters_init(&of->counters);
    source_set_init(&of->sources,
                    &(struct source_context){
                        .host = host,
                        .clock = &clock_system,
                        .interval_us = WINDOW_US,
                        .nvml_library = "libnvidia-ml.so.1",
                        .counters = &of->counters,
                        .switches = &of->switches,
                    },
                    wake_fd, WINDOW_US);
    measure(&of->sources, pipeline, wake_fd);
    is_idle = source_set_stop(&of->sources, STOP_SOURCE_US);
    if (!is_idle)
        (void)TAKE_PTR(of);
    if (pipeline_finish(pipeline) == 0)
        report_boards(report, pipeline, began_us);
    pipeline_free(pipeline);
    return is_idle;
}
