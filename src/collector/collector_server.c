/* The collector and its server: pages, and the server's job. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "collector/collector_private.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/parse.h"
#include "process/channel.h"
#include "process/job.h"

enum { REQUESTS_PER_WAKE = 64 };

_Static_assert(1 + FETCHER_KINDS <= SNAPSHOT_CHILDREN_MAX, "a child without a row");

/* What the collector itself uses. */
static void describe_self(const struct host *host, struct snapshot *snapshot)
{
    struct rusage usage = {0};
    char text[256];
    struct span rest = {text, 0};
    uint64_t pages;

    snapshot->self_rss_bytes = 0;
    getrusage(RUSAGE_SELF, &usage);
    snapshot->self_cpu_us =
        (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * USEC_PER_SEC +
        (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    /* statm: size resident shared ..., in pages (proc_pid_statm(5)) */
    if (fs_read_at(host->procfs_fd, "self/statm", text, sizeof(text), &rest.len) < 0)
        return;
    span_cut(&rest, ' ');
    if (parse_u64_max(span_cut(&rest, ' '), 1ULL << 40, &pages) == 0)
        snapshot->self_rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct snapshot_child describe_child(const char *name, const struct child *child)
{
    return (struct snapshot_child){name, child->starts, child->hangs};
}

/* Until the books move, or it is a window old, as gauges must age; and for --page-interval at
 * least, which bounds the resolution in time of all that the page shows. */
static bool is_snapshot_current(const struct collector *collector, enum page_format format)
{
    uint64_t age_us = collector_now_us(collector) - collector->snapshot_us;
    uint64_t least_us = MAX(collector->options->page_interval_us,
                            page_is_of_api(format) ? PAGE_API_INTERVAL_US : (uint64_t)0);

    if (collector->pages.generation == 0)
        return false;
    /* One without any meter shows nothing that could be too fine, and may be from the start. */
    if (collector->pages.snapshot.meter_count == 0 && collector->books_moved)
        return false;
    return age_us < least_us || (!collector->books_moved && !collector->sources.has_changed &&
                                 age_us < collector->options->sample_interval_us);
}

static int refresh_snapshot(struct collector *collector, enum page_format format)
{
    uint64_t real_us = collector_real_us(collector);
    struct snapshot *snapshot = &collector->pages.snapshot;
    int r;

    if (is_snapshot_current(collector, format))
        return 0;
    (void)pipeline_fix_names(collector->pipeline, real_us); /* the rest at the next snapshot */
    if (!collector_save_page(collector))
        return collector->pages.generation > 0 ? 0 : -EAGAIN; /* the last page is still true */
    page_cache_renew(&collector->pages);
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
    snapshot->has_state = collector->state.path[0] != '\0';
    snapshot->state_is_up = collector->state.result == 0;
    snapshot->child_count = 1;
    snapshot->children[0] = describe_child("server", &collector->server);
    for (int kind = 0; kind < FETCHER_KINDS; kind++)
        if (collector->fetchers.items[kind].is_wanted)
            snapshot->children[snapshot->child_count++] =
                describe_child(fetcher_words[kind], &collector->fetchers.items[kind].child);
    describe_self(collector->host, snapshot);
    snapshot->start_us = collector->start_us;
    collector->snapshot_us = collector_now_us(collector);
    collector->books_moved = collector->sources.has_changed = false;
    return 0;
}

static void refresh_history(struct collector *collector)
{
    struct pipeline *pipeline = collector->pipeline;

    pipeline_name_history(pipeline);
    collector->pages.history = pipeline->history;
    collector->pages.history_options = (struct history_json_options){
        .expose = collector->options->expose,
        .interval_us = collector->options->page_interval_us,
        .booked_until_us = pipeline_settled_until_us(pipeline),
        .measured_until_us = pipeline_measured_until_us(pipeline),
    };
}

/* The page, or why there is none. */
static enum channel_status find_page(struct collector *collector,
                                     const struct channel_request *request,
                                     const struct page **ret_page)
{
    enum page_format format = (enum page_format)request->format;
    enum page_encoding encoding = (enum page_encoding)request->encoding;
    uint64_t now_us = collector_now_us(collector);
    uint64_t generation;
    int r;

    if (format == PAGE_HISTORY && !collector->pipeline->history)
        return CHANNEL_ABSENT;
    if (format == PAGE_CHECK) {
        enum channel_status status = collector_check_status(collector);

        if (status != CHANNEL_BODY)
            return status;
    } else if (!collector->measured) {
        return CHANNEL_NOT_READY;
    }
    *ret_page = page_cache_find(&collector->pages, format, encoding, now_us);
    if (*ret_page)
        return (*ret_page)->generation == request->have_generation ? CHANNEL_UNCHANGED
                                                                   : CHANNEL_BODY;
    r = format == PAGE_CHECK ? 0 : refresh_snapshot(collector, format);
    if (r == -EAGAIN) {
        log_debug("no page yet: the state is not written");
        return CHANNEL_NOT_READY;
    }
    if (r < 0) {
        log_error("out of memory: cannot take a snapshot");
        return CHANNEL_FAILED;
    }
    generation =
        format == PAGE_CHECK ? collector->pages.check_generation : collector->pages.generation;
    if (request->have_generation == generation)
        return CHANNEL_UNCHANGED;
    if (format == PAGE_HISTORY)
        refresh_history(collector);
    if (page_cache_get(&collector->pages, format, encoding,
                       pipeline_usage_version(collector->pipeline), now_us, ret_page) < 0) {
        log_error("cannot render the page");
        return CHANNEL_FAILED;
    }
    return CHANNEL_BODY;
}

static int answer(struct collector *collector, const struct channel_request *request)
{
    const struct page *page = NULL;
    struct channel_reply reply = {
        .status = find_page(collector, request, &page),
        .format = request->format,
        .encoding = request->encoding,
    };
    bool has_body = reply.status == CHANNEL_BODY;

    reply.generation = has_body ? page->generation : collector->pages.generation;
    reply.body_bytes = has_body ? page->size : 0;
    return channel_send(collector->server.channel_fd, &reply, sizeof(reply),
                        has_body ? page->fd : -1);
}

/* Once: what becomes of the server later is ours to heal. */
static void note_up(struct collector *collector)
{
    if (!collector->is_up)
        collector->is_up = notify_send(&collector->notify, "READY=1\nSTATUS=Serving metrics");
}

void collector_answer_server(struct collector *collector)
{
    for (int i = 0; i < REQUESTS_PER_WAKE && collector->server.channel_fd >= 0; i++) {
        struct channel_request request;
        struct channel_ping pong;
        int r = channel_receive_request(collector->server.channel_fd, &request, &pong);

        if (r == -EAGAIN)
            return;
        if (r > 0) {
            r = child_note_pong(&collector->server, &pong);
            if (r == 0) {
                note_up(collector);
                continue;
            }
        }
        /* It requests each page at most once at a time: a full queue is a broken server, too. */
        if (r == 0)
            r = answer(collector, &request);
        if (r == 0)
            continue;
        if (r != -ENOTCONN)
            log_error("the server broke the protocol and is replaced", "error", strerror(-r));
        /* Either it is dying, or it must: SIGCHLD brings the next one. */
        (void)child_kill(&collector->server);
    }
}

void collector_ping_server(struct collector *collector)
{
    int r = child_ping(&collector->server);

    if (r == -ETIMEDOUT)
        log_warn("the server hangs: it was killed, and another one is started; no energy is lost");
    else if (r < 0)
        log_error("the server hangs and cannot be killed: scrapes fail; give the collector "
                  "CAP_KILL, or continue or end that process");
}

static int seal_job(const struct collector *collector)
{
    const struct options *options = collector->options;
    struct server_job job = {
        .log = {options->log_level, options->log_format},
        .listener_count = collector->listener_count,
        .metrics_path = options->metrics_path,
        .text_only = options->compat != 0,
        .is_failing = child_is_failing(&collector->server),
        .web_config = {"", 0},
    };

    if (collector->web)
        job.web_config = (struct span){collector->web->packed, collector->web->packed_bytes};
    return server_job_seal(&job);
}

/* If its queue is full, the next wake tries again; one that is dying needs none. */
void collector_send_web_config(struct collector *collector)
{
    struct channel_reply message = {.status = CHANNEL_JOB};
    _cleanup_close_ int fd = -1;

    collector->web_config_is_new = false;
    if (collector->server.channel_fd < 0)
        return;
    fd = seal_job(collector);
    if (fd < 0) {
        log_error("out of memory: the server does not get the web config yet");
        collector->web_config_is_new = true;
        return;
    }
    message.body_bytes = (uint64_t)lseek(fd, 0, SEEK_END);
    collector->web_config_is_new =
        channel_send(collector->server.channel_fd, &message, sizeof(message), fd) == -EAGAIN;
}

void collector_check_web_config(struct collector *collector)
{
    struct error err;
    int r = web_watch_poll(collector->web, &err);

    if (r < 0) {
        log_error("the web config has changed and cannot be used; keeping the previous one",
                  "error", err.text);
    } else if (r > 0) {
        log_info("the web config has changed and is used from now on", "file",
                 collector->web->path);
        collector->web_config_is_new = true;
    }
}

int collector_start_server(struct collector *collector, struct error *err)
{
    _cleanup_close_ int job_fd = seal_job(collector);
    int r = child_start(&collector->server, job_fd, collector->listener_fds,
                        collector->listener_count, collector_now_us(collector), err);

    return r < 0 ? r : child_watch(&collector->server, collector->epoll_fd, WATCH_SERVER, err);
}

void collector_reap_server(struct collector *collector)
{
    char how[64];
    int status;

    if (!child_reap(&collector->server, collector_now_us(collector), &status) ||
        collector->server.has_hung)
        return;
    child_describe_end(status, how, sizeof(how));
    if (!child_is_failing(&collector->server))
        log_warn("the server ended and is started again; no energy is lost", "how", how);
    else if (collector->server.early_ends == CHILD_FAILING_ENDS) /* once, until one lives */
        log_error("the server keeps exiting: scrapes fail, and earlier lines may say why. It is "
                  "restarted every few seconds; no energy is lost",
                  "how", how);
}
