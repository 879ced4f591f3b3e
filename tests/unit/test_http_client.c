/* client/http_client: requests, replies, and the name of every failure. */
#include "client/http_trust.h"
#include "http_client_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void *ask_on_a_new_thread(void *arg)
{
    struct peer *peer = arg;
    const struct http_request request = {.url = "http://localhost/",
                                         .socket_path = peer->path,
                                         .timeout_us = 20 * SECOND,
                                         .max_bytes = 100};
    struct http_reply reply;
    struct http_client *client;
    intptr_t r;

    http_reply_init(&reply);
    r = http_client_new(&client);
    if (r < 0)
        return (void *)r;
    r = http_client_do(client, &request, &reply, NULL);
    http_client_free(client);
    http_reply_done(&reply);
    return (void *)r;
}

static void clients_of_many_threads_are_independent(void **state)
{
    struct peer *peer = peer_start(&well_behaved);
    pthread_t threads[8];
    void *result;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_on_a_new_thread, peer), 0);
    for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_int_equal((intptr_t)result, 0);
    }
    peer_free(peer);
}

/* Headers as "name=value ". */
static void note_header(void *context, const char *name, const char *value)
{
    char *seen = context;
    size_t len = strlen(seen);

    snprintf(seen + len, 256 - len, "%s=%s ", name, value);
}

static void a_get_returns_status_and_body(void **state)
{
    struct bench *bench = open_bench(well_behaved);
    _cleanup_free_ char *text = NULL;

    (void)state;
    bench->request.url = "http://localhost/_ping?a=b";
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->reply.status, 200);
    assert_body(bench, "hello");
    text = heard(bench);
    assert_contains(text, "GET /_ping?a=b HTTP/1.1\r\n");
    assert_contains(text, "Host: localhost\r\n");
    assert_contains(text, "User-Agent: wattribute/" WATTRIBUTE_VERSION "\r\n");
    assert_lacks(text, "Accept-Encoding");
    assert_lacks(text, "Upgrade");
    assert_lacks(text, "Cookie");
    close_bench(bench);
}

static void a_post_sends_its_headers_and_body(void **state)
{
    static const char *const headers[] = {"Content-Type: application/json", "Authorization: x y",
                                          NULL};
    struct bench *bench = open_bench(well_behaved);
    _cleanup_free_ char *text = NULL;

    (void)state;
    bench->request.headers = headers;
    bench->request.body = SPAN("{\"a\":1}");
    assert_int_equal(ask(bench), 0);
    text = heard(bench);
    assert_contains(text, "POST / HTTP/1.1\r\n");
    assert_contains(text, "Content-Type: application/json\r\n");
    assert_contains(text, "Authorization: x y\r\n");
    assert_contains(text, "Content-Length: 7\r\n");
    assert_contains(text, "\r\n\r\n{\"a\":1}");
    close_bench(bench);
}

static void an_empty_body_is_still_a_post(void **state)
{
    struct bench *bench = open_bench(well_behaved);
    _cleanup_free_ char *text = NULL;

    (void)state;
    bench->request.body = SPAN("");
    assert_int_equal(ask(bench), 0);
    text = heard(bench);
    assert_contains(text, "POST / HTTP/1.1\r\n");
    assert_contains(text, "Content-Length: 0\r\n");
    close_bench(bench);
}

static void a_long_body_is_sent_without_100_continue(void **state)
{
    struct bench *bench = open_bench(well_behaved);
    size_t len = 4 << 20;
    _cleanup_free_ char *body = malloc(len), *text = NULL;

    (void)state;
    assert_non_null(body);
    memset(body, 'x', len);
    bench->request.body = (struct span){body, len};
    assert_int_equal(ask(bench), 0);
    text = heard(bench);
    assert_lacks(text, "Expect");
    assert_int_equal(strlen(strstr(text, "\r\n\r\n") + 4), len);
    close_bench(bench);
}

