/* Names of this node's pods from the Kubernetes API server. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "client/http_trust.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/utf8.h"
#include "fetcher/fetcher.h"
#include "fetcher/kubernetes/kubernetes_api.h"
#include "process/channel.h"
#include "process/sandbox.h"

struct kubernetes {
    const struct kubernetes_job *job;
    int channel_fd;
    char url[320];
    char resolve[FETCHER_ADDRESS_BYTES];
    bool is_address_missing; /* and that was logged */
    struct http_trust *trust;
    struct kubernetes_api *client;
};

/* Of an honest server everything fits, but for the longest of images. */
static void put_text(char *to, size_t size_bytes, const char *from)
{
    struct span rest = span_of(from);
    size_t len;

    while ((len = utf8_char_len(rest)) > 0 && len < size_bytes) {
        memcpy(to, rest.data, len);
        to += len;
        size_bytes -= len;
        rest = (struct span){rest.data + len, rest.len - len};
    }
    *to = '\0';
}

/* Waits while the collector is busy: only this thread does that. */
static void send_container(void *context, const struct container *container)
{
    const struct kubernetes *api = context;
    struct pollfd room = {.fd = api->channel_fd, .events = POLLOUT};
    struct channel_container record = {0};

    put_text(record.id, sizeof(record.id), container->id);
    put_text(record.namespace, sizeof(record.namespace), container->namespace);
    put_text(record.pod, sizeof(record.pod), container->pod);
    put_text(record.container, sizeof(record.container), container->name);
    put_text(record.pod_uid, sizeof(record.pod_uid), container->pod_uid);
    put_text(record.image, sizeof(record.image), container->image);
    while (channel_send(api->channel_fd, &record, sizeof(record), -1) == -EAGAIN)
        (void)poll(&room, 1, -1);
}

static void log_change(const struct kubernetes *api, int how, const char *why)
{
    if (how == 0)
        log_info("the Kubernetes API tells the names of this node's pods", "url", api->url, "node",
                 api->job->node);
    else if (how == -EACCES)
        log_warn("the Kubernetes API refuses us: names from it are missing; let the service "
                 "account list and watch pods",
                 "url", api->url, "error", why);
    else
        log_warn("the Kubernetes API does not answer: names from it are missing", "url", api->url,
                 "error", why);
}

static void pass_on(void *context, const struct kubernetes_api_news *news)
{
    const struct channel_names_state state = {.result = news->how,
                                              .duration_us = news->duration_us};
    const struct kubernetes *api = context;
    struct pollfd room = {.fd = api->channel_fd, .events = POLLOUT};

    if (news->is_change)
        log_change(api, news->how, news->why);
    while (channel_send(api->channel_fd, &state, sizeof(state), -1) == -EAGAIN)
        (void)poll(&room, 1, -1);
}

static void report_no_address(void *context, const char *why)
{
    const struct channel_names_state state = {.result = -EHOSTUNREACH};
    struct kubernetes *api = context;

    if (!api->is_address_missing)
        log_warn("names from the Kubernetes API are missing; all else is served", "error", why);
    api->is_address_missing = true;
    (void)channel_send(api->channel_fd, &state, sizeof(state), -1);
}

static int open_client(struct kubernetes *api, struct error *err)
{
    const char *host = api->job->host;
    bool is_v6 = strchr(host, ':') != NULL;
    int r = http_trust_new(&(struct http_trust_options){.host = host, .ca = api->job->ca},
                           &api->trust, err);

    if (r < 0)
        return r;
    snprintf(api->url, sizeof(api->url), "https://%s%s%s:%s", is_v6 ? "[" : "", host,
             is_v6 ? "]" : "", api->job->port);
    r = kubernetes_api_new(
        &(struct kubernetes_api_options){
            .url = api->url,
            .resolve = api->resolve,
            .node = api->job->node,
            .token = api->job->token,
            .trust = api->trust,
            .clock = &clock_system,
            .take = send_container,
            .told = pass_on,
            .context = api,
        },
        &api->client);
    return r < 0 ? error_set(err, r, "cannot set up the client of the Kubernetes API: %s",
                             strerror(-r))
                 : 0;
}

static void *run_client(void *argument)
{
    kubernetes_api_run(argument);
    return NULL;
}

/* What it needs of files it has: from here on it opens none. */
static int ask(struct kubernetes *api, struct error *err)
{
    pthread_t thread;
    int r = sandbox_filter_calls(SYSCALL_FILELESS_CLIENT, err);

    if (r < 0)
        return r;
    r = -pthread_create(&thread, NULL, run_client, api->client);
    if (r < 0)
        return error_set(err, r, "cannot start a thread: %s", strerror(-r));
    (void)fetcher_is_over(api->channel_fd, UINT64_MAX);
    kubernetes_api_stop(api->client);
    shutdown(api->channel_fd, SHUT_RDWR); /* it may wait for room */
    pthread_join(thread, NULL);
    return 0;
}

int fetch_kubernetes(const struct fetcher_job *job, int channel_fd, struct error *err)
{
    struct kubernetes api = {.job = &job->kubernetes, .channel_fd = channel_fd};
    int r = open_client(&api, err);

    if (r == 0)
        r = fetcher_enter_sandbox("", err);
    if (r == 0 && fetcher_look_up("the API server's host", api.job->host, api.job->port, channel_fd,
                                  report_no_address, &api, api.resolve))
        r = ask(&api, err);
    kubernetes_api_free(api.client);
    http_trust_free(api.trust);
    return r;
}
