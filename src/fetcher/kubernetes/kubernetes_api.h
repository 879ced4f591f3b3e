/*
 * The Kubernetes API server, asked for the containers of this node's pods: a list, then a watch
 * that tells of changes and is resumed where it ended. For nodes whose runtime cannot be asked.
 *
 * Whatever the server does costs names and nothing else: each request has a deadline, a failure is
 * followed by a pause that grows, and nothing is kept here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/http_trust.h"
#include "core/clock.h"
#include "identity/runtime.h"

struct kubernetes_api;

struct kubernetes_api_news {
    int how;              /* 0, -EACCES (it refuses us) or -EIO (it does not answer sensibly) */
    bool is_change;       /* the first, or other than the one before */
    const char *why;      /* of a failure */
    uint64_t duration_us; /* of the last list; 0: there was none */
};

struct kubernetes_api_options {
    const char *url;     /* "https://10.96.0.1:443" */
    const char *resolve; /* as in struct http_request */
    const char *node;
    const char *token;
    const struct http_trust *trust; /* which server it must be */
    const struct clock *clock;

    /* Called by kubernetes_api_run: with each container, as often as something changes. */
    void (*take)(void *context, const struct container *container);

    /* And each time that it answers or fails. */
    void (*told)(void *context, const struct kubernetes_api_news *news);
    void *context;
};

/* What libraries need from outside of a sandbox is fetched here. The options' strings must outlive
 * it. 0, -EINVAL (not https) or -ENOMEM. */
int kubernetes_api_new(const struct kubernetes_api_options *options,
                       struct kubernetes_api **ret_api);

/* Blocks until it is stopped, and closes its connections at the end. To be called once. */
void kubernetes_api_run(struct kubernetes_api *api);

/* From any thread: ends the run, or one that is still to come, at once. */
void kubernetes_api_stop(struct kubernetes_api *api);

/* Accepts NULL. */
void kubernetes_api_free(struct kubernetes_api *api);
