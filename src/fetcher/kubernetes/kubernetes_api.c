#include "fetcher/kubernetes/kubernetes_api.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/lines.h"
#include "core/macros.h"
#include "fetcher/fetcher.h"
#include "fetcher/kubernetes/kubernetes_pods.h"
#include "fetcher/silence.h"

enum {
    URL_MAX = 16 << 10,
    LINE_MAX = 4 << 20, /* an object in etcd is at most 1.5 MiB */
    PAGES_MAX = 64,
};

#define PODS_PER_PAGE "500"
#define WATCH_S       "300" /* when the server ends a watch */

static const uint64_t LIST_TIMEOUT_US = 10 * USEC_PER_SEC;
static const uint64_t WATCH_TIMEOUT_US = 315 * USEC_PER_SEC;

/* The server sends a bookmark every minute; a connection that is silent for longer may be dead. */
static const uint64_t WATCH_STALL_US = 120 * USEC_PER_SEC;

/* A watch that lasted this long has worked, and another try need not wait. */
static const uint64_t HEALTHY_US = 10 * USEC_PER_SEC;

static const uint64_t PAUSE_MIN_US = USEC_PER_SEC, PAUSE_MAX_US = 60 * USEC_PER_SEC;

struct kubernetes_api {
    const struct kubernetes_api_options *options;
    char *authorization;                    /* the header */
    char version[KUBERNETES_VERSION_BYTES]; /* where the watch resumes; "": list first */
    uint64_t pause_us;                      /* after the next failure */
    bool watch_fails;                       /* so that a list alone is no success */
    uint64_t list_duration_us;
    uint64_t unanswered_us; /* as in silence_is_long */
    struct lines lines;     /* of the watch */
    struct error err;       /* of the request in progress */
};

static uint64_t now_us(const struct kubernetes_api *api)
{
    return api->options->clock->monotonic_us(api->options->clock);
}

static void report(const struct kubernetes_api *api, int r)
{
    api->options->report(api->options->context, r == 0 || r == -EACCES ? r : -EIO, api->err.text,
                         api->list_duration_us);
}

/* Only ever the pods of this node. */
static void begin_url(const struct kubernetes_api *api, struct buffer *url)
{
    char selector[512];

    snprintf(selector, sizeof(selector), "spec.nodeName=%s", api->options->node);
    buffer_init(url, URL_MAX);
    buffer_str(url, api->options->url);
    buffer_str(url, "/api/v1/pods");
    http_put_parameter(url, "fieldSelector", selector);
}

/* Adds to `options` what all requests share. A status other than 200 is an error. Consumes the
 * URL. */
static int send_request(struct kubernetes_api *api, struct buffer *url,
                        const struct http_request *options, struct http_reply *reply)
{
    const char *headers[] = {"Accept: application/json", api->authorization, NULL};
    struct http_request request = *options;
    char why[256];
    int r;

    buffer_char(url, '\0');
    request.url = url->data;
    request.headers = headers;
    request.resolve = api->options->resolve;
    request.trust = api->options->trust;
    http_reply_init(reply);
    r = buffer_failed(url) ? error_set(&api->err, -ENOMEM, "out of memory")
                           : http_client_do(api->options->client, &request, reply, &api->err);
    buffer_done(url);
    if (r < 0 || reply->status == 200)
        return r;
    kubernetes_parse_error((struct span){reply->body.data, reply->body.len}, why, sizeof(why));
    return error_set(&api->err, kubernetes_classify_status(reply->status),
                     "it replies with status %d%s%s", reply->status, why[0] ? ": " : "", why);
}

static void add_containers(const struct kubernetes_api *api, const struct container_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        api->options->add(api->options->context, &list->items[i]);
}

/* `page` is the one before; empty for the first. */
static int list_page(struct kubernetes_api *api, struct kubernetes_page *page)
{
    const struct http_request request = {.timeout_us = LIST_TIMEOUT_US,
                                         .max_bytes = RUNTIME_REPLY_MAX};
    struct container_list list;
    struct http_reply reply;
    struct buffer url;
    int r;

    begin_url(api, &url);
    http_put_parameter(&url, "limit", PODS_PER_PAGE);
    if (page->next[0])
        http_put_parameter(&url, "continue", page->next);
    else
        http_put_parameter(&url, "resourceVersion", "0"); /* from the server's cache */
    container_list_init(&list);
    r = send_request(api, &url, &request, &reply);
    if (r == 0) {
        r = kubernetes_parse_list((struct span){reply.body.data, reply.body.len}, &list, page);
        if (r < 0)
            error_format(&api->err, "its list of pods cannot be parsed: %s", strerror(-r));
    }
    if (r == 0)
        add_containers(api, &list);
    container_list_done(&list);
    http_reply_done(&reply);
    return r;
}

