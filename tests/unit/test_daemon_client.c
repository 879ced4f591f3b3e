/* cli/daemon_client: addresses, files, and what is said of replies that are no document. */
#include "http_client_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/daemon_client.h"
#include "config/options.h"
#include "file_fixture.h"

#define SECRET "username: alice\npassword: 'hunter2'\n"
#define REPLY(status, body)                                                                        \
    {                                                                                              \
        .reply = SPAN("HTTP/1.1 " status "\r\nContent-Length: 5\r\n\r\n" body),                    \
        .end = PEER_SERVES_ON                                                                      \
    }

static struct daemon_client *open_client(const char *address, const char *credentials_path)
{
    struct options options = {.daemon_url = address, .daemon_credentials_path = credentials_path};
    struct daemon_client *client = NULL;
    struct error err = {""};

    if (daemon_client_open(&options, &client, &err) != 0)
        fail_msg("%s: %s", address, err.text);
    return client;
}

static void only_an_address_of_a_daemon_is_taken(void **state)
{
    static const char *const good[] = {
        "http://localhost:9400",      "http://node1:9400/", "https://node1",
        "https://[2001:db8::1]:9400", "http://proxy/node1", "unix:/run/wattribute.sock",
    };
    static const char *const bad[] = {
        "",           "localhost:9400", "ftp://node1", "http://",           "http:///x",
        "unix:",      "unix:run.sock",  "http://a b",  "http://u:p@node1/", "http://a?b",
        "http://a#b", "http://a\nb",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        daemon_client_close(open_client(good[i], NULL));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct options options = {.daemon_url = bad[i]};
        struct daemon_client *client = NULL;
        struct error err = {""};

        if (daemon_client_open(&options, &client, &err) != -EINVAL)
            fail_msg("taken: '%s'", bad[i]);
        assert_contains(err.text, "--daemon: ");
        assert_null(client);
    }
    daemon_client_close(NULL);
}

static void a_document_comes_by_tcp_and_by_unix_socket(void **state)
{
    struct peer_script script = REPLY("200 OK", "{'a'}");

    (void)state;
    for (int is_tcp = 0; is_tcp < 2; is_tcp++) {
        struct peer *peer = is_tcp ? peer_start_tcp(&script) : peer_start(&script);
        struct daemon_client *client;
        struct span body = {0};
        struct error err = {""};
        char address[80];

        snprintf(address, sizeof(address), "%s%s",
                 is_tcp ? "" : "unix:", is_tcp ? peer->url : peer->path);
        client = open_client(address, NULL);
        assert_string_equal(daemon_client_address(client), address);
        for (int i = 0; i < 2; i++)
            assert_int_equal(daemon_client_get(client, "/api/v1/node", 5 * SECOND, &body, &err), 0);
        assert_true(span_equals(body, "{'a'}"));
        daemon_client_close(client);
        peer_stop(peer);
        assert_int_equal(peer->connections, 1);
        assert_memory_equal(peer->request.data, "GET /api/v1/node HTTP/1.1\r\n", 27);
        peer_free(peer);
    }
}

static void a_status_says_what_to_do(void **state)
{
    static const struct {
        struct peer_script script;
        int result;
        const char *text;
    } cases[] = {
        {REPLY("401 Unauthorized", "12345"), -EACCES, "--daemon.credentials-file"},
        {REPLY("403 Forbidden", "12345"), -EACCES, "--daemon.credentials-file"},
        {REPLY("404 Not Found", "12345"), -ENOENT, "of this version?"},
        {REPLY("503 Unavailable", "12345"), -EAGAIN, "nothing to show yet"},
        {REPLY("302 Found", "12345"), -EPROTO, "status 302"},
        {{.reply = SPAN("not HTTP\r\n\r\n"), .end = PEER_CLOSES}, -EPROTO, "request to"},
        {{.end = PEER_HOLDS}, -ETIMEDOUT, "no complete reply"},
        {{.reply = SPAN("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n"), .end = PEER_HOLDS},
         -EFBIG,
         "longer than"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct peer *peer = peer_start_tcp(&cases[i].script);
        struct daemon_client *client = open_client(peer->url, NULL);
        struct span body = {0};
        struct error err = {""};
        int r = daemon_client_get(
            client, "/x", cases[i].result == -ETIMEDOUT ? 50 * MS : 5 * SECOND, &body, &err);

        if (r != cases[i].result)
            fail_msg("%zu: %s (%s)", i, strerror(-r), err.text);
        assert_contains(err.text, cases[i].text);
        assert_contains(err.text, peer->url);
        daemon_client_close(client);
        peer_free(peer);
    }
}

static void where_no_daemon_is_the_text_says_how_to_name_one(void **state)
{
    struct peer_script script = {0};
    struct peer *peer = peer_start_tcp(&script);
    struct span body;
    struct error err = {""};
    struct daemon_client *client = open_client(peer->url, NULL);

    (void)state;
    peer_free(peer);
    assert_int_equal(daemon_client_get(client, "/x", SECOND, &body, &err), -ECONNREFUSED);
    assert_contains(err.text, "--daemon");
    daemon_client_close(client);
    client = open_client("unix:/nowhere/at/all.sock", NULL);
    assert_int_equal(daemon_client_get(client, "/x", SECOND, &body, &err), -ECONNREFUSED);
    assert_contains(err.text, "/nowhere/at/all.sock");
    daemon_client_close(client);
}

static void the_password_goes_to_tls_or_to_this_machine_only(void **state)
{
    static const struct {
        const char *address;
        int result;
    } cases[] = {
        {"http://localhost:9400", 0},    {"http://127.0.0.1:9400", 0},
        {"http://127.9.9.9", 0},         {"http://[::1]:9400", 0},
        {"https://node1:9400", 0},       {"unix:/run/w.sock", 0},
        {"http://node1:9400", -EINVAL},  {"http://10.0.0.1", -EINVAL},
        {"http://127.0.0.1.x", -EINVAL}, {"http://[::1]x:1", -EINVAL},
        {"http://[::2]:1", -EINVAL},
    };
    char path[FILE_PATH_BYTES];

    (void)state;
    file_make(path, SECRET, 0600);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct options options = {.daemon_url = cases[i].address, .daemon_credentials_path = path};
        struct daemon_client *client = NULL;
        struct error err = {""};

        if (daemon_client_open(&options, &client, &err) != cases[i].result)
            fail_msg("%s: %s", cases[i].address, err.text);
        if (cases[i].result < 0)
            assert_contains(err.text, "use https");
        daemon_client_close(client);
    }
    unlink(path);
}

