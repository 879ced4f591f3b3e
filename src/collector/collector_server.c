/* The collector's dealings with its server. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collector/collector_parts.h"
#include "core/log.h"
#include "process/channel.h"
#include "process/self.h"
#include "process/server_job.h"

enum { REQUESTS_PER_WAKE = 64 };

static void list_children(const struct collector *collector, struct snapshot *snapshot)
{
    snapshot->child_count = 0;
    snapshot->children[snapshot->child_count++] =
        (struct snapshot_child){"server", collector->server.starts};
    for (int kind = 0; kind < FETCHER_KINDS; kind++)
        if (collector->fetchers.items[kind].is_wanted)
            snapshot->children[snapshot->child_count++] = (struct snapshot_child){
                fetcher_words[kind], collector->fetchers.items[kind].child.starts};
}

_Static_assert(1 + FETCHER_KINDS <= SNAPSHOT_CHILDREN_MAX, "a child without a row");

/* A new snapshot when the books moved, or when the old one is a window old: gauges must age. */
static int refresh_snapshot(struct collector *collector)
{
    uint64_t interval_us = collector->options->sample_interval_us;
    uint64_t real_us = collector->clock->realtime_us(collector->clock);
    struct snapshot *snapshot = &collector->bodies.snapshot;
    int r;

    if (source_set_take_change(&collector->sources))
        collector->books_moved = true;
    if (collector->bodies.generation > 0 && !collector->books_moved &&
        collector_now_us(collector) - collector->snapshot_us < interval_us)
        return 0;
    page_cache_renew(&collector->bodies);
    pipeline_fix_names(collector->pipeline, real_us);
    r = pipeline_snapshot(collector->pipeline, real_us, collector_stale_us(collector), snapshot);
    if (r == 0)
        r = source_set_describe(&collector->sources, snapshot);
    if (r == 0 && collector->identity)
        r = identity_describe(collector->identity, snapshot);
    if (r == 0 && collector->names)
        r = recorded_names_describe(collector->names, snapshot);
    if (r == 0)
        r = emissions_describe(&collector->emissions, snapshot);
    if (r < 0)
        return r;
    snapshot->node = collector->node;
    snapshot->replay_active = collector->options->replay_path != NULL;
    list_children(collector, snapshot);
    snapshot->self_cpu_us = self_cpu_us();
    snapshot->self_rss_bytes = self_rss_bytes(collector->host);
    snapshot->start_us = collector->start_us;
    collector->snapshot_us = collector_now_us(collector);
    collector->books_moved = false;
    return 0;
}

static int answer(struct collector *collector, const struct channel_request *request)
{
    struct channel_reply reply = {
        .status = CHANNEL_NOT_READY,
        .format = request->format,
        .encoding = request->encoding,
    };
    int fd = -1;
    size_t size;

    if (collector->measured) {
        reply.status = CHANNEL_FAILED;
        if (refresh_snapshot(collector) < 0) {
            log_error("out of memory: cannot take a snapshot");
        } else if (request->have_generation == collector->bodies.generation) {
            reply.status = CHANNEL_UNCHANGED;
        } else if (page_cache_get(&collector->bodies, (enum page_format)request->format,
                                  (enum page_encoding)request->encoding,
                                  pipeline_usage_version(collector->pipeline),
                                  collector_now_us(collector), &fd, &size) < 0) {
            log_error("cannot render the metrics page");
        } else {
            reply.status = CHANNEL_BODY;
            reply.body_bytes = size;
        }
        reply.generation = collector->bodies.generation;
    }
    return channel_send_reply(collector->server.channel_fd, &reply, fd);
}

/* Either the server is dying, or it must: SIGCHLD brings the next one. */
static void replace_server(struct collector *collector, int why)
{
    if (why != -ENOTCONN)
        log_error("the front process broke the protocol and is replaced", "error", strerror(-why));
    epoll_ctl(collector->epoll_fd, EPOLL_CTL_DEL, collector->server.channel_fd, NULL);
    child_kill(&collector->server);
}

void collector_answer_server(struct collector *collector)
{
    for (int i = 0; i < REQUESTS_PER_WAKE; i++) {
        struct channel_request request;
        int r = channel_receive_request(collector->server.channel_fd, &request);

        if (r == -EAGAIN)
            return;
        /* It has at most one question for each variant out: a full queue is a broken server, too.
         */
        if (r == 0)
            r = answer(collector, &request);
        if (r < 0) {
            replace_server(collector, r);
            return;
        }
    }
}

static int seal_job(const struct collector *collector, int *ret_fd)
{
    const struct options *options = collector->options;
    struct server_job job = {
        .log = {options->log_level, options->log_format},
        .listener_count = collector->listener_count,
        .metrics_path = options->metrics_path,
        .text_only = options->compat != 0,
        .is_failing = child_is_failing(&collector->server),
        .has_web_config = collector->web != NULL,
    };

    if (collector->web)
        job.web_config = (struct span){collector->web->packed, collector->web->packed_bytes};
    return server_job_seal(&job, ret_fd);
}

/* Where its queue is full, the next wake tries again; one that is dying needs none. */
void collector_send_web_config(struct collector *collector)
{
    struct channel_reply message = {.status = CHANNEL_JOB};
    _cleanup_close_ int fd = -1;

    collector->web_config_is_new = false;
    if (collector->server.channel_fd < 0)
        return;
    if (seal_job(collector, &fd) < 0) {
        log_error("out of memory: the server does not get the web config yet");
        collector->web_config_is_new = true;
        return;
    }
    message.body_bytes = (uint64_t)lseek(fd, 0, SEEK_END);
    collector->web_config_is_new =
        channel_send_reply(collector->server.channel_fd, &message, fd) == -EAGAIN;
}

void collector_look_at_web_config(struct collector *collector)
{
    struct error err;
    int r = web_watch_look(collector->web, &err);

    if (r < 0) {
        log_error("the web config has changed and cannot be used; the one before stays", "error",
                  err.text);
    } else if (r > 0) {
        log_info("the web config has changed and is used from now on", "file",
                 collector->web->path);
        collector->web_config_is_new = true;
    }
}

int collector_start_server(struct collector *collector, struct error *err)
{
    uint64_t now_us = collector_now_us(collector);
    _cleanup_close_ int job_fd = -1;
    int r = seal_job(collector, &job_fd);

    if (r < 0)
        return child_fail(&collector->server, r, now_us, err);
    r = child_start(&collector->server, job_fd, collector->listener_fds, collector->listener_count,
                    now_us, err);
    if (r < 0)
        return r;
    r = collector_watch(collector, collector->server.channel_fd, WATCH_SERVER);
    if (r < 0) {
        error_set(err, r, "cannot watch it: %s", strerror(-r));
        child_kill(&collector->server); /* another one follows */
    }
    return r;
}

void collector_reap_server(struct collector *collector)
{
    char how[64], times[16];
    int status;

    if (!child_reap(&collector->server, collector_now_us(collector), &status))
        return;
    child_describe_end(status, how, sizeof(how));
    snprintf(times, sizeof(times), "%u", collector->server.early_ends);
    if (child_is_failing(&collector->server))
        log_error("the front process ends again and again: scrapes fail, and the lines before this "
                  "one may say why. It is still started every few seconds; no energy is lost",
                  "how", how, "times", times);
    else
        log_warn("the front process ended and is started again; no energy is lost", "how", how);
}
