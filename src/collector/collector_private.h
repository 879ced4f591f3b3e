/* What the files of the collector share. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "attribution/pipeline.h"
#include "collector/collector.h"
#include "collector/emissions.h"
#include "collector/fetchers.h"
#include "collector/source_set.h"
#include "collector/state_file.h"
#include "collector/tariff_clock.h"
#include "core/clock.h"
#include "core/macros.h"
#include "identity/identity.h"
#include "identity/process_events.h"
#include "identity/recorded_names.h"
#include "metrics/page_cache.h"
#include "process/notify.h"
#include "sources/gpu_counters.h"
#include "sources/source.h"

/* How long a source may take to end. */
#define COLLECTOR_STOP_SOURCE_US ((uint64_t)200000)

enum { COLLECTOR_BOOT_ID_BYTES = 64 };

/* How long the last write of the state may take. */
#define COLLECTOR_STOP_STATE_US (2 * USEC_PER_SEC)

/* How often files that may change are checked. */
#define COLLECTOR_CHECK_FILES_US (5 * USEC_PER_SEC)

/* Events of the loop. */
enum watched {
    WATCH_SIGNALS,
    WATCH_SOURCES,
    WATCH_SERVER,
    WATCH_CHECKER,
    WATCH_FETCHER, /* one for each kind of fetcher */
};

/* Which runtimes were logged as up or down. */
struct runtime_log {
    struct {
        char name[128];
        bool up;
    } seen[24];
    size_t count;
    bool full; /* that identity was full was logged */
};

struct collector {
    const struct options *options;
    struct host *host;
    const struct clock *clock;
    int epoll_fd, signal_fd, wake_fd;
    struct source_switches switches;
    struct source_estimate model;
    struct gpu_counters counters;
    struct source_set sources;
    struct process_events *events; /* NULL: not permitted, or not wanted */
    struct identity *identity;     /* NULL in a replay: its processes are not of this node */
    struct recorded_names *names;  /* of a replay; else NULL */
    struct runtime_log runtime_log;
    char own_container_id[WORKLOAD_CONTAINER_BYTES]; /* "": it is in none */
    char node[256];
    struct emissions emissions;
    struct tariff_clock tariff; /* no path: no --cost.tariff-file */
    struct pipeline *pipeline;
    struct {
        char path[PATH_MAX];
        char boot_id[COLLECTOR_BOOT_ID_BYTES];
        struct state_file *file; /* NULL: none */
        /* The state of the previous run, until the books have it. */
        char *data;
        struct unpack rest;
        struct pipeline_resumption resumption;
        size_t cap_bytes;       /* STATE_FILE_CAP_BYTES */
        int packed;             /* 0, or why the state of now was not handed to the writer */
        uint64_t save_us;       /* when the next write is due, pages or not; UINT64_MAX: never */
        uint64_t number;        /* of the last write */
        uint64_t late_since_us; /* it is not done; 0: it is not late */
        int result;             /* 0 or -errno, as logged: of a write, or */
        bool is_unsynced;       /* of a sync to the disk */
    } state;
    uint64_t gaps_reported; /* sum of the meters' unknown gaps when it was last logged */
    bool measured;          /* something was read, or there is nothing to read */
    bool books_moved;       /* since the last snapshot */
    struct page_cache pages;
    uint64_t snapshot_us;
    const int *listener_fds;
    size_t listener_count;
    struct notify notify;
    struct child server;
    struct {
        struct child child;
        uint64_t started_us, made_us; /* the last one; 0: none was */
    } check;
    struct fetchers fetchers;
    struct web_watch *web;  /* NULL: none */
    bool web_config_is_new; /* the server does not have it yet */
    uint64_t start_us;
    uint64_t sweep_us;       /* when the next sweep is due */
    uint64_t ping_us;        /* when the children are pinged next */
    uint64_t beat_us;        /* when the watchdog is told next; UINT64_MAX: never */
    uint64_t check_files_us; /* when files that may change are checked next; UINT64_MAX: never */
    bool is_releasing;       /* devices are to be closed, and not all are yet */
    bool release_is_late;    /* and that was logged */
    bool is_up;              /* the server has answered, and the service manager was told */
    bool stopping;
};

static inline uint64_t collector_now_us(const struct collector *collector)
{
    return collector->clock->monotonic_us(collector->clock);
}

static inline uint64_t collector_real_us(const struct collector *collector)
{
    return collector->clock->realtime_us(collector->clock);
}

/* For how long a gauge is shown. */
static inline uint64_t collector_stale_us(const struct collector *collector)
{
    return MAX(5 * USEC_PER_SEC, 3 * collector->options->sample_interval_us);
}

/* collector_identity.c. Opens the names of this node, or of a trace. */
int collector_open_names(struct collector *collector, struct pipeline_options *pipeline,
                         struct error *err);
void collector_refresh_identity(struct collector *collector); /* at each scan */

/* collector_server.c: the server, its pages and its job. */
int collector_start_server(struct collector *collector, struct error *err);
void collector_reap_server(struct collector *collector);
void collector_answer_server(struct collector *collector);
void collector_ping_server(struct collector *collector);
void collector_check_web_config(struct collector *collector);
void collector_send_web_config(struct collector *collector);

/* collector_check.c: the check of the sources. */

/* CHANNEL_BODY: pages.check has it. Starts one where there is none, or where it is old. */
enum channel_status collector_check_status(struct collector *collector);
void collector_read_check(struct collector *collector);
void collector_reap_check(struct collector *collector); /* also one that takes too long */

/* collector_state.c: what survives a restart. */

/* Reads the state, once the emissions are there and before any source is. -EBUSY: another process
 * has it. -EEXIST: something that is not ours is in its place. A state of no use is set aside. */
int collector_open_state(struct collector *collector, struct error *err);
/* Makes the pipeline, with the books of the previous run if there are any. 0 or -ENOMEM. */
int collector_resume_books(struct collector *collector, const struct pipeline_options *options);

/* Writes the state before a page shows what is in the books now. False: the disk is late, and no
 * page may show it yet. True also without a state, or if it cannot be written, which is logged. */
bool collector_save_page(struct collector *collector);
void collector_save_due(struct collector *collector);  /* every few seconds, to the disk */
void collector_save_last(struct collector *collector); /* at the end */