static void the_password_is_sent_and_never_said(void **state)
{
    struct peer_script script = REPLY("401 Unauthorized", "12345");
    struct peer *peer = peer_start_tcp(&script);
    struct daemon_client *client;
    struct span body;
    struct error err = {""};
    char path[FILE_PATH_BYTES], *text;

    (void)state;
    file_make(path, SECRET, 0600);
    client = open_client(peer->url, path);
    assert_int_equal(daemon_client_get(client, "/x", 5 * SECOND, &body, &err), -EACCES);
    assert_contains(err.text, "is wrong");
    assert_lacks(err.text, "hunter2");
    daemon_client_close(client);
    peer_stop(peer);
    text = strndup(peer->request.data, peer->request.len);
    assert_contains(text, "Authorization: Basic YWxpY2U6aHVudGVyMg==\r\n");
    free(text);
    peer_free(peer);
    unlink(path);
}

static void files_that_cannot_be_used_are_named(void **state)
{
    char open_to_all[FILE_PATH_BYTES], without[FILE_PATH_BYTES];
    const struct {
        const char *ca, *credentials, *text;
    } cases[] = {
        {"/nowhere/ca.crt", NULL, "--daemon.ca-file: cannot open /nowhere/ca.crt"},
        {NULL, "/nowhere/secret", "--daemon.credentials-file /nowhere/secret"},
        {NULL, open_to_all, "chmod 600"},
        {NULL, without, "must have both"},
    };

    (void)state;
    file_make(open_to_all, SECRET, 0644);
    file_make(without, "username: alice\n", 0600);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct options options = {.daemon_url = "https://node1",
                                  .daemon_ca_path = cases[i].ca,
                                  .daemon_credentials_path = cases[i].credentials};
        struct daemon_client *client = NULL;
        struct error err = {""};

        assert_true(daemon_client_open(&options, &client, &err) < 0);
        assert_contains(err.text, cases[i].text);
    }
    unlink(open_to_all);
    unlink(without);
}

static void a_cancelled_client_asks_nothing_more(void **state)
{
    struct peer_script script = {.end = PEER_HOLDS};
    struct peer *peer = peer_start_tcp(&script);
    struct daemon_client *client = open_client(peer->url, NULL);
    struct span body;

    (void)state;
    daemon_client_cancel(client);
    assert_int_equal(daemon_client_get(client, "/x", 60 * SECOND, &body, NULL), -ECANCELED);
    daemon_client_close(client);
    peer_free(peer);
}

static bool ends_request(int fd)
{
    (void)fd;
    return true;
}

/* As when the command of `run` ends while its daemon hangs. */
static void a_call_ends_when_what_it_watches_is_readable(void **state)
{
    struct peer_script script = {.end = PEER_HOLDS};
    struct peer *peer = peer_start_tcp(&script);
    struct daemon_client *client = open_client(peer->url, NULL);
    struct span body;
    int fds[2];

    (void)state;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    daemon_client_watch(client, fds[0], ends_request);
    assert_int_equal(daemon_client_get(client, "/x", 60 * SECOND, &body, NULL), -ECANCELED);
    close(fds[0]);
    close(fds[1]);
    daemon_client_close(client);
    peer_free(peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_an_address_of_a_daemon_is_taken),
        cmocka_unit_test(a_document_comes_by_tcp_and_by_unix_socket),
        cmocka_unit_test(a_status_says_what_to_do),
        cmocka_unit_test(where_no_daemon_is_the_text_says_how_to_name_one),
        cmocka_unit_test(the_password_goes_to_tls_or_to_this_machine_only),
        cmocka_unit_test(the_password_is_sent_and_never_said),
        cmocka_unit_test(files_that_cannot_be_used_are_named),
        cmocka_unit_test(a_cancelled_client_asks_nothing_more),
        cmocka_unit_test(a_call_ends_when_what_it_watches_is_readable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
