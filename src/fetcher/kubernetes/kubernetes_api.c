#include "fetcher/kubernetes/kubernetes_api.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/stoppable.h"
#include "core/fs.h"
#include "core/json_reader.h"
#include "core/lines.h"
#include "core/macros.h"
#include "fetcher/kubernetes/kubernetes_pods.h"

enum {
    URL_MAX = 16 << 10,
    LINE_MAX = 4 << 20, /* an object in etcd has 1.5 MiB at most */
    PODS_PER_PAGE = 500,
    PAGES_MAX = 64,
    WATCH_S = 300, /* after which the server ends a watch */
};

static const uint64_t LIST_TIMEOUT_US = 10 * USEC_PER_SEC;
static const uint64_t WATCH_TIMEOUT_US = (WATCH_S + 15) * USEC_PER_SEC;

/* A server sends a bookmark every minute; a connection that was silent for longer may be dead. */
static const uint64_t WATCH_STALL_US = 120 * USEC_PER_SEC;

/* A watch that lasted this long was a good one, however it ended. */
static const uint64_t HEALTHY_US = 10 * USEC_PER_SEC;

static const uint64_t PAUSE_MIN_US = USEC_PER_SEC, PAUSE_MAX_US = 60 * USEC_PER_SEC;

struct kubernetes_api {
    struct kubernetes_api_options options;
    char *authorization;                    /* the header */
    char version[KUBERNETES_VERSION_BYTES]; /* where the watch goes on; "": list first */
    uint64_t pause_us;                      /* after the next failure */
    bool watch_fails;                       /* so that a list alone proves nothing */
    bool told;
    int how; /* what was last told */
    uint64_t list_duration_us;
    struct stoppable thread;
};

int kubernetes_api_new(const struct kubernetes_api_options *options,
                       struct kubernetes_api **ret_api)
{
    struct kubernetes_api *api;
    int r;

    if (strncmp(options->url, "https://", 8) != 0)
        return -EINVAL;
    api = calloc(1, sizeof(*api));
    if (!api)
        return -ENOMEM;
    api->options = *options;
    api->pause_us = PAUSE_MIN_US;
    r = asprintf(&api->authorization, "Authorization: Bearer %s", options->token) < 0 ? -ENOMEM : 0;
    if (r == 0)
        r = stoppable_init(&api->thread);
    if (r == 0)
        r = json_seed();
    if (r < 0) {
        kubernetes_api_free(api);
        return r;
    }
    *ret_api = api;
    return 0;
}

static uint64_t now_us(const struct kubernetes_api *api)
{
    return api->options.clock->monotonic_us(api->options.clock);
}

static void tell(struct kubernetes_api *api, int r, const char *why)
{
    int how = r == 0 || r == -EACCES ? r : -EIO;
    const struct kubernetes_api_news news = {
        .how = how,
        .is_change = !api->told || api->how != how,
        .why = why,
        .duration_us = api->list_duration_us,
    };

    api->told = true;
    api->how = how;
    api->options.told(api->options.context, &news);
}

static void put_encoded(struct buffer *url, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            strchr("-._~", c)) {
            buffer_char(url, *text);
        } else {
            buffer_char(url, '%');
            buffer_char(url, hex[c >> 4]);
            buffer_char(url, hex[c & 15]);
        }
    }
}

static void put_parameter(struct buffer *url, const char *name, const char *value)
{
    buffer_char(url, '&');
    buffer_str(url, name);
    buffer_char(url, '=');
    put_encoded(url, value);
}

static void put_number(struct buffer *url, const char *name, unsigned value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    put_parameter(url, name, text);
}

/* Only ever the pods of this node. */
static void begin_url(const struct kubernetes_api *api, struct buffer *url)
{
    buffer_init(url, URL_MAX);
    buffer_str(url, api->options.url);
    buffer_str(url, "/api/v1/pods?fieldSelector=spec.nodeName%3D");
    put_encoded(url, api->options.node);
}

static int judge(const struct http_reply *reply, struct error *err)
{
    char why[256];

    if (reply->status == 200)
        return 0;
    kubernetes_parse_refusal((struct span){reply->body.data, reply->body.len}, why, sizeof(why));
    return error_set(err, kubernetes_judge_status(reply->status), "it answers with status %d%s%s",
                     reply->status, why[0] ? ": " : "", why);
}

/* Completes the request with what all have in common. An answer other than 200 is an error. */
static int ask(struct kubernetes_api *api, struct buffer *url, struct http_request *request,
               struct http_reply *reply, struct error *err)
{
    const char *headers[] = {"Accept: application/json", api->authorization, NULL};
    int r;

    buffer_char(url, '\0');
    if (buffer_failed(url))
        return error_set(err, -ENOMEM, "out of memory");
    request->url = url->data;
    request->headers = headers;
    request->resolve = api->options.resolve;
    request->trust = api->options.trust;
    r = http_client_do(api->thread.client, request, reply, err);
    return r < 0 ? r : judge(reply, err);
}

static void hand_over(const struct kubernetes_api *api, const struct container_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        api->options.take(api->options.context, &list->items[i]);
}

static int read_page(const struct kubernetes_api *api, const struct http_reply *reply,
                     struct kubernetes_page *page, struct error *err)
{
    struct container_list list;
    int r;

    container_list_init(&list);
    r = kubernetes_parse_list((struct span){reply->body.data, reply->body.len}, &list, page);
    if (r == 0)
        hand_over(api, &list);
    else
        error_format(err, "its list of pods cannot be read: %s", strerror(-r));
    container_list_done(&list);
    return r;
}

