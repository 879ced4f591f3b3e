/* Fetches names of this node's pods from the Kubernetes API server. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/utf8.h"
#include "fetcher/fetcher.h"
#include "fetcher/kubernetes/kubernetes_api.h"
#include "process/channel.h"

struct kubernetes {
    int channel_fd;
    char url[320];
};

/* Cuts what is too long between characters: with an honest server only the longest images. */
static void copy_text(char *to, size_t size_bytes, const char *from)
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

static void send_record(const struct kubernetes *api, const void *record, size_t len)
{
    struct pollfd room = {.fd = api->channel_fd, .events = POLLOUT};

    while (channel_send(api->channel_fd, record, len, -1) == -EAGAIN) {
        (void)poll(&room, 1, -1);
        (void)fetcher_attend(api->channel_fd); /* before the record takes the room */
    }
}

static void send_container(void *context, const struct container *container)
{
    const struct kubernetes *api = context;
    struct channel_container record = {0};

    copy_text(record.id, sizeof(record.id), container->id);
    copy_text(record.namespace, sizeof(record.namespace), container->namespace);
    copy_text(record.pod, sizeof(record.pod), container->pod);
    copy_text(record.container, sizeof(record.container), container->name);
    copy_text(record.pod_uid, sizeof(record.pod_uid), container->pod_uid);
    copy_text(record.image, sizeof(record.image), container->image);
    send_record(api, &record, sizeof(record));
}

static void send_state(void *context, int result, const char *why, uint64_t list_duration_us)
{
    const struct kubernetes *api = context;
    struct channel_names_state state = {.result = result, .duration_us = list_duration_us};

    if (result < 0)
        provider_copy_printable(span_of(why[0] ? why : strerror(-result)), state.why,
                                sizeof(state.why));
    send_record(api, &state, sizeof(state));
}

static void report_no_address(void *context, const char *why)
{
    send_state(context, -EHOSTUNREACH, why, 0);
}

int fetch_kubernetes(const struct fetcher_job *job, int channel_fd, struct error *err)
{
    const char *host = job->kubernetes.host;
    bool is_v6 = strchr(host, ':') != NULL;
    struct kubernetes api = {.channel_fd = channel_fd};
    struct fetcher_peer peer = {
        .what = "the API server's host",
        .host = host,
        .port = job->kubernetes.port,
        .trust_options = {.host = host, .ca = job->kubernetes.ca},
        .channel_fd = channel_fd,
        .user = SANDBOX_KUBERNETES,
        .report = report_no_address,
        .context = &api,
    };
    int r = fetcher_peer_open(&peer, err);

    snprintf(api.url, sizeof(api.url), "https://%s%s%s:%s", is_v6 ? "[" : "", host,
             is_v6 ? "]" : "", job->kubernetes.port);
    if (r == 0)
        r = kubernetes_api_run(&(struct kubernetes_api_options){
            .client = peer.client,
            .channel_fd = channel_fd,
            .url = api.url,
            .resolve = peer.resolve,
            .node = job->kubernetes.node,
            .token = job->kubernetes.token,
            .trust = peer.trust,
            .clock = &clock_system,
            .add = send_container,
            .report = send_state,
            .context = &api,
        });
    fetcher_peer_close(&peer);
    return r == -ENOMEM ? error_set(err, r, "out of memory") : r;
}