static void a_chunked_body_is_put_together(void **state)
{
    struct bench *bench = open_bench((struct peer_script){
        .reply = SPAN("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nStatus: early\r\n\r\n"
                      "6\r\nhello \r\n5;x=y\r\nworld\r\n0\r\nStatus: late\r\n\r\n"),
        .end = PEER_SERVES_ON});

    (void)state;
    bench->request.on_header = note_header;
    for (int i = 0; i < 2; i++) {
        char seen[256] = "";

        bench->request.context = seen;
        assert_int_equal(ask(bench), 0);
        assert_body(bench, "hello world");
        assert_string_equal(seen, "Transfer-Encoding=chunked Status=early Status=late ");
    }
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->connections, 1);
    close_bench(bench);
}

static void a_body_may_end_with_the_connection(void **state)
{
    struct bench *bench =
        open_bench((struct peer_script){.reply = SPAN("HTTP/1.0 200 OK\r\n\r\nhello")});

    (void)state;
    assert_int_equal(ask(bench), 0);
    assert_body(bench, "hello");
    close_bench(bench);
}

static void an_error_status_is_a_reply_too(void **state)
{
    static const char *const replies[] = {
        "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone",
        "HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\ngone",
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 4\r\n\r\ngone",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 Bad\r\nContent-Length: 4\r\n\r\ngone",
    };
    static const int statuses[] = {404, 500, 401, 400};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
        struct bench *bench = open_bench((struct peer_script){.reply = span_of(replies[i])});

        assert_int_equal(ask(bench), 0);
        assert_int_equal(bench->reply.status, statuses[i]);
        assert_body(bench, "gone");
        close_bench(bench);
    }
}

static void a_redirect_is_not_followed(void **state)
{
    struct bench *bench = open_bench((struct peer_script){
        .reply = SPAN("HTTP/1.1 301 Moved\r\nLocation: http://localhost/other\r\n"
                      "Content-Length: 0\r\n\r\n"),
        .end = PEER_SERVES_ON});

    (void)state;
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->reply.status, 301);
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->requests, 1);
    close_bench(bench);
}

static void a_connection_serves_many_requests(void **state)
{
    struct bench *bench = open_bench(well_behaved);

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(ask(bench), 0);
        assert_body(bench, "hello");
    }
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->requests, 20);
    assert_int_equal(bench->peer->connections, 1);
    close_bench(bench);
}

static void a_connection_that_the_peer_closed_is_replaced(void **state)
{
    struct peer_script script = well_behaved;
    struct bench *bench;

    (void)state;
    script.end = PEER_CLOSES;
    bench = open_bench(script);
    for (int i = 0; i < 20; i++)
        assert_int_equal(ask(bench), 0);
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->requests, 20);
    assert_int_equal(bench->peer->connections, 20);
    close_bench(bench);
}

/* The peer serves one connection: a second one waits as long as the first is kept. */
static void an_http2_request_uses_no_kept_connection(void **state)
{
    struct bench *bench = open_bench(well_behaved);

    (void)state;
    assert_int_equal(ask(bench), 0);
    bench->request.http2 = true;
    bench->request.timeout_us = 100 * MS;
    assert_fails(bench, -ETIMEDOUT, "");
    bench->request.http2 = false;
    bench->request.timeout_us = 20 * SECOND;
    assert_int_equal(ask(bench), 0);
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->requests, 2);
    close_bench(bench);
}

static void a_socket_without_a_server_is_named(void **state)
{
    struct bench *bench = open_bench(well_behaved);
    char path[128];

    (void)state;
    snprintf(path, sizeof(path), "%s/absent", bench->peer->directory);
    bench->request.socket_path = path;
    assert_int_equal(ask(bench), -ENOENT);
    assert_contains(bench->err.text, "/absent failed: no such socket");
    snprintf(path, sizeof(path), "%s/below", bench->peer->path);
    assert_int_equal(ask(bench), -ENOENT);

    peer_stop(bench->peer);
    close(bench->peer->listener_fd); /* the file stays */
    bench->peer->listener_fd = -1;
    bench->request.socket_path = bench->peer->path;
    assert_fails(bench, -ECONNREFUSED, "connection refused");
    close_bench(bench);
}