/* `page` is the one before; at the beginning it is empty. */
static int list_page(struct kubernetes_api *api, struct kubernetes_page *page, struct error *err)
{
    struct http_request request = {.timeout_us = LIST_TIMEOUT_US, .max_bytes = RUNTIME_REPLY_MAX};
    struct http_reply reply;
    struct buffer url;
    int r;

    begin_url(api, &url);
    put_number(&url, "limit", PODS_PER_PAGE);
    if (page->next[0])
        put_parameter(&url, "continue", page->next);
    else
        put_parameter(&url, "resourceVersion", "0"); /* from the server's cache */
    http_reply_init(&reply);
    r = ask(api, &url, &request, &reply, err);
    if (r == 0)
        r = read_page(api, &reply, page, err);
    http_reply_done(&reply);
    buffer_done(&url);
    return r;
}

static int list(struct kubernetes_api *api, struct error *err)
{
    struct kubernetes_page page = {0};
    int r = 0;

    for (int i = 0; i < PAGES_MAX && r == 0; i++) {
        r = list_page(api, &page, err);
        if (r < 0 || page.next[0] == '\0')
            break;
    }
    if (r == 0 && page.next[0] != '\0')
        r = error_set(err, -EBADMSG, "its list of pods has no end");
    if (r == 0)
        memcpy(api->version, page.version, sizeof(api->version));
    return r;
}

struct watching {
    struct kubernetes_api *api;
    struct lines lines;
    struct error *err;
};

static int take_line(void *context, struct span line)
{
    const struct watching *watching = context;
    struct kubernetes_api *api = watching->api;
    struct container_list list;
    int r;

    container_list_init(&list);
    r = kubernetes_parse_event(line, &list, api->version, watching->err);
    if (r == 0) {
        hand_over(api, &list);
        api->watch_fails = false;
        tell(api, 0, "");
    } else if (r == -EBADMSG) {
        error_format(watching->err, "its watch says what is no event");
    }
    container_list_done(&list);
    return r;
}

static int take_data(void *context, struct span data)
{
    struct watching *watching = context;
    int r = lines_feed(&watching->lines, data, take_line, watching);

    if (r == -EFBIG)
        error_format(watching->err, "an event of its watch is longer than %d bytes", LINE_MAX);
    return r;
}

static int watch(struct kubernetes_api *api, struct error *err)
{
    struct watching watching = {.api = api, .err = err};
    struct http_request request = {
        .timeout_us = WATCH_TIMEOUT_US,
        .stall_us = WATCH_STALL_US,
        .on_data = take_data,
        .context = &watching,
    };
    struct http_reply reply;
    struct buffer url;
    int r;

    begin_url(api, &url);
    put_number(&url, "watch", 1);
    put_parameter(&url, "resourceVersion", api->version);
    put_parameter(&url, "allowWatchBookmarks", "true");
    put_number(&url, "timeoutSeconds", WATCH_S);
    lines_init(&watching.lines, LINE_MAX);
    http_reply_init(&reply);
    r = ask(api, &url, &request, &reply, err);
    http_reply_done(&reply);
    lines_done(&watching.lines);
    buffer_done(&url);
    return r;
}

/* So that the nodes of a cluster do not all come back at once. */
static uint64_t with_jitter(uint64_t pause_us)
{
    uint32_t random = 0;

    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
    return pause_us / 2 + random % (pause_us / 2);
}

static void back_off(struct kubernetes_api *api, int r)
{
    /* Who refuses us now will do so in a second, too. */
    if (r == -EACCES)
        api->pause_us = PAUSE_MAX_US;
    stoppable_pause(&api->thread, now_us(api) + with_jitter(api->pause_us));
    api->pause_us = MIN(api->pause_us * 2, PAUSE_MAX_US);
}

static void list_anew(struct kubernetes_api *api)
{
    uint64_t began_us = now_us(api);
    struct error err = {""};
    int r = list(api, &err);

    api->list_duration_us = now_us(api) - began_us;
    /* The tree of a page is fifteen times its text, freed in small pieces: without this a node with
     * 500 pods of 8 KB costs 55 MB for good. */
    (void)malloc_trim(0);
    if (r == -ECANCELED)
        return;
    if (r < 0 || !api->watch_fails)
        tell(api, r, err.text);
    if (r < 0)
        back_off(api, r);
}

static bool is_broken(int r)
{
    return r == -ESTALE || r == -EACCES || r == -EBADMSG || r == -EFBIG;
}

static void watch_on(struct kubernetes_api *api)
{
    uint64_t began_us = now_us(api);
    struct error err = {""};
    int r = watch(api, &err);
    bool healthy = now_us(api) - began_us >= HEALTHY_US;

    if (r == -ECANCELED)
        return;
    if (healthy)
        api->pause_us = PAUSE_MIN_US;
    if (healthy && !is_broken(r)) { /* ended by the server, or by what is between */
        api->watch_fails = false;
        tell(api, 0, "");
        return;
    }
    if (r < 0)
        api->version[0] = '\0';
    if (r < 0 && r != -ESTALE) {
        api->watch_fails = true;
        tell(api, r, err.text);
    }
    back_off(api, r);
}

void kubernetes_api_run(struct kubernetes_api *api)
{
    while (!stoppable_is_stopped(&api->thread)) {
        if (api->version[0] == '\0')
            list_anew(api);
        else
            watch_on(api);
    }
    stoppable_close(&api->thread);
}

void kubernetes_api_stop(struct kubernetes_api *api)
{
    stoppable_stop(&api->thread);
}

void kubernetes_api_free(struct kubernetes_api *api)
{
    if (!api)
        return;
    stoppable_done(&api->thread);
    if (api->authorization)
        explicit_bzero(api->authorization, strlen(api->authorization));
    free(api->authorization);
    free(api);
}