static int list_pods(struct kubernetes_api *api)
{
    struct kubernetes_page page = {0};

    for (int i = 0; i < PAGES_MAX; i++) {
        int r = list_page(api, &page);

        if (r < 0)
            return r;
        if (page.next[0] == '\0') {
            memcpy(api->version, page.version, sizeof(api->version));
            return 0;
        }
    }
    return error_set(&api->err, -EBADMSG, "its list of pods has no end");
}

static int handle_event(void *context, struct span line)
{
    struct kubernetes_api *api = context;
    struct container_list list;
    int r;

    container_list_init(&list);
    r = kubernetes_parse_event(line, &list, api->version, &api->err);
    if (r == 0) {
        add_containers(api, &list);
        api->watch_fails = false;
        report(api, 0);
    } else if (r == -EBADMSG) {
        error_format(&api->err, "a line of its watch is not an event");
    }
    container_list_done(&list);
    return r;
}

static int feed_watch(void *context, struct span data)
{
    struct kubernetes_api *api = context;
    int r = lines_feed(&api->lines, data, handle_event, api);

    if (r == -EFBIG)
        error_format(&api->err, "an event of its watch is longer than %d bytes", LINE_MAX);
    return r;
}

static int watch_pods(struct kubernetes_api *api)
{
    const struct http_request request = {
        .timeout_us = WATCH_TIMEOUT_US,
        .stall_us = WATCH_STALL_US,
        .on_data = feed_watch,
        .context = api,
    };
    struct http_reply reply;
    struct buffer url;
    int r;

    begin_url(api, &url);
    http_put_parameter(&url, "watch", "1");
    http_put_parameter(&url, "resourceVersion", api->version);
    http_put_parameter(&url, "allowWatchBookmarks", "true");
    http_put_parameter(&url, "timeoutSeconds", WATCH_S);
    lines_init(&api->lines, LINE_MAX);
    r = send_request(api, &url, &request, &reply);
    http_reply_done(&reply);
    lines_done(&api->lines);
    return r;
}

/* With jitter, so that the nodes of a cluster do not all come back at once. Denied access will
 * not change within a second. */
static void back_off(struct kubernetes_api *api, int r)
{
    uint32_t random = 0;
    uint64_t pause_us = r == -EACCES ? PAUSE_MAX_US : api->pause_us;

    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    (void)fetcher_wait(api->options->channel_fd,
                       now_us(api) + pause_us / 2 + random % (pause_us / 2));
    api->pause_us = MIN(pause_us * 2, PAUSE_MAX_US);
}

/* An address stays what it is. */
static bool is_lost(struct kubernetes_api *api, int r)
{
    return silence_is_long(&api->unanswered_us, r, now_us(api)) && api->options->resolve[0];
}

static int list_once(struct kubernetes_api *api)
{
    uint64_t began_us = now_us(api);
    int r = list_pods(api);

    api->list_duration_us = now_us(api) - began_us;
    /* The tree of a page is fifteen times its text, freed in small pieces: without this a node with
     * 500 pods of 8 KB costs 55 MB for good. */
    (void)malloc_trim(0);
    if (r == -ECANCELED)
        return r;
    if (r < 0 || !api->watch_fails)
        report(api, r);
    if (is_lost(api, r))
        return -EHOSTUNREACH;
    if (r < 0)
        back_off(api, r);
    return 0;
}

static bool is_broken(int r)
{
    return r == -ESTALE || r == -EACCES || r == -EBADMSG || r == -EFBIG;
}

static int watch_once(struct kubernetes_api *api)
{
    uint64_t began_us = now_us(api);
    int r = watch_pods(api);
    bool is_healthy = now_us(api) - began_us >= HEALTHY_US;

    if (r == -ECANCELED)
        return r;
    if (is_healthy)
        api->pause_us = PAUSE_MIN_US;
    if (is_healthy && !is_broken(r)) {
        api->watch_fails = false;
        if (r == 0) /* ended by the server */
            report(api, 0);
        else /* a proxy may have cut it, or the server hangs: a list tells */
            api->version[0] = '\0';
        return 0;
    }
    if (r < 0)
        api->version[0] = '\0';
    if (r < 0 && r != -ESTALE) {
        api->watch_fails = true;
        report(api, r);
    }
    if (is_lost(api, r))
        return -EHOSTUNREACH;
    back_off(api, r);
    return 0;
}

int kubernetes_api_run(const struct kubernetes_api_options *options)
{
    struct kubernetes_api api = {.options = options, .pause_us = PAUSE_MIN_US};
    int r = 0;

    if (asprintf(&api.authorization, "Authorization: Bearer %s", options->token) < 0)
        return -ENOMEM;
    while (r == 0 && !fetcher_wait(options->channel_fd, 0)) {
        api.err.text[0] = '\0';
        r = api.version[0] ? watch_once(&api) : list_once(&api);
    }
    explicit_bzero(api.authorization, strlen(api.authorization));
    free(api.authorization);
    return r < 0 ? r : -ECANCELED;
}
