/*
 * The collector: the process that reads meters and keeps the books. One event loop; each source has
 * its own thread behind a runner, and the front is another process behind a channel.
 */
#pragma once

#include "app/front_process.h"
#include "app/options.h"
#include "core/error.h"
#include "model/host.h"

struct collector_options {
    const struct options *options;
    const struct host *host;
    struct front_process_options front;
};

/* Runs until SIGTERM or SIGINT, then settles what is pending. 0 or -errno if it could not start. */
int collector_run(const struct collector_options *options, struct error *err);
