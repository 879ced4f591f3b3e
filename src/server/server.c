#include "server/server.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "config/web_config.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"
#include "net/http_server.h"
#include "process/channel.h"
#include "process/child.h"
#include "process/descriptors.h"
#include "process/job.h"
#include "process/sandbox.h"

enum {
    DESCRIPTORS_WANTED = 4096,
    DESCRIPTORS_SPARE = 32, /* for all that is not a connection */
};

static const uint64_t drain_limit_us = 3 * USEC_PER_SEC / 10;

/* src/page, embedded by tools/embed. */
extern const char index_html[];
extern const size_t index_html_len;
extern const struct http_asset page_assets[];
extern const size_t page_assets_len;

struct server {
    int channel_fd;
    int epoll_fd;
    struct http_server *http;
    bool is_orphaned; /* the collector is silent, and that was logged */
    bool has_web_config;
    struct web_config web; /* in use by `http` */
    struct tls *tls;       /* NULL: plain HTTP */
    struct auth *auth;     /* NULL until the sandbox is entered */
};

static int fetch_page(void *context, enum page_format format, enum page_encoding encoding,
                      uint64_t have_generation)
{
    const struct server *server = context;
    struct channel_request request = {format, encoding, have_generation};

    return channel_send(server->channel_fd, &request, sizeof(request), -1);
}

/* The collector has checked the config: only memory can be missing. */
static int apply_web_config(struct server *server)
{
    const struct web_config *web = &server->web;
    int r = auth_set_users(server->auth, web->users, web->user_count);

    if (r == 0)
        r = http_server_set_headers(server->http, web->headers, web->header_count);
    if (r == 0 && server->tls)
        http_server_set_tls(server->http, server->tls);
    return r;
}

/* After a failure the server must end: the next one starts with the new config. */
static int load_web_config(struct server *server, struct span packed, struct error *err)
{
    struct web_config web = {0}, old = server->web;
    struct tls *tls = NULL;
    int r = web_config_unpack(packed, &web);

    if (r < 0)
        error_format(err, "cannot read the web config from the collector: %s", strerror(-r));
    else if (web.has_tls)
        r = tls_new(&web.tls, &tls, err);
    if (r < 0) {
        web_config_done(&web);
        return r;
    }
    tls_unref(server->tls);
    server->tls = tls;
    server->web = web;
    if (server->auth)
        r = apply_web_config(server);
    web_config_done(&old); /* its headers were in use until now */
    return r < 0 ? error_set(err, r, "cannot use the new web config: %s", strerror(-r)) : 0;
}

/* Only the web config can change. */
static int load_job(struct server *server, int job_fd)
{
    struct server_job job;
    struct job block = {0};
    struct error err;
    int r = server->has_web_config ? server_job_read(job_fd, &block, &job) : -EPROTO;

    if (r < 0)
        return r;
    r = load_web_config(server, job.web_config, &err);
    if (r < 0)
        log_error(err.text);
    job_done(&block);
    return r;
}

static int handle_reply(struct server *server, const struct channel_reply *reply, int body_fd)
{
    static const enum http_server_answer answers[] = {
        [CHANNEL_UNCHANGED] = HTTP_SERVER_UNCHANGED, [CHANNEL_NOT_READY] = HTTP_SERVER_NOT_READY,
        [CHANNEL_FAILED] = HTTP_SERVER_FAILED,       [CHANNEL_ABSENT] = HTTP_SERVER_ABSENT,
        [CHANNEL_RUNNING] = HTTP_SERVER_RUNNING,
    };
    int r;

    if (reply->status == CHANNEL_JOB)
        return load_job(server, body_fd);
    if (reply->status != CHANNEL_BODY)
        return http_server_answer(server->http, reply->format, reply->encoding,
                                  answers[reply->status]);
    r = http_server_deliver(server->http, reply->format, reply->encoding, reply->generation,
                            body_fd, reply->body_bytes);
    if (r == 0 || r == -EPROTO)
        return r;
    log_error("cannot map a page from the collector, its scrapes get a 503", "error", strerror(-r));
    return 0;
}

