/*
 * Containers of this node's pods from the Kubernetes API server: a list, then a watch for changes,
 * resumed where it ended. For nodes whose container runtime is out of reach.
 *
 * Whatever the server does costs names only: each request has a deadline, and the pause after a
 * failure grows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/http_trust.h"
#include "core/clock.h"
#include "identity/runtime.h"

struct kubernetes_api_options {
    struct http_client *client;
    int channel_fd;      /* the run ends when it is closed */
    const char *url;     /* "https://10.96.0.1:443" */
    const char *resolve; /* as in struct http_request */
    const char *node;
    const char *token;
    const struct http_trust *trust;
    const struct clock *clock;

    /* Called for each container, whenever something changes. */
    void (*add)(void *context, const struct container *container);

    /* Called after each success or failure: 0, -EACCES (access denied) or -EIO, with a text. The
     * duration is of the last list. */
    void (*report)(void *context, int result, const char *why, uint64_t list_duration_us);
    void *context;
};

/* Blocks until the channel is closed. -ECANCELED then, -EHOSTUNREACH (a host with a name has not
 * answered for a minute) or -ENOMEM. */
int kubernetes_api_run(const struct kubernetes_api_options *options);
