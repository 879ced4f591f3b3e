/*
 * The collector: the process that reads meters and keeps the books. One event loop; each source has
 * its own thread behind a runner; the server and the fetchers are processes behind channels.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/api_config.h"
#include "config/options.h"
#include "config/web_watch.h"
#include "core/error.h"
#include "host/host.h"

struct collector_options {
    const struct options *options; /* both must outlive it */
    struct host *host;             /* it gets the secret and the boot time of the previous run */
    const int *listener_fds;       /* stay the caller's, and open for as long as it runs */
    size_t listener_count;
    struct web_watch *web;        /* NULL: no --web.config.file; else it must outlive it */
    const struct api_config *api; /* NULL: no --kubernetes.api; else likewise */
    bool with_bmc;                /* --redfish.url */
};

struct collector;

/* Opens the sources and starts the server. Errors are for people. What there is then is to be
 * closed on failure, too: a source may hang. */
int collector_open(const struct collector_options *options, struct collector **ret_collector,
                   struct error *err);

/* Runs until SIGTERM or SIGINT, then settles what is pending. */
void collector_run(struct collector *collector);

/* Accepts NULL. False: a source hangs and uses it, so that nothing was freed: the process must end
 * with _exit(). */
bool collector_close(struct collector *collector);
