/* The collector from inside: what its files share. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "attribution/pipeline.h"
#include "collector/collector.h"
#include "collector/emissions.h"
#include "collector/fetchers.h"
#include "collector/gpu_grants.h"
#include "collector/runtime_log.h"
#include "collector/source_set.h"
#include "collector/tariff_clock.h"
#include "core/clock.h"
#include "core/macros.h"
#include "identity/identity.h"
#include "identity/process_events.h"
#include "identity/recorded_names.h"
#include "metrics/page_cache.h"
#include "sources/source.h"

/* What a source may take to end. */
#define COLLECTOR_STOP_SOURCE_US ((uint64_t)200000)

/* How often files that may change are looked at. */
#define COLLECTOR_LOOK_US (5 * USEC_PER_SEC)

/* What an event of the loop is about. */
enum watched {
    WATCH_SIGNALS,
    WATCH_SOURCES,
    WATCH_SERVER,
    WATCH_FETCHER, /* and those of its kinds that follow */
};

struct collector {
    const struct options *options;
    const struct host *host;
    const struct clock *clock;
    int epoll_fd, signal_fd, wake_fd;
    struct source_switches switches;
    struct source_estimate model;
    struct source_set sources;
    struct process_events *events; /* NULL: not permitted, or not wanted */
    struct identity *identity;     /* NULL in a replay: its processes are not of this node */
    struct recorded_names *names;  /* of a replay; else NULL */
    struct runtime_log runtime_log;
    struct gpu_grants attached;
    char node[256];
    struct emissions emissions;
    struct price price;          /* as it was at the start */
    struct tariff_clock *tariff; /* NULL: no --cost.tariff-file */
    struct pipeline *pipeline;
    bool measured;    /* something was read, or there is nothing to read */
    bool books_moved; /* since the last snapshot */
    struct page_cache bodies;
    uint64_t snapshot_us;
    const int *listener_fds;
    size_t listener_count;
    struct child server;
    struct fetchers fetchers;
    struct web_watch *web;  /* NULL: none */
    bool web_config_is_new; /* the server does not have it yet */
    uint64_t start_us;
    uint64_t sweep_us;    /* when the next sweep is due */
    uint64_t look_us;     /* when files that may change are looked at next; UINT64_MAX: never */
    bool is_releasing;    /* devices are to be closed, and not all are yet */
    bool release_is_late; /* and that was logged */
    bool stopping;
};

/* `what` is an enum watched. */
static inline int collector_watch(const struct collector *collector, int fd, uint32_t what)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = what};

    return epoll_ctl(collector->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static inline uint64_t collector_now_us(const struct collector *collector)
{
    return collector->clock->monotonic_us(collector->clock);
}

/* For how long a gauge is shown. */
static inline uint64_t collector_stale_us(const struct collector *collector)
{
    return MAX(5 * USEC_PER_SEC, 3 * collector->options->sample_interval_us);
}

/* Of collector_server.c: what the server asks for. */
int collector_start_server(struct collector *collector, struct error *err);
void collector_reap_server(struct collector *collector);
void collector_answer_server(struct collector *collector);
void collector_look_at_web_config(struct collector *collector);
void collector_send_web_config(struct collector *collector);

/* Of collector_fetchers.c: what the fetchers report. The first starts those that are due. */
void collector_start_fetchers(struct collector *collector);
void collector_reap_fetchers(struct collector *collector);
void collector_read_fetcher(struct collector *collector, enum fetcher_kind kind);
