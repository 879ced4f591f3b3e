/* The collector's dealings with its front. */
#include <stdio.h>
#include <string.h>

#include "collector/collector_parts.h"
#include "core/log.h"
#include "process/channel.h"
#include "process/self.h"

enum { REQUESTS_PER_WAKE = 64 };

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
    snapshot->front_starts = collector->front.starts;
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
    return channel_send_reply(collector->front.channel_fd, &reply, fd);
}

/* Either the front is dying, or it must: SIGCHLD brings the next one. */
static void replace_front(struct collector *collector, int why)
{
    if (why != -ENOTCONN)
        log_error("the front process broke the protocol and is replaced", "error", strerror(-why));
    epoll_ctl(collector->epoll_fd, EPOLL_CTL_DEL, collector->front.channel_fd, NULL);
    front_process_kill(&collector->front);
}

void collector_serve_front(struct collector *collector)
{
    for (int i = 0; i < REQUESTS_PER_WAKE; i++) {
        struct channel_request request;
        int r = channel_receive_request(collector->front.channel_fd, &request);

        if (r == -EAGAIN)
            return;
        /* It has at most one question for each variant out: a full queue is a broken front, too. */
        if (r == 0)
            r = answer(collector, &request);
        if (r < 0) {
            replace_front(collector, r);
            return;
        }
    }
}

/* As anything that comes from outside: what is not a name says nothing, and a pod counts only where
 * the cgroup names it, too. */
static int learn(struct identity *identity, const struct channel_container *record)
{
    struct container_list list;
    int r;

    container_list_init(&list);
    if (record->id[0] == '\0')
        r = container_list_add_pod(&list, record->namespace, record->pod, record->pod_uid);
    else
        r = container_list_add(&list, &(struct container){
                                          .id = record->id,
                                          .name = record->container,
                                          .namespace = record->namespace,
                                          .pod = record->pod,
                                          .pod_uid = record->pod_uid,
                                          .image = record->image,
                                      });
    if (r == 0)
        identity_learn(identity, &list);
    container_list_done(&list);
    return r;
}

static int take_container(struct collector *collector)
{
    struct channel_container record;
    int r = channel_receive_container(collector->front.names_fd, &record);

    if (r == 0 && learn(collector->identity, &record) < 0)
        log_error("out of memory: names of a container are lost");
    return r;
}

static int take_names_state(struct collector *collector)
{
    struct channel_names_state state;
    int r = channel_receive_names_state(collector->front.names_fd, &state);

    if (r == 0)
        identity_note_api(collector->identity, state.result, state.duration_us);
    return r;
}

void collector_take_names(struct collector *collector)
{
    for (int i = 0; i < REQUESTS_PER_WAKE; i++) {
        int r = channel_has_names_state(collector->front.names_fd) ? take_names_state(collector)
                                                                   : take_container(collector);

        if (r == -EAGAIN)
            return;
        if (r == 0)
            continue;
        if (r != -ENOTCONN)
            replace_front(collector, r);
        front_process_close_names(&collector->front);
        identity_note_api(collector->identity, r, 0);
        identity_expect_names(collector->identity, false); /* so that nobody waits for them */
        return;
    }
}

void collector_take_power(struct collector *collector)
{
    for (int i = 0; i < REQUESTS_PER_WAKE; i++) {
        struct channel_node_power record;
        struct redfish_reading reading;
        int r = channel_receive_node_power(collector->front.power_fd, &record);

        if (r == -EAGAIN)
            return;
        if (r < 0) {
            if (r != -ENOTCONN)
                replace_front(collector, r);
            front_process_close_power(&collector->front);
            return;
        }
        reading = (struct redfish_reading){
            .result = record.result, .power_mw = record.power_mw, .taken_us = record.taken_us};
        snprintf(reading.why, sizeof(reading.why), "%s", record.why);
        redfish_mailbox_post(&collector->redfish, &reading);
    }
}

/* Where its queue is full, the next wake tries again; one that is dying needs none. */
void collector_send_web_config(struct collector *collector)
{
    const struct channel_reply message = {.status = CHANNEL_CONFIG,
                                          .body_bytes = collector->web->config_bytes};

    if (collector->front.channel_fd >= 0)
        collector->web_config_is_new = channel_send_reply(collector->front.channel_fd, &message,
                                                          collector->web->config_fd) == -EAGAIN;
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

int collector_start_front(struct collector *collector, struct error *err)
{
    int r = front_process_start(&collector->front, collector_now_us(collector), err);

    if (r == 0 && collector->web)
        collector_send_web_config(collector);

    if (r == 0)
        r = collector_watch(collector, collector->front.channel_fd, WATCH_FRONT);
    if (r == 0 && collector->front.names_fd >= 0) {
        r = collector_watch(collector, collector->front.names_fd, WATCH_NAMES);
        identity_expect_names(collector->identity, true);
    }
    if (r == 0 && collector->front.power_fd >= 0)
        r = collector_watch(collector, collector->front.power_fd, WATCH_POWER);
    if (r < 0 && collector->front.channel_fd >= 0) {
        error_set(err, r, "cannot watch it: %s", strerror(-r));
        front_process_kill(&collector->front);
    }
    return r;
}

void collector_reap_front(struct collector *collector)
{
    char how[64], times[16];
    int status;

    if (!front_process_reap(&collector->front, collector_now_us(collector), &status))
        return;
    child_describe_end(status, how, sizeof(how));
    snprintf(times, sizeof(times), "%u", collector->front.child.early_ends);
    if (child_is_failing(&collector->front.child))
        log_error("the front process ends again and again: scrapes fail, and the lines before this "
                  "one may say why. It is still started every few seconds; no energy is lost",
                  "how", how, "times", times);
    else
        log_warn("the front process ended and is started again; no energy is lost", "how", how);
}
