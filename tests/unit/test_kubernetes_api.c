/* fetcher/kubernetes/kubernetes_api: which request follows which reply, on a client whose replies
 * are prepared. The clock stands still, so that pauses take no time. */
#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/macros.h"
#include "fetcher/fetcher.h"
#include "fetcher/kubernetes/kubernetes_api.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define POD(version)                                                                               \
    "{\"metadata\":{\"name\":\"p" version "\",\"namespace\":\"ml\",\"resourceVersion\":\"" version \
    "\"},\"status\":{\"containerStatuses\":[{\"name\":\"c\",\"containerID\":\"docker://" A         \
    "\"}]}}"
#define LIST(version, more)                                                                        \
    "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"" version "\"" more                 \
    "},\"items\":[" POD("0") "]}"
#define EVENT(type, version) "{\"type\":\"" type "\",\"object\":" POD(version) "}\n"
#define EXPIRED                                                                                    \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"message\":\"too old\",\"code\":410}}\n"

enum { LONG_S = 300 };

/* One request, in order. */
struct step {
    const char *url;  /* a part of it: "limit=" is a list, "watch=" a watch */
    const char *url2; /* another; may be NULL */
    int r;
    int status;
    const char *body;
    unsigned lasts_s;
};

static struct {
    const struct step *steps;
    size_t count, requested;
    const char *resolve; /* "": its host is an address */
    struct clock_manual clock;
    int channel[2]; /* ours, and the collector's */
    char seen_token[128];
    char pods[256];   /* names of pods, each followed by a blank */
    char states[256]; /* likewise, changes of the result */
    int pods_alone, reports, last_result;
    uint64_t list_duration_us;
} test;

/* In place of the fetcher's: the pauses of a clock that stands still take no time. */
bool fetcher_wait(int channel_fd, uint64_t until_us)
{
    struct pollfd channel = {.fd = channel_fd, .events = POLLIN};

    (void)until_us;
    return poll(&channel, 1, 0) > 0; /* it is closed: nobody sends anything */
}

/* In place of the client. */
int http_client_new(struct http_client **ret_client)
{
    (void)ret_client;
    return -ENOMEM;
}

void http_client_free(struct http_client *client)
{
    (void)client;
}

void http_client_cancel(struct http_client *client)
{
    (void)client;
}

void http_client_watch(struct http_client *client, int fd, bool (*attend)(int fd))
{
    (void)client, (void)fd, (void)attend;
}

static void check_request(const struct http_request *request, const struct step *step)
{
    if (!strstr(request->url, step->url) || (step->url2 && !strstr(request->url, step->url2)))
        fail_msg("request %zu is %s", test.requested, request->url);
    assert_int_equal(strncmp(request->url, "https://api:443/api/v1/pods?fieldSelector=", 42), 0);
    assert_non_null(strstr(request->url, "fieldSelector=spec.nodeName%3Dnode-a%2Fb&"));
    assert_ptr_equal(request->trust, &test);
    assert_string_equal(request->resolve, test.resolve);
    assert_true(request->timeout_us > 0 && request->timeout_us <= 330 * USEC_PER_SEC);
    snprintf(test.seen_token, sizeof(test.seen_token), "%s", request->headers[1]);
    assert_null(request->headers[2]);
}

/* In pieces of three bytes, like a slow network. */
static int hand_out(const struct http_request *request, struct http_reply *reply, struct span body)
{
    int r = 0;

    if (!request->on_data) {
        assert_true(request->max_bytes > 0);
        buffer_bytes(&reply->body, body.data, body.len);
        return 0;
    }
    while (body.len > 0 && r == 0) {
        struct span piece = {body.data, MIN(body.len, (size_t)3)};

        r = request->on_data(request->context, piece);
        body = (struct span){body.data + piece.len, body.len - piece.len};
    }
    return r;
}

int http_client_do(struct http_client *client, const struct http_request *request,
                   struct http_reply *ret_reply, struct error *err)
{
    const struct step *step = &test.steps[test.requested];
    int r;

    assert_ptr_equal(client, &test);
    if (test.requested == test.count) {
        close(test.channel[1]);
        return error_set(err, -ECANCELED, "cancelled");
    }
    check_request(request, step);
    test.requested++;
    test.clock.now_us += step->lasts_s * USEC_PER_SEC;
    buffer_init(&ret_reply->body, 1 << 20);
    r = hand_out(request, ret_reply, span_of(step->body ? step->body : ""));
    if (r < 0)
        return r;
    ret_reply->status = step->status ? step->status : 200;
    return step->r < 0 ? error_set(err, step->r, "the client's text") : 0;
}

static void add(void *context, const struct container *container)
{
    assert_ptr_equal(context, &test);
    assert_string_equal(container->namespace, "ml");
    if (container->id[0] == '\0') { /* the pod itself */
        test.pods_alone++;
        return;
    }
    assert_string_equal(container->id, A);
    strcat(test.pods, container->pod);
    strcat(test.pods, " ");
}

