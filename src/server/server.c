#include "server/server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"
#include "net/http_server.h"
#include "process/channel.h"
#include "process/child.h"
#include "process/sandbox.h"
#include "process/server_job.h"
#include "server/web.h"

enum {
    CONNECTIONS_MAX = 512,
    DESCRIPTORS_WANTED = 4096,
    DESCRIPTORS_SPARE = 32, /* for all that is not a connection */
};

static const uint64_t drain_limit_us = 3 * USEC_PER_SEC / 10;

/* src/net/landing.html, embedded by tools/embed. */
extern const char landing_html[];
extern const size_t landing_html_len;

struct server {
    int channel_fd;
    int epoll_fd;
    struct http_server *http;
    bool has_web;
    struct server_web web;
};

static int ask_collector(void *context, enum page_format format, enum page_encoding encoding,
                         uint64_t have_generation)
{
    const struct server *server = context;
    struct channel_request request = {format, encoding, have_generation};

    return channel_send_request(server->channel_fd, &request);
}

/* All that can change in it is the web config. */
static int take_job(struct server *server, int job_fd)
{
    struct server_job job;
    struct job block = {0};
    struct error err;
    int r = server->has_web ? server_job_read(job_fd, &block, &job) : -EPROTO;

    if (r < 0)
        return r;
    r = server_web_renew(&server->web, job.web_config, &err);
    if (r < 0)
        log_error(err.text);
    job_done(&block);
    return r;
}

static int pass_on(struct server *server, const struct channel_reply *reply, int body_fd)
{
    int r;

    switch ((enum channel_status)reply->status) {
    case CHANNEL_BODY:
        r = http_server_deliver(server->http, reply->format, reply->encoding, reply->generation,
                                body_fd, reply->body_bytes);
        if (r < 0 && r != -EPROTO) {
            log_error("cannot map a body from the collector, its scrapes get a 503", "error",
                      strerror(-r));
            r = 0;
        }
        return r;
    case CHANNEL_UNCHANGED:
        return http_server_unchanged(server->http, reply->format, reply->encoding);
    case CHANNEL_NOT_READY:
        return http_server_unavailable(server->http, reply->format, reply->encoding,
                                       HTTP_SERVER_NOT_READY);
    case CHANNEL_FAILED:
        return http_server_unavailable(server->http, reply->format, reply->encoding,
                                       HTTP_SERVER_FAILED);
    case CHANNEL_JOB:
        return take_job(server, body_fd);
    case CHANNEL_STATUS_COUNT:
        break;
    }
    return -EPROTO;
}

/* All replies that are there. -EAGAIN then, -ENOTCONN at the end of the channel, or another -errno.
 */
static int receive_replies(struct server *server)
{
    for (;;) {
        _cleanup_close_ int body_fd = -1;
        struct channel_reply reply;
        int r = channel_receive_reply(server->channel_fd, &reply, &body_fd);

        if (r == 0)
            r = pass_on(server, &reply, body_fd);
        if (r < 0)
            return r;
    }
}

static int watch(const struct server *server, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Until the channel ends (-ENOTCONN) or breaks. */
static int serve(struct server *server)
{
    for (;;) {
        struct epoll_event events[2];
        int n = epoll_wait(server->epoll_fd, events, ARRAY_SIZE(events),
                           http_server_timeout_ms(server->http));

        if (n < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < n; i++)
            if (events[i].data.fd == server->channel_fd) {
                int r = receive_replies(server);

                if (r != -EAGAIN)
                    return r;
            }
        http_server_run(server->http);
    }
}

static void drain(struct server *server)
{
    uint64_t end_us = clock_system.monotonic_us(&clock_system) + drain_limit_us, now;
    struct epoll_event event;

    /* Its end stays readable for ever. */
    epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->channel_fd, NULL);
    http_server_drain(server->http);
    http_server_run(server->http);
    while (http_server_busy(server->http) &&
           (now = clock_system.monotonic_us(&clock_system)) < end_us) {
        int rest_ms = (int)((end_us - now + 999) / 1000);
        int timeout_ms = http_server_timeout_ms(server->http);

        epoll_wait(server->epoll_fd, &event, 1,
                   timeout_ms < 0 ? rest_ms : MIN(timeout_ms, rest_ms));
        http_server_run(server->http);
    }
}