static void a_port_without_a_server_is_named(void **state)
{
    struct bench *bench = open_tcp_bench(well_behaved);

    (void)state;
    peer_stop(bench->peer);
    close(bench->peer->listener_fd);
    bench->peer->listener_fd = -1;
    assert_fails(bench, -ECONNREFUSED, "connection refused");
    close_bench(bench);
}

/* Root may connect to anything, so it becomes another user for a moment. */
static void a_socket_without_permission_is_named(void **state)
{
    enum { NOBODY = 65534 };
    struct bench *bench = open_bench(well_behaved);
    uid_t self = geteuid();
    int r;

    (void)state;
    assert_int_equal(chmod(bench->peer->directory, 0711), 0);
    assert_int_equal(chmod(bench->peer->path, 0), 0);
    if (self == 0)
        assert_int_equal(seteuid(NOBODY), 0);
    r = ask(bench);
    if (self == 0)
        assert_int_equal(seteuid(self), 0);
    assert_int_equal(r, -EACCES);
    assert_contains(bench->err.text, "not permitted");
    close_bench(bench);
}

static void a_path_too_long_for_a_socket_is_refused(void **state)
{
    struct bench *bench = open_bench_with(NULL);
    char path[200];

    (void)state;
    memset(path, 'x', sizeof(path));
    path[0] = '/';
    path[108] = '\0'; /* with its NUL one more than sun_path has */
    bench->request.socket_path = path;
    assert_fails(bench, -ENAMETOOLONG, "at most 107 bytes, this one has 108");
    path[107] = '\0';
    assert_fails(bench, -ENOENT, "no such socket");
    close_bench(bench);
}

static void a_request_without_a_free_descriptor_fails(void **state)
{
    struct bench *bench = open_bench(well_behaved);
    struct rlimit limit, none;
    int lowest_free = dup(0), r;

    (void)state;
    assert_true(lowest_free > 0);
    close(lowest_free);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)lowest_free, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    r = ask(bench);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(r, -EMFILE);
    assert_contains(bench->err.text, "cannot open a socket: ");
    assert_int_equal(ask(bench), 0);
    close_bench(bench);
}

/* Checks every connection to the peer, from inside the request. */
static int check_flags(void *context, struct span data)
{
    const struct bench *bench = context;
    int found = 0;

    (void)data;
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_un address = {0};
        socklen_t len = sizeof(address);

        if (getpeername(fd, (struct sockaddr *)&address, &len) < 0 ||
            strcmp(address.sun_path, bench->peer->path) != 0)
            continue;
        found++;
        if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            return -EXDEV;
    }
    return found == 1 ? 0 : -ENOENT;
}

static void a_connection_is_not_inherited_by_child_processes(void **state)
{
    struct bench *bench = open_bench(well_behaved);

    (void)state;
    bench->request.on_data = check_flags;
    bench->request.context = bench;
    assert_int_equal(ask(bench), 0);
    close_bench(bench);
}

static void a_proxy_of_the_environment_is_not_used(void **state)
{
    struct bench *bench = open_tcp_bench(well_behaved);

    (void)state;
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    assert_int_equal(ask(bench), 0);
    assert_body(bench, "hello");
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    close_bench(bench);
}

static void a_given_address_needs_no_lookup(void **state)
{
    struct bench *bench = open_tcp_bench(well_behaved);
    const char *port = strrchr(bench->peer->url, ':') + 1;
    char url[64], resolve[64], host[64];
    _cleanup_free_ char *text = NULL;

    (void)state;
    snprintf(url, sizeof(url), "http://api.test:%s/", port);
    snprintf(resolve, sizeof(resolve), "api.test:%s:127.0.0.1", port);
    snprintf(host, sizeof(host), "Host: api.test:%s\r\n", port);
    bench->request.url = url;
    bench->request.resolve = resolve;
    assert_int_equal(ask(bench), 0);
    text = heard(bench);
    assert_contains(text, host);
    close_bench(bench);
}

