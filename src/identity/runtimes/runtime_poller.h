/*
 * Runtime poller: one runtime behind one socket, polled on a thread of its own when names are
 * missing, or, if GPUs are wanted, after every probe.
 *
 * A runtime that fails or hangs costs names and GPUs only: a call ends at its deadline and is
 * retried with back-off, and no other thread waits for it. The deadline is long, because a runtime
 * that starts many containers at once is slow just when their names are wanted.
 */
#pragma once

#include "core/clock.h"
#include "identity/container_cache.h"
#include "identity/gpus/attachments.h"
#include "identity/runtime.h"
#include "identity/status.h"

struct runtime_poller;

struct runtime_poller_options {
    const struct runtime_ops *runtime;
    const char *name; /* the `source` label; both texts are copied */
    const char *socket_path;
    unsigned number; /* of the runtime in the cache */
    struct container_cache *container_cache;
    struct attachments *attachments; /* NULL: containers are not inspected for their GPUs */
    const struct clock *clock;
};

int runtime_poller_new(const struct runtime_poller_options *options,
                       struct runtime_poller **ret_poller);

enum {
    /* Containers that are inspected, and images that are looked up, after one list. */
    RUNTIME_POLLER_INSPECTS_MAX = 64,
    /* With more ended containers than this they are listed only if a name is still missing after
     * the running ones: a node may keep thousands. */
    RUNTIME_POLLER_ENDED_MAX = 1000,
};

/* Checks whether the socket exists, and starts the thread once it does. Call it regularly. */
void runtime_poller_probe(struct runtime_poller *poller);

/* False if there is no such runtime here. */
bool runtime_poller_get_status(struct runtime_poller *poller, struct identity_status *ret_status);

/* Cancels the call in progress and joins the thread. Accepts NULL. */
void runtime_poller_free(struct runtime_poller *poller);
