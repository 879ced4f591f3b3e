/*
 * Source: something on the node that can be read. One file each, and one line in table.c.
 *
 * A source runs on a thread of its own (runner.h): `read` may block, and one that hangs costs its
 * own series and nothing else. Sources never log and never see the ledger.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/error.h"
#include "host/host.h"
#include "model/sample.h"
#include "model/workload.h"
#include "sources/switches.h"

struct report;
struct source_estimate;
struct source_ops;

/* A part of a source that is read on a thread of its own: a GPU, say. */
struct source_unit {
    const struct source_ops *ops;
    void *state; /* closed by ops->close in the end */
    char name[32];
    uint64_t interval_us; /* between two reads */
};

struct source_context {
    const struct host *host;
    const struct clock *clock;
    uint64_t interval_us;                /* length of a window */
    const char *replay_path;             /* NULL: live */
    const char *nvml_library;            /* what to load */
    const struct source_estimate *model; /* NULL: nothing is modelled */
    /* What is never opened; NULL: nothing. */
    const struct source_switches *switches;

    /* Hands over a unit that was found, from any thread. 0 or -errno; then it stays the caller's.
     */
    int (*add_unit)(const struct source_context *context, const struct source_unit *unit);
    /* Who a process was that has ended already; from any thread. -ESRCH: nobody remembers. May be
     * NULL. */
    int (*recall)(void *recall_context, uint32_t pid, struct arena *arena,
                  struct sample_process *ret_process);
    void *recall_context;
    cgroup_find_owner *judge_cgroup; /* NULL: cgroups are not read */
    const int *redfish_fd;           /* where the BMC's readings come from; NULL: none is asked */
    void *owner;                     /* of add_unit */
};

struct source_ops {
    const char *name; /* the `source` label */
    /* Its switch, "collector.NAME", which is on unless a user says otherwise, and what it does:
     * "read ...". NULL: no switch; other flags ask for it. */
    const char *flag, *help;
    bool holds_device; /* SIGUSR1 closes it for a while */
    bool is_no_meter;  /* it tells who did what, and counts no energy itself */
    /* Between two reads: 0 is a window. The second: at most so long, however long a window is; 0:
     * as long as that. Not of units. */
    uint64_t interval_us, interval_max_us;

    /* Must not block. -ENODEV: not on this machine, or not asked for; silent, and tried again
     * later. -ENOTSUP with a text: it is here and cannot be used, which is no reason not to start.
     * Else 0 or -errno with a text. Units have none: they are opened by whoever found them. */
    int (*open)(const struct source_context *context, void **ret_state, struct error *err);

    /*
     * Adds what was seen since the last call. 0, 1 to have the interval counted anew from now (to
     * stay in step with what is read), or -errno with a text: the source is then down until a later
     * call succeeds. -ENODEV: it is gone for good; it is closed, and a source of the table is
     * opened again later; if it never answered, it is not on this machine, as above. What was
     * added before an error counts.
     */
    int (*read)(void *state, struct batch *batch, struct error *err);

    /*
     * What cannot wait for the next read; both or none. While the runner waits it calls `attend`,
     * once after each read, whenever the descriptor is readable, and so many microseconds after the
     * last call as that returned (SOURCE_NEVER: not before the next event). It may block as `read`
     * may; if it takes more than a small share of a CPU, it is called later. A descriptor of -1 is
     * never readable.
     */
    int (*event_fd)(void *state);
    uint64_t (*attend)(void *state);

    void (*close)(void *state);

    /* Reports for `wattribute check` whether it can be read here, and if not, what to do. Opens and
     * closes what it needs, and may block for some seconds. NULL: nothing to report. */
    void (*check)(const struct source_context *context, struct report *report);
};

#define SOURCE_NEVER UINT64_MAX

/* Every source there is, ended by NULL. */
extern const struct source_ops *const source_table[];