/* As many connections as descriptors allow, after asking for more of them. */
static size_t connections_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return CONNECTIONS_MAX;
    if (limit.rlim_cur < DESCRIPTORS_WANTED) {
        struct rlimit raised = {MIN(limit.rlim_max, (rlim_t)DESCRIPTORS_WANTED), limit.rlim_max};

        if (raised.rlim_cur > limit.rlim_cur && setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    if (limit.rlim_cur <= DESCRIPTORS_SPARE)
        return 1;
    return MIN(limit.rlim_cur - DESCRIPTORS_SPARE, (rlim_t)CONNECTIONS_MAX);
}

static int open_server(struct server *server, const struct server_job *job)
{
    const struct http_server_options options = {
        .clock = &clock_system,
        .fetch = ask_collector,
        .fetch_context = server,
        .metrics_path = job->metrics_path,
        .text_only = job->text_only,
        .version = WATTRIBUTE_VERSION,
        .landing_template = {landing_html, landing_html_len},
        .connections_max = connections_max(),
        .tls = server->web.tls,
        .ready_us =
            job->is_failing ? clock_system.monotonic_us(&clock_system) + CHILD_HEALTHY_US : 0,
    };
    int r = http_server_open(&options, &server->http);

    for (size_t i = 0; i < job->listener_count && r == 0; i++)
        r = http_server_listen(server->http, CHILD_MORE_FD + (int)i);
    if (r < 0)
        return r;
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->epoll_fd < 0)
        return -errno;
    r = watch(server, server->channel_fd);
    return r < 0 ? r : watch(server, http_server_fd(server->http));
}

static int enter_sandbox(struct server *server, struct error *err)
{
    int r = sandbox_drop_privileges(err);

    if (r == 0 && server->has_web)
        r = server_web_start(&server->web, server->http, err);
    return r < 0 ? r : sandbox_filter_calls(SYSCALL_SERVER, err);
}

/* Logs what goes wrong. */
static int run(struct server *server, const struct server_job *job)
{
    struct error err;
    int r = server->has_web ? server_web_open(&server->web, job->web_config, &err) : 0;

    if (r == 0) {
        r = open_server(server, job);
        if (r < 0) {
            log_error("cannot start the HTTP server", "error", strerror(-r));
            return r;
        }
        r = enter_sandbox(server, &err);
    }
    if (r < 0) {
        log_error(err.text);
        return r;
    }
    r = serve(server);
    drain(server);
    if (r == -ENOTCONN)
        return 0;
    log_error("the channel to the collector is broken", "error", strerror(-r));
    return r;
}

static void close_server(struct server *server)
{
    http_server_close(server->http);
    server_web_close(&server->web);
    cleanup_close(&server->epoll_fd);
}

int server_main(void)
{
    struct server server = {.channel_fd = CHILD_CHANNEL_FD, .epoll_fd = -1};
    struct server_job job;
    struct job block = {0};
    int r;

    prctl(PR_SET_NAME, "wattribute"); /* it was started as /proc/self/exe */
    child_ignore_signals();
    sandbox_forbid_dumps();
    r = server_job_read(CHILD_JOB_FD, &block, &job);
    close(CHILD_JOB_FD);
    if (r < 0) {
        log_error("the server has no job: only the collector starts it", "error", strerror(-r));
        return 1;
    }
    log_configure(job.log.level, job.log.format);
    server.has_web = job.has_web_config;
    r = run(&server, &job);
    close_server(&server);
    job_done(&block);
    return r < 0 ? 1 : 0;
}
