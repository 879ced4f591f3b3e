/*
 * What DCGM would tell of the processes that share a board, beside what is booked to them, in some
 * seconds of measurement.
 *
 * DCGM's energy of a process is what the board's counter moved since the process started
 * (GetPidInfo in DcgmHostEngineHandler.cpp): all that share the board are told all of it.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "collector/measurement.h"
#include "core/macros.h"
#include "model/report.h"

static const uint64_t MEASURE_US = 4 * USEC_PER_SEC;
static const uint64_t WINDOW_US = USEC_PER_SEC;

static bool is_of_nvidia(const char *source)
{
    return strcmp(source, "nvml") == 0 || strcmp(source, "dcgm") == 0;
}

static void measure(struct measurement *measurement)
{
    const struct clock *clock = measurement->clock;
    uint64_t until_us = clock->monotonic_us(clock) + MEASURE_US;

    while (clock->monotonic_us(clock) < until_us) {
        poll(&(struct pollfd){.fd = measurement->wake_fd, .events = POLLIN}, 1, 100);
        measurement_read(measurement);
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
    struct measurement *measurement = NULL;
    struct error ignored;

    if (!report->has_shared_gpu ||
        measurement_open(
            &(struct measurement_options){
                .options = options, .host = host, .interval_us = WINDOW_US, .reads = is_of_nvidia},
            &measurement, &ignored) < 0)
        return true;
    measure(measurement);
    if (pipeline_finish(measurement->pipeline) == 0)
        report_boards(report, measurement->pipeline, measurement->start_us);
    return measurement_close(measurement);
}
