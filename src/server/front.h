/*
 * Front: the process that talks to strangers. The collector starts it from its own executable with
 * the listeners and one end of a channel, and starts another when it dies. It knows nothing but
 * bodies, and with --kubernetes.api, names, with --redfish.url, the node's power.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "config/api_config.h"
#include "config/redfish_config.h"

struct front_options {
    int channel_fd;
    int first_listener_fd; /* and the listener_count - 1 that follow it */
    size_t listener_count;
    const char *metrics_path;
    bool text_only; /* --compat: never OpenMetrics */
    const char *version;
    bool has_web_config;          /* wait for it before serving */
    bool is_failing;              /* those before it ended early: not ready until it is well */
    const struct api_config *api; /* NULL: no API is asked */
    int names_fd;                 /* with an API: where names go to */
    const struct redfish_flags *redfish; /* NULL: no BMC is asked */
    uint64_t redfish_delay_us;           /* before it is asked first */
    int power_fd;                        /* with a BMC: where its readings go to */
};

/*
 * Enters the sandbox and serves until the channel is at its end, then gives responses on their way
 * 300 ms. Logs what went wrong. Returns the exit status: 0, or 1 when it could not start or when
 * the collector broke the protocol.
 */
int front_run(const struct front_options *options);