/* In place of glibc's, also for curl: no name resolves. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    (void)name;
    (void)service;
    (void)hints;
    (void)ret_list;
    return EAI_NONAME;
}

static void a_name_that_does_not_resolve_is_named(void **state)
{
    struct bench *bench = open_bench_with(NULL);

    (void)state;
    bench->request.url = "http://absent.test/";
    assert_fails(bench, -ENOENT, "http://absent.test/ failed: its name does not resolve");
    close_bench(bench);
}

static void an_error_shows_no_secrets(void **state)
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"http://me:secret@absent.test/pods", "request to http://absent.test/pods failed: "},
        {"http://absent.test/pods?token=secret", "request to http://absent.test/pods failed: "},
        {"http://absent.test?token=secret@secret", "request to http://absent.test failed: "},
        {"http://absent.test/@secure#secret", "request to http://absent.test/@secure failed: "},
        {"ftp://me:secret@absent.test/", "request to ftp://absent.test/ failed: "},
    };
    struct bench *bench = open_bench_with(NULL);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bench->request.url = cases[i].url;
        assert_true(ask(bench) < 0);
        assert_contains(bench->err.text, cases[i].shown);
        assert_lacks(bench->err.text, "secret");
    }
    close_bench(bench);
}

static void a_malformed_request_is_rejected(void **state)
{
    static const char *const urls[] = {
        "",       "localhost",         "ftp://localhost/",           "file:///etc/passwd",
        "http:/", "http://",           "http://localhost:99999999/", "http://local host/",
        "gopher", "http://a\nb.test/",
    };
    static const char *const headers[] = {"Authorization: Bearer abc\n", NULL};
    struct bench *bench = open_bench(well_behaved);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        bench->request.url = urls[i];
        assert_fails(bench, -EINVAL, "");
    }
    bench->request.url = "http://localhost/";
    bench->request.resolve = "localhost";
    assert_fails(bench, -EINVAL, "");
    bench->request.resolve = NULL;
    bench->request.headers = headers;
    assert_fails(bench, -EINVAL, "line break");
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->connections, 0);
    close_bench(bench);
}

static void a_peer_without_tls_is_not_trusted(void **state)
{
    struct bench *bench = open_bench(
        (struct peer_script){.reply = SPAN("HTTP/1.1 200 OK\r\n\r\n"), .ignores_request = true});

    (void)state;
    bench->request.url = "https://localhost/";
    assert_fails(bench, -EPROTO, "");
    bench->request.ca_path = "/nonexistent/ca.crt";
    assert_fails(bench, -EKEYREJECTED, "/nonexistent/ca.crt");
    close_bench(bench);
}

static void a_peer_without_tls_fails_verification(void **state)
{
    static const uint8_t digest[HTTP_TRUST_SHA256_BYTES] = {0};
    struct bench *bench = open_tcp_bench(well_behaved);
    struct http_trust *trust;

    (void)state;
    assert_int_equal(http_trust_new(&(struct http_trust_options){.host = "127.0.0.1",
                                                                 .certificate_sha256 = digest},
                                    &trust, NULL),
                     0);
    bench->request.trust = trust;
    assert_fails(bench, -EKEYREJECTED, "does not use TLS");
    http_trust_free(trust);
    assert_int_equal(
        http_trust_new(&(struct http_trust_options){.host = "127.0.0.1", .anybody = true}, &trust,
                       NULL),
        0);
    bench->request.trust = trust;
    assert_int_equal(ask(bench), 0);
    http_trust_free(trust);
    peer_stop(bench->peer);
    assert_int_equal(bench->peer->requests, 1); /* the other was never sent */
    close_bench(bench);
}