static void report(void *context, int result, const char *why, uint64_t list_duration_us)
{
    assert_ptr_equal(context, &test);
    assert_true(result == 0 || why[0] != '\0');
    if (test.reports++ == 0 || result != test.last_result)
        strcat(test.states, result == 0 ? "up " : result == -EACCES ? "denied " : "down ");
    test.last_result = result;
    test.list_duration_us = list_duration_us;
}

static int setup(void **state)
{
    (void)state;
    memset(&test, 0, sizeof(test));
    test.resolve = "api:443:10.0.0.1";
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, test.channel), 0);
    clock_manual_init(&test.clock, USEC_PER_SEC);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(test.channel[0]);
    return 0;
}

static int run(const struct step *steps, size_t count)
{
    const struct kubernetes_api_options options = {
        .client = (struct http_client *)&test,
        .channel_fd = test.channel[0],
        .url = "https://api:443",
        .resolve = test.resolve,
        .node = "node-a/b",
        .token = "abc.def",
        .trust = (const struct http_trust *)&test, /* only passed on */
        .clock = &test.clock.clock,
        .add = add,
        .report = report,
        .context = &test,
    };

    test.steps = steps;
    test.count = count;
    return kubernetes_api_run(&options);
}

/* Every step is requested, and then the channel is closed. */
static void play(const struct step *steps, size_t count, const char *pods, const char *states)
{
    assert_int_equal(run(steps, count), -ECANCELED);
    assert_int_equal(test.requested, count);
    assert_string_equal(test.pods, pods);
    assert_string_equal(test.states, states);
}

#define PLAY(steps, pods, states) play((steps), ARRAY_SIZE(steps), (pods), (states))

static void a_watch_follows_the_list_and_is_resumed_where_it_ended(void **state)
{
    static const struct step steps[] = {
        {.url = "limit=500&resourceVersion=0", .body = LIST("7", "")},
        {.url = "watch=1&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=300",
         .body = EVENT("ADDED", "8") EVENT("MODIFIED", "9"),
         .lasts_s = LONG_S},
        {.url = "watch=1&resourceVersion=9&",
         .body =
             "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"5 0\"}}}\n",
         .lasts_s = LONG_S},
        {.url = "watch=1&resourceVersion=5%200&"},
        {.url = "watch=1&resourceVersion=5%200&"}, /* one that ends at once is no failure */
    };

    (void)state;
    PLAY(steps, "p0 p8 p9 ", "up ");
}

static void every_page_of_a_list_is_read(void **state)
{
    static const struct step steps[] = {
        {.url = "limit=500&resourceVersion=0", .body = LIST("7", ",\"continue\":\"a=/+\"")},
        {.url = "limit=500&continue=a%3D%2F%2B", .body = LIST("7", ",\"continue\":\"b\"")},
        {.url = "limit=500&continue=b", .body = LIST("7", "")},
        {.url = "watch=1&resourceVersion=7&"},
    };

    (void)state;
    PLAY(steps, "p0 p0 p0 ", "up ");
}

