/*
 * Source: something on the node that can be read. One file each, and one line in table.c.
 *
 * A source runs on a thread of its own (runner.h): `read` may block, and if it hangs, only its own
 * series are lost. Sources never log and never see the ledger.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "host/host.h"
#include "model/sample.h"
#include "model/workload.h"

struct gpu_counters;
struct report;
struct source_ops;

enum { SOURCE_SWITCHES_MAX = 16 };

/* The sources that a user switched off. */
struct source_switches {
    const char *off[SOURCE_SWITCHES_MAX]; /* literals */
    size_t off_count;
};

/* NULL: all are on. */
static inline bool source_is_off(const struct source_switches *switches, const char *name)
{
    for (size_t i = 0; switches && i < switches->off_count; i++)
        if (strcmp(switches->off[i], name) == 0)
            return true;
    return false;
}

/* The model: power of the machine by CPU time, where no meter measures its processors. */
struct source_estimate {
    bool is_on;
    bool by_table;             /* the watts of the CPU type, from cpu_power.h */
    uint64_t idle_uw, full_uw; /* else these */
};

/* A part of a source that is read on a thread of its own, such as a GPU. */
struct source_unit {
    const struct source_ops *ops;
    void *state; /* released by ops->close */
    char name[32];
    uint64_t interval_us; /* between two reads */
};

struct source_context {
    const struct host *host;
    const struct clock *clock;
    uint64_t interval_us;                /* length of a window */
    const char *replay_path;             /* NULL: live */
    const char *nvml_library;            /* what to load */
    const char *dcgm_library;            /* the same; NULL: its usual names */
    struct gpu_counters *counters;       /* of boards without GPM; NULL: nobody reads any */
    const struct source_estimate *model; /* NULL: none */
    /* A meter of the processors was read, whichever: nothing that it contains may be booked from
     * another one from then on. NULL: nobody knows. */
    const atomic_bool *package_is_metered;
    uint32_t program_wait_ms; /* for the keys of a new process; later ones come with a later look */
    const struct source_switches *switches;

    /* Takes over a unit that was found, from any thread. 0, or -errno: the caller keeps it. */
    int (*add_unit)(const struct source_context *context, const struct source_unit *unit);
    /* A process that has ended already; from any thread. -ESRCH: unknown. May be NULL. */
    int (*recall)(void *recall_context, uint32_t pid, struct arena *arena,
                  struct sample_process *ret_process);
    void *recall_context;
    cgroup_find_owner *classify_cgroup; /* NULL: cgroups are not read */
    const int *redfish_fd;              /* of the BMC's readings; NULL: no BMC is polled */
    void *owner;                        /* of add_unit */
};

static inline bool source_package_is_metered(const struct source_context *context)
{
    return context->package_is_metered && atomic_load(context->package_is_metered);
}

struct source_ops {
    const char *name; /* the `source` label */
    /* Its switch, "collector.NAME", on by default, and its help: "read ...". NULL: no switch; other
     * flags enable it. */
    const char *flag, *help;
    bool holds_device; /* SIGUSR1 closes it for a while */
    bool is_no_meter;  /* it reports usage, and counts no energy itself */
    /* Between two reads: 0 is a window. The second caps the window; 0: no cap. Not of units. */
    uint64_t interval_us, interval_max_us;

    /* Must not block. -ENODEV: not on this machine, or not enabled; silent, and tried again later.
     * -ENOTSUP with a text: present but unusable; the exporter starts without it. Else 0 or -errno
     * with a text. NULL for units: they come from add_unit. */
    int (*open)(const struct source_context *context, void **ret_state, struct error *err);

    /*
     * Adds the samples since the last call. 0, 1 to restart the interval now (to stay in step with
     * the hardware), or -errno with a text: the source is down until a later call succeeds.
     * -ENODEV: it is gone; it is closed, and a source of the table is opened again later; if it
     * never answered, it is not on this machine, as above. Samples added before an error count.
     */
    int (*read)(void *state, struct batch *batch, struct error *err);

    /*
     * For events that cannot wait for the next read; both or none. While the runner waits, it calls
     * `attend` once after each read, whenever the descriptor is readable, and as many microseconds
     * after the last call as that returned (SOURCE_NEVER: not before the next event). It may block
     * as `read` may; if it uses more than a small share of a CPU, it is called later. A descriptor
     * of -1 is never readable.
     */
    int (*event_fd)(void *state);
    uint64_t (*attend)(void *state);

    void (*close)(void *state);

    /* Reports for `wattribute check` whether it can be read here, and if not, what to do. Opens and
     * closes what it needs, and may block for some seconds. NULL: nothing to report. */
    void (*check)(const struct source_context *context, struct report *report);
};

#define SOURCE_NEVER UINT64_MAX

/* All sources, ended by NULL. */
extern const struct source_ops *const source_table[];

/* A recorded trace, played in real time, in a loop. */
extern const struct source_ops replay_source;
/* The node's power by Redfish: a fetcher queries the BMC, its readings come over a socket. */
extern const struct source_ops redfish_source;
/* An estimate from CPU time; it stops when a meter measures the processors. */
extern const struct source_ops estimate_source;
