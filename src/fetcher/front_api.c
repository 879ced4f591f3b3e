#include "fetcher/front_api.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "config/lookup.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/macros.h"
#include "core/utf8.h"
#include "fetcher/kubernetes/kubernetes_api.h"
#include "process/channel.h"
#include "process/sandbox.h"

struct front_api {
    int names_fd;
    struct api_config config;
    char url[320];
    char resolve[LOOKUP_TEXT_BYTES]; /* "": the host is an address */
    uid_t user;
    struct kubernetes_api *client;
    pthread_t thread;
    bool started;
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

/* Waits while the collector is busy: only this thread does. */
static void send_container(void *context, const struct container *container)
{
    const struct front_api *api = context;
    struct pollfd room = {.fd = api->names_fd, .events = POLLOUT};
    struct channel_container record = {0};

    put_text(record.id, sizeof(record.id), container->id);
    put_text(record.namespace, sizeof(record.namespace), container->namespace);
    put_text(record.pod, sizeof(record.pod), container->pod);
    put_text(record.container, sizeof(record.container), container->name);
    put_text(record.pod_uid, sizeof(record.pod_uid), container->pod_uid);
    put_text(record.image, sizeof(record.image), container->image);
    while (channel_send_container(api->names_fd, &record) == -EAGAIN)
        (void)poll(&room, 1, -1);
}

static void log_change(const struct front_api *api, int how, const char *why)
{
    if (how == 0)
        log_info("the Kubernetes API tells the names of this node's pods", "url", api->url, "node",
                 api->config.node);
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
    const struct front_api *api = context;
    struct pollfd room = {.fd = api->names_fd, .events = POLLOUT};

    if (news->is_change)
        log_change(api, news->how, news->why);
    while (channel_send_names_state(api->names_fd, &state) == -EAGAIN)
        (void)poll(&room, 1, -1);
}

/* The token is readable for all, unless the pod names the user that its containers run as: then the
 * kubelet makes it that user's alone. */
static uid_t find_user(const char *directory)
{
    char path[4096];
    struct stat st;

    snprintf(path, sizeof(path), "%s/token", directory);
    return stat(path, &st) < 0 || (st.st_mode & S_IROTH) ? SANDBOX_NOBODY : st.st_uid;
}

static int open_client(struct front_api *api, struct error *err)
{
    const char *host = api->config.host;
    bool is_v6 = strchr(host, ':') != NULL;
    int r = lookup_host("the API server's host", host, api->config.port, api->resolve, err);

    if (r < 0)
        return r;
    snprintf(api->url, sizeof(api->url), "https://%s%s%s:%s", is_v6 ? "[" : "", host,
             is_v6 ? "]" : "", api->config.port);
    r = kubernetes_api_new(
        &(struct kubernetes_api_options){
            .url = api->url,
            .resolve = api->resolve[0] ? api->resolve : NULL,
            .node = api->config.node,
            .token_path = "/token",
            .ca_path = "/ca.crt",
            .clock = &clock_system,
            .take = send_container,
            .told = pass_on,
            .context = api,
        },
        &api->client);
    return r < 0 ? error_set(err, r, "cannot set up its client: %s", strerror(-r)) : 0;
}

int front_api_open(const struct api_config *config, int names_fd, struct front_api **ret_api,
                   struct error *err)
{
    struct front_api *api = calloc(1, sizeof(*api));
    int r;

    if (!api) {
        close(names_fd);
        return error_set(err, -ENOMEM, "out of memory");
    }
    api->names_fd = names_fd;
    api->config = *config;
    api->user = find_user(config->directory);
    r = open_client(api, err);
    if (r == 0)
        r = sandbox_change_root(config->directory, err);
    if (r < 0) {
        front_api_close(api);
        return r;
    }
    *ret_api = api;
    return 0;
}

uid_t front_api_user(const struct front_api *api)
{
    return api->user;
}

static void *run(void *argument)
{
    struct front_api *api = argument;
    struct error err;

    if (sandbox_filter_calls(SYSCALL_CLIENT, &err) < 0)
        log_error("names from the Kubernetes API are missing", "error", err.text);
    else
        kubernetes_api_run(api->client);
    return NULL;
}

int front_api_start(struct front_api *api, struct error *err)
{
    int r = -pthread_create(&api->thread, NULL, run, api);

    if (r < 0)
        return error_set(err, r, "cannot start its thread: %s", strerror(-r));
    api->started = true;
    return 0;
}

void front_api_close(struct front_api *api)
{
    if (!api)
        return;
    if (api->started) {
        kubernetes_api_stop(api->client);
        shutdown(api->names_fd, SHUT_RDWR); /* it may wait for room */
        pthread_join(api->thread, NULL);
    }
    kubernetes_api_free(api->client);
    close(api->names_fd);
    free(api);
}
