#include "server/front.h"

#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"
#include "fetcher/front_api.h"
#include "fetcher/front_redfish.h"
#include "net/http_server.h"
#include "process/channel.h"
#include "process/child.h"
#include "process/sandbox.h"
#include "server/front_web.h"

enum {
    CONNECTIONS_MAX = 512,
    DESCRIPTORS_WANTED = 4096,
    DESCRIPTORS_SPARE = 32, /* for all that is not a connection */
};

static const uint64_t drain_limit_us = 3 * USEC_PER_SEC / 10;

/* src/net/landing.html, embedded by tools/embed. */
extern const char landing_html[];
extern const size_t landing_html_len;

struct front {
    int channel_fd;
    int epoll_fd;
    struct http_server *server;
    struct front_api *api;         /* NULL: none is asked */
    struct front_redfish *redfish; /* likewise */
    bool has_web;
    struct front_web web;
};

static int ask_collector(void *context, enum page_format format, enum page_encoding encoding,
                         uint64_t have_generation)
{
    const struct front *front = context;
    struct channel_request request = {format, encoding, have_generation};

    return channel_send_request(front->channel_fd, &request);
}

static int take_config(struct front *front, const struct channel_reply *reply, int config_fd)
{
    struct error err;
    int r;

    if (!front->has_web)
        return -EPROTO;
    r = front_web_renew(&front->web, config_fd, reply->body_bytes, &err);
    if (r < 0)
        log_error(err.text);
    return r;
}

static int pass_on(struct front *front, const struct channel_reply *reply, int body_fd)
{
    int r;

    switch ((enum channel_status)reply->status) {
    case CHANNEL_BODY:
        r = http_server_deliver(front->server, reply->format, reply->encoding, reply->generation,
                                body_fd, reply->body_bytes);
        if (r < 0 && r != -EPROTO) {
            log_error("cannot map a body from the collector, its scrapes get a 503", "error",
                      strerror(-r));
            r = 0;
        }
        return r;
    case CHANNEL_UNCHANGED:
        return http_server_unchanged(front->server, reply->format, reply->encoding);
    case CHANNEL_NOT_READY:
        return http_server_unavailable(front->server, reply->format, reply->encoding,
                                       HTTP_SERVER_NOT_READY);
    case CHANNEL_FAILED:
        return http_server_unavailable(front->server, reply->format, reply->encoding,
                                       HTTP_SERVER_FAILED);
    case CHANNEL_CONFIG:
        return take_config(front, reply, body_fd);
    case CHANNEL_STATUS_COUNT:
        break;
    }
    return -EPROTO;
}

/* All replies that are there. -EAGAIN then, -ENOTCONN at the end of the channel, or another -errno.
 */
static int receive_replies(struct front *front)
{
    for (;;) {
        _cleanup_close_ int body_fd = -1;
        struct channel_reply reply;
        int r = channel_receive_reply(front->channel_fd, &reply, &body_fd);

        if (r == 0)
            r = pass_on(front, &reply, body_fd);
        if (r < 0)
            return r;
    }
}

