/*
 * Measurement: the sources, the books and the names of this node in this process, for verbs that
 * measure for a while without a daemon. Each source has a thread of its own: one that hangs costs
 * its own meters, and measurement_close() tells.
 */
#pragma once

#include "attribution/pipeline.h"
#include "collector/emissions.h"
#include "collector/source_set.h"
#include "collector/tariff_clock.h"
#include "config/options.h"
#include "host/host.h"
#include "identity/identity.h"
#include "sources/gpu_counters.h"

struct measurement_options {
    const struct options *options; /* this and the host must outlive the measurement */
    const struct host *host;
    uint64_t interval_us;              /* length of a window */
    bool (*reads)(const char *source); /* of those that are on; NULL: all of them */
    bool reports_usage;                /* the caller does, in place of the source `cgroups` */
    bool keeps_everything;             /* no retention */
    bool with_names;                   /* of workloads */
    bool with_prices;                  /* emissions and cost, by the options: nobody is asked */
};

/* Where it is in memory, it stays: sources point into it. */
struct measurement {
    const struct options *options;
    const struct clock *clock;
    struct source_switches switches;
    struct source_estimate model;
    struct gpu_counters counters;
    struct source_set sources;
    struct pipeline *pipeline;
    struct identity *identity; /* NULL: no names */
    struct emissions emissions;
    struct tariff_clock tariff; /* no path: no --cost.tariff-file */
    char node[256];
    uint64_t start_us, sweep_us;
    int wake_fd; /* readable when there is something to read */
    int result;  /* 0, or -ENOMEM: some energy stays unattributed */
    bool has_prices;
};

/* Opens the sources of this node, and starts their threads. Sources that cannot be used are logged.
 * It takes the time zone of a tariff for the process. */
int measurement_open(const struct measurement_options *options,
                     struct measurement **ret_measurement, struct error *err);

/* Books what was read since the last call. To be called when `wake_fd` is readable, and at least
 * every second: sources that come and go are noticed, too. */
void measurement_read(struct measurement *measurement);

/* Reads everything at once, out of turn, and books it. What does not answer within `wait_us` comes
 * later. False: something did not. */
bool measurement_read_now(struct measurement *measurement, uint64_t wait_us);

/* As a scrape of the daemon shows it, into an initialised snapshot. 0 or -ENOMEM. */
int measurement_snapshot(struct measurement *measurement, struct snapshot *snapshot);

/* Ends the threads, and frees everything. False: one hangs, so that the program may only end by
 * _exit(), and the host must stay. Accepts NULL. */
bool measurement_close(struct measurement *measurement);