static int watch(const struct server *server, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* All that the collector has sent, up to -EAGAIN or another -errno. */
static int receive_all(struct server *server, struct channel_ping *ret_ping)
{
    int r;

    do {
        _cleanup_close_ int body_fd = -1;
        struct channel_reply reply;

        r = channel_receive_reply(server->channel_fd, &reply, &body_fd, ret_ping);
        if (r >= 0)
            http_server_note_life(server->http);
        if (r == 0)
            r = handle_reply(server, &reply, body_fd);
    } while (r >= 0);
    return r;
}

/* At a request, which is when it matters: the collector cannot tell. */
static void report_silence(struct server *server)
{
    bool is_orphaned = http_server_is_silent(server->http);

    if (is_orphaned && !server->is_orphaned)
        log_error("the collector hangs or is stopped: metrics are not served, and /-/healthy fails "
                  "until it answers; if it does not, restart it");
    else if (!is_orphaned && server->is_orphaned)
        log_info("the collector answers again");
    server->is_orphaned = is_orphaned;
}

/* Until the channel is closed (-ENOTCONN) or broken. */
static int serve(struct server *server)
{
    for (;;) {
        struct channel_ping ping = {0};
        struct epoll_event event;
        int r;

        if (epoll_wait(server->epoll_fd, &event, 1, http_server_timeout_ms(server->http)) < 0 &&
            errno != EINTR)
            return -errno;
        r = receive_all(server, &ping);
        if (r != -EAGAIN)
            return r;
        http_server_run(server->http);
        report_silence(server);
        /* Only now, as the collector is to know that HTTP is served. If there is no room, the next
         * one is answered. */
        if (ping.number > 0)
            (void)channel_send(server->channel_fd, &ping, sizeof(ping), -1);
    }
}

static void drain(struct server *server)
{
    uint64_t end_us = clock_system.monotonic_us(&clock_system) + drain_limit_us, now;
    struct epoll_event event;

    /* Closed, it stays readable for ever. */
    epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, server->channel_fd, NULL);
    http_server_drain(server->http);
    http_server_run(server->http);
    while (http_server_busy(server->http) &&
           (now = clock_system.monotonic_us(&clock_system)) < end_us) {
        int left_ms = (int)((end_us - now + 999) / 1000);
        int timeout_ms = http_server_timeout_ms(server->http);

        epoll_wait(server->epoll_fd, &event, 1,
                   timeout_ms < 0 ? left_ms : MIN(timeout_ms, left_ms));
        http_server_run(server->http);
    }
}

/* As many as descriptors allow. */
static size_t connections_max(void)
{
    rlim_t limit = descriptors_raise(DESCRIPTORS_WANTED);

    return limit <= DESCRIPTORS_SPARE
               ? 1
               : MIN(limit - DESCRIPTORS_SPARE, (rlim_t)HTTP_CONNECTIONS_MAX);
}

static int open_server(struct server *server, const struct server_job *job)
{
    const struct http_server_options options = {
        .clock = &clock_system,
        .fetch = fetch_page,
        .fetch_context = server,
        .metrics_path = job->metrics_path,
        .text_only = job->text_only,
        .version = WATTRIBUTE_VERSION,
        .landing_template = {index_html, index_html_len},
        .assets = page_assets,
        .asset_count = page_assets_len,
        .connections_max = connections_max(),
        .tls = server->tls,
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

static int prepare_auth_thread(void)
{
    struct error err;
    int r = sandbox_filter_calls(SYSCALL_SERVER, &err);

    if (r < 0)
        log_error("passwords cannot be checked: requests with one are rejected", "error", err.text);
    return r;
}

/* With the thread that checks passwords: after privileges are dropped, before calls are filtered.
 */
static int enter_sandbox(struct server *server, struct error *err)
{
    int r = sandbox_drop_privileges(SANDBOX_SERVER, err);

    if (r == 0 && server->has_web_config) {
        /* One heap is enough, and to shrink another, glibc reads a file of /proc. */
        mallopt(M_ARENA_MAX, 1);
        r = auth_new(prepare_auth_thread, &server->auth);
        if (r == 0)
            r = http_server_set_auth(server->http, server->auth);
        if (r == 0)
            r = apply_web_config(server);
        if (r < 0)
            error_format(err, "cannot set up TLS and users: %s", strerror(-r));
    }
    return r < 0 ? r : sandbox_filter_calls(SYSCALL_SERVER, err);
}

/* Logs what goes wrong. */
static int run(struct server *server, const struct server_job *job)
{
    struct error err;
    int r = server->has_web_config ? load_web_config(server, job->web_config, &err) : 0;

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
    server.has_web_config = job.web_config.len > 0;
    r = run(&server, &job);
    http_server_close(server.http);
    auth_free(server.auth);
    tls_unref(server.tls);
    web_config_done(&server.web);
    cleanup_close(&server.epoll_fd);
    job_done(&block);
    return r < 0 ? 1 : 0;
}
