/* Many questions to a server at once, whose answers come in the order of the questions. */
#pragma once

#include "report/server.h"

/* A query over windows: evaluated at from, from + step, ... up to `to`. */
struct fetch_task {
    const char *text;
    int64_t from_s, to_s, step_s;
    unsigned kind; /* the caller's: tasks of one kind are about as large */
    unsigned index;
};

enum { FETCH_KINDS_MAX = 32, FETCH_PARALLEL_MAX = 32 };

struct fetch_progress {
    size_t done, count; /* tasks */
    size_t requests, kept, retries, refusals;
    size_t unkept; /* answers that --resume had no place for */
    uint64_t samples;
};

struct fetch_consumer {
    /* In the caller's thread; several times for a task that had to be cut. 0 or a negative errno,
     * which ends it all. */
    int (*take)(void *context, const struct fetch_task *task, const struct answer *answer);
    /* After each task. False: stop, with -ECANCELED. May be NULL. */
    bool (*show)(void *context, const struct fetch_progress *progress);
    void *context;
    uint64_t (*pause_us)(unsigned attempt); /* before it is tried again; NULL: 0.5 s, 1 s, ... */
};

/* Blocks. 0, or -errno with a text. `progress` goes on from what it holds. */
int fetch_all(const struct server *server, const struct fetch_task *tasks, size_t count,
              unsigned parallel, const struct fetch_consumer *consumer,
              struct fetch_progress *progress, struct error *err);
