/*
 * Runtime poller: one runtime behind one socket, asked on a thread of its own when names are
 * missing, or, if GPUs are wanted, at every look.
 *
 * Whatever the runtime does, it costs names and GPUs only: a call ends at its deadline, is repeated
 * with back-off, and nobody waits for it. The deadline is long, because a runtime that starts many
 * containers at once is slow just when their names are wanted.
 */
#pragma once

#include "core/clock.h"
#include "identity/container_cache.h"
#include "identity/gpus/attachments.h"
#include "identity/runtime.h"

struct runtime_poller;

struct runtime_poller_options {
    const struct runtime_ops *runtime;
    const char *name; /* the `source` label; both texts are copied */
    const char *socket_path;
    unsigned number; /* of the runtime in the cache */
    struct container_cache *container_cache;
    struct attachments *attachments; /* NULL: containers are not looked into for their GPUs */
    const struct clock *clock;
};

struct runtime_poller_status {
    const char *name;
    bool asked; /* at least once */
    bool up;    /* the last answer was good */
    uint64_t age_us, duration_us, errors;
    char error[256]; /* why it is down; "" if it is up */
};

int runtime_poller_new(const struct runtime_poller_options *options,
                       struct runtime_poller **ret_poller);

enum {
    /* How many containers are looked into after a list, and how many images are asked for; the
     * others are after the next. */
    RUNTIME_POLLER_INSPECTS_MAX = 64,
    /* Where more containers than this have ended, they are listed only if a name is still missing
     * after those that run were: a node may keep thousands. */
    RUNTIME_POLLER_ENDED_MAX = 1000,
};

/* Is there a socket? Starts the thread when it is first seen. To be called now and then. */
void runtime_poller_look(struct runtime_poller *poller);

/* False if there is no such runtime here. */
bool runtime_poller_get_status(struct runtime_poller *poller,
                               struct runtime_poller_status *ret_status);

/* Ends the call in progress and the thread. Accepts NULL. */
void runtime_poller_free(struct runtime_poller *poller);