static void a_list_without_end_is_given_up(void **state)
{
    static struct step steps[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
        steps[i] = (struct step){
            .url = "limit=",
            .body = "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"1\",\"continue\":"
                    "\"x\"},\"items\":[]}"};
    PLAY(steps, "", "down ");
}

static void a_watch_from_a_version_too_old_lists_again(void **state)
{
    static const struct step steps[] = {
        {.url = "limit=", .body = LIST("7", "")},
        {.url = "watch=", .body = EVENT("ADDED", "8") EXPIRED},
        {.url = "limit=", .url2 = "resourceVersion=0", .body = LIST("20", "")},
        {.url = "watch=", .url2 = "resourceVersion=20&", .status = 410},
        {.url = "limit=", .body = LIST("30", "")},
        {.url = "watch=", .url2 = "resourceVersion=30&", .body = EXPIRED, .lasts_s = LONG_S},
        {.url = "limit=", .status = 410, .body = "{}"}, /* a page that has expired */
        {.url = "limit=", .body = LIST("40", "")},
    };

    (void)state;
    PLAY(steps, "p0 p8 p0 p0 p0 ", "up down up ");
}

static void a_broken_stream_lists_again_and_is_reported_once(void **state)
{
    static const struct step steps[] = {
        {.url = "limit=", .body = LIST("7", "")},
        {.url = "watch=", .body = "<html>\n"},
        {.url = "limit=", .body = LIST("8", "")},
        {.url = "watch=", .body = "{\"type\":\"ADDED\"}\n", .lasts_s = LONG_S},
        {.url = "limit=", .body = LIST("9", "")},
        {.url = "watch=", .r = -ECONNREFUSED},
        {.url = "limit=", .body = LIST("9", "")},
        {.url = "watch=", .body = EVENT("ADDED", "10")},
        {.url = "watch=", .url2 = "resourceVersion=10&", .r = -EPROTO},
        {.url = "limit=", .body = LIST("9", "")},
        {.url = "watch=", .lasts_s = LONG_S},
    };

    (void)state;
    PLAY(steps, "p0 p0 p0 p0 p10 p0 ", "up down up down up ");
}

/* Neither up nor down by itself: a proxy may have cut it, or the server hangs. */
static void a_watch_that_broke_late_leads_to_a_list_that_tells_whether_the_server_is_up(
    void **state)
{
    static const struct step steps[] = {
        {.url = "limit=", .body = LIST("7", "")},
        {.url = "watch=", .r = -EPROTO, .lasts_s = LONG_S},
        {.url = "limit=", .body = LIST("8", "")},
        {.url = "watch=", .url2 = "resourceVersion=8&", .r = -ETIMEDOUT, .lasts_s = 120},
        {.url = "limit=", .r = -ETIMEDOUT, .lasts_s = 10},
        {.url = "limit=", .body = LIST("9", "")},
        {.url = "watch=", .url2 = "resourceVersion=9&", .lasts_s = LONG_S},
    };

    (void)state;
    PLAY(steps, "p0 p0 p0 ", "up down up ");
}

static void a_failing_server_is_reported_once_and_retried_until_it_recovers(void **state)
{
    static const struct step steps[] = {
        {.url = "limit=", .r = -ECONNREFUSED},
        {.url = "limit=", .r = -EKEYREJECTED},
        {.url = "limit=", .status = 500, .body = "boom"},
        {.url = "limit=", .body = "not a list"},
        {.url = "limit=", .r = -EFBIG},
        {.url = "limit=", .status = 403, .body = "{\"message\":\"pods is forbidden\"}"},
        {.url = "limit=", .status = 401},
        {.url = "limit=", .body = LIST("7", "")},
        {.url = "watch=", .status = 403},
        {.url = "limit=", .body = LIST("7", "")},
        {.url = "watch=",
         .body = "{\"kind\":\"Status\",\"message\":\"may not watch\",\"code\":403}\n"},
        {.url = "limit=", .body = LIST("7", "")},
    };

    (void)state;
    PLAY(steps, "p0 p0 p0 ", "down denied up denied ");
}

static void a_name_without_an_answer_for_a_minute_is_to_be_looked_up_again(void **state)
{
    static const struct step steps[] = {
        {.url = "limit=", .r = -ETIMEDOUT, .lasts_s = 10},
        {.url = "limit=", .r = -ECONNREFUSED, .lasts_s = 59},
        {.url = "limit=", .status = 500}, /* an answer */
        {.url = "limit=", .r = -EKEYREJECTED},
        {.url = "limit=", .r = -ECONNREFUSED, .lasts_s = 59},
        {.url = "limit=", .body = LIST("7", "")},
        {.url = "watch=", .r = -ETIMEDOUT, .lasts_s = 120},
        {.url = "limit=", .r = -ETIMEDOUT, .lasts_s = 10},
        {.url = "limit=", .r = -ETIMEDOUT, .lasts_s = 60},
    };

    (void)state;
    assert_int_equal(run(steps, ARRAY_SIZE(steps)), -EHOSTUNREACH);
    assert_int_equal(test.requested, ARRAY_SIZE(steps));
    assert_string_equal(test.states, "down up down ");
    close(test.channel[1]);
}

static void an_address_without_an_answer_is_asked_for_ever(void **state)
{
    static const struct step steps[] = {
        {.url = "limit=", .r = -ETIMEDOUT, .lasts_s = LONG_S},
        {.url = "limit=", .r = -ETIMEDOUT, .lasts_s = LONG_S},
        {.url = "limit=", .r = -ETIMEDOUT, .lasts_s = LONG_S},
    };

    (void)state;
    test.resolve = "";
    PLAY(steps, "", "down ");
}

static void the_token_is_sent_with_each_request(void **state)
{
    static const struct step steps[] = {{.url = "limit=", .body = LIST("7", "")}};

    (void)state;
    PLAY(steps, "p0 ", "up ");
    assert_string_equal(test.seen_token, "Authorization: Bearer abc.def");
}

static void nothing_is_requested_once_the_channel_is_closed(void **state)
{
    (void)state;
    close(test.channel[1]);
    play(NULL, 0, "", "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_watch_follows_the_list_and_is_resumed_where_it_ended),
        TEST(every_page_of_a_list_is_read),
        TEST(a_list_without_end_is_given_up),
        TEST(a_watch_from_a_version_too_old_lists_again),
        TEST(a_broken_stream_lists_again_and_is_reported_once),
        TEST(a_watch_that_broke_late_leads_to_a_list_that_tells_whether_the_server_is_up),
        TEST(a_failing_server_is_reported_once_and_retried_until_it_recovers),
        TEST(a_name_without_an_answer_for_a_minute_is_to_be_looked_up_again),
        TEST(an_address_without_an_answer_is_asked_for_ever),
        TEST(the_token_is_sent_with_each_request),
        TEST(nothing_is_requested_once_the_channel_is_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