static void cas_that_cannot_be_read_are_an_error(void **state)
{
    struct http_trust *trust;
    struct error err = {""};

    (void)state;
    assert_int_equal(
        http_trust_new(&(struct http_trust_options){.host = "bmc", .ca = span_of("no certificate")},
                       &trust, &err),
        -EINVAL);
    assert_contains(err.text, "no CA certificate can be read");
}

static void the_method_can_be_overridden(void **state)
{
    struct bench *bench = open_bench(well_behaved);
    char *text;

    (void)state;
    bench->request.method = "DELETE";
    assert_int_equal(ask(bench), 0);
    text = heard(bench);
    assert_contains(text, "DELETE / HTTP/1.1\r\n");
    free(text);
    close_bench(bench);
}

static void every_header_is_passed_on(void **state)
{
    struct bench *bench = open_bench(well_behaved);
    char seen[256] = "";

    (void)state;
    bench->request.on_header = note_header;
    bench->request.context = seen;
    assert_int_equal(ask(bench), 0);
    assert_string_equal(seen, "Content-Length=5 Api-Version=1.41 ");
    close_bench(bench);
}

static void *hang_up(void *argument)
{
    usleep(20000);
    close(*(int *)argument);
    return NULL;
}

static bool is_closed(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void a_request_ends_when_the_watched_socket_hangs_up(void **state)
{
    struct bench *bench = open_bench((struct peer_script){.end = PEER_HOLDS});
    pthread_t thread;
    int fds[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    http_client_watch(bench->client, fds[0], is_closed);
    assert_int_equal(pthread_create(&thread, NULL, hang_up, &fds[1]), 0);
    assert_fails(bench, -ECANCELED, "cancelled");
    assert_true(bench->took_us < LATE);
    pthread_join(thread, NULL);
    assert_fails(bench, -ECANCELED, "cancelled"); /* and so does each later one */
    close_bench(bench);
    bench = open_bench(well_behaved);
    http_client_watch(bench->client, fds[0], is_closed);
    http_client_watch(bench->client, -1, NULL);
    assert_int_equal(ask(bench), 0);
    close_bench(bench);
    close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_of_many_threads_are_independent),
        cmocka_unit_test(a_get_returns_status_and_body),
        cmocka_unit_test(a_post_sends_its_headers_and_body),
        cmocka_unit_test(an_empty_body_is_still_a_post),
        cmocka_unit_test(a_long_body_is_sent_without_100_continue),
        cmocka_unit_test(a_chunked_body_is_put_together),
        cmocka_unit_test(a_body_may_end_with_the_connection),
        cmocka_unit_test(an_error_status_is_a_reply_too),
        cmocka_unit_test(a_redirect_is_not_followed),
        cmocka_unit_test(a_connection_serves_many_requests),
        cmocka_unit_test(a_connection_that_the_peer_closed_is_replaced),
        cmocka_unit_test(an_http2_request_uses_no_kept_connection),
        cmocka_unit_test(a_socket_without_a_server_is_named),
        cmocka_unit_test(a_port_without_a_server_is_named),
        cmocka_unit_test(a_socket_without_permission_is_named),
        cmocka_unit_test(a_path_too_long_for_a_socket_is_refused),
        cmocka_unit_test(a_request_without_a_free_descriptor_fails),
        cmocka_unit_test(a_connection_is_not_inherited_by_child_processes),
        cmocka_unit_test(a_proxy_of_the_environment_is_not_used),
        cmocka_unit_test(a_given_address_needs_no_lookup),
        cmocka_unit_test(a_name_that_does_not_resolve_is_named),
        cmocka_unit_test(an_error_shows_no_secrets),
        cmocka_unit_test(a_malformed_request_is_rejected),
        cmocka_unit_test(a_peer_without_tls_is_not_trusted),
        cmocka_unit_test(a_peer_without_tls_fails_verification),
        cmocka_unit_test(cas_that_cannot_be_read_are_an_error),
        cmocka_unit_test(the_method_can_be_overridden),
        cmocka_unit_test(every_header_is_passed_on),
        cmocka_unit_test(a_request_ends_when_the_watched_socket_hangs_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