static int watch(const struct front *front, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(front->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

/* Until the channel ends (-ENOTCONN) or breaks. */
static int serve(struct front *front)
{
    for (;;) {
        struct epoll_event events[2];
        int n = epoll_wait(front->epoll_fd, events, ARRAY_SIZE(events),
                           http_server_timeout_ms(front->server));

        if (n < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < n; i++)
            if (events[i].data.fd == front->channel_fd) {
                int r = receive_replies(front);

                if (r != -EAGAIN)
                    return r;
            }
        http_server_run(front->server);
    }
}

static void drain(struct front *front)
{
    uint64_t end_us = clock_system.monotonic_us(&clock_system) + drain_limit_us, now;
    struct epoll_event event;

    /* Its end stays readable for ever. */
    epoll_ctl(front->epoll_fd, EPOLL_CTL_DEL, front->channel_fd, NULL);
    http_server_drain(front->server);
    http_server_run(front->server);
    while (http_server_busy(front->server) &&
           (now = clock_system.monotonic_us(&clock_system)) < end_us) {
        int rest_ms = (int)((end_us - now + 999) / 1000);
        int timeout_ms = http_server_timeout_ms(front->server);

        epoll_wait(front->epoll_fd, &event, 1, timeout_ms < 0 ? rest_ms : MIN(timeout_ms, rest_ms));
        http_server_run(front->server);
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

static int open_front(struct front *front, const struct front_options *options)
{
    const struct http_server_options server_options = {
        .clock = &clock_system,
        .fetch = ask_collector,
        .fetch_context = front,
        .metrics_path = options->metrics_path,
        .text_only = options->text_only,
        .version = options->version,
        .landing_template = {landing_html, landing_html_len},
        .connections_max = connections_max(),
        .tls = front->web.tls,
        .ready_us =
            options->is_failing ? clock_system.monotonic_us(&clock_system) + CHILD_HEALTHY_US : 0,
    };
    int r = http_server_open(&server_options, &front->server);

    for (size_t i = 0; i < options->listener_count && r == 0; i++)
        r = http_server_listen(front->server, options->first_listener_fd + (int)i);
    if (r < 0)
        return r;
    front->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (front->epoll_fd < 0)
        return -errno;
    r = watch(front, front->channel_fd);
    return r < 0 ? r : watch(front, http_server_fd(front->server));
}

static void log_no_api(const struct error *err)
{
    log_warn("names from the Kubernetes API are missing; all else is served", "error", err->text);
}

/* The API is an extra: without it, the front is the same as if nobody had asked for it. */
static void open_api(struct front *front, const struct front_options *options)
{
    struct error err;

    if (options->api && front_api_open(options->api, options->names_fd, &front->api, &err) < 0)
        log_no_api(&err);
}

static void log_no_redfish(const struct error *err)
{
    log_warn("readings of the BMC are missing; all else is served", "error", err->text);
}

/* So is this. It comes before the API, with which the root changes. */
static void open_redfish(struct front *front, const struct front_options *options)
{
    struct error err;

    if (options->redfish && front_redfish_open(options->redfish, options->redfish_delay_us,
                                               options->power_fd, &front->redfish, &err) < 0)
        log_no_redfish(&err);
}

static void start_clients(struct front *front)
{
    struct error err;

    /* Heaps of their own for the threads are memory for nothing, and to shrink one, glibc reads a
     * file of /proc. */
    if (front->api || front->redfish)
        mallopt(M_ARENA_MAX, 1);
    if (front->api && front_api_start(front->api, &err) < 0) {
        log_no_api(&err);
        front_api_close(front->api);
        front->api = NULL;
    }
    if (front->redfish && front_redfish_start(front->redfish, &err) < 0) {
        log_no_redfish(&err);
        front_redfish_close(front->redfish);
        front->redfish = NULL;
    }
}

static int enter_sandbox(struct front *front, struct error *err)
{
    int r = sandbox_drop_privileges(front->api ? front_api_user(front->api) : SANDBOX_NOBODY, err);

    if (r == 0 && front->has_web)
        r = front_web_start(&front->web, front->server, err);
    if (r < 0)
        return r;
    start_clients(front);
    return sandbox_filter_calls(SYSCALL_SERVER, err);
}

int front_run(const struct front_options *options)
{
    struct front front = {
        .channel_fd = options->channel_fd, .epoll_fd = -1, .has_web = options->has_web_config};
    struct error err;
    int r = 0;

    child_ignore_signals();
    if (front.has_web)
        r = front_web_open(&front.web, front.channel_fd, &err);
    if (r < 0) {
        log_error(err.text);
        front_web_close(&front.web);
        return 1;
    }
    r = open_front(&front, options);
    if (r < 0) {
        log_error("cannot start the HTTP server", "error", strerror(-r));
    } else {
        open_redfish(&front, options);
        open_api(&front, options);
        r = enter_sandbox(&front, &err);
        if (r < 0)
            log_error(err.text);
    }
    if (r == 0) {
        r = serve(&front);
        if (r == -ENOTCONN)
            r = 0;
        else
            log_error("the channel to the collector is broken", "error", strerror(-r));
        front_redfish_stop(front.redfish); /* it logs out meanwhile */
        drain(&front);
    }
    front_api_close(front.api);
    front_redfish_close(front.redfish);
    http_server_close(front.server);
    front_web_close(&front.web);
    if (front.epoll_fd >= 0)
        close(front.epoll_fd);
    return r < 0 ? 1 : 0;
}
