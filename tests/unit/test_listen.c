/* net/listen: addresses, and the sockets that they become. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "net/listen.h"

static void addresses_are_parsed(void **state)
{
    static const struct {
        const char *text, *host, *port, *path;
    } cases[] = {
        {":9400", "", "9400", ""},
        {":0", "", "0", ""},
        {"127.0.0.1:9400", "127.0.0.1", "9400", ""},
        {"[::1]:9400", "::1", "9400", ""},
        {"[fe80::1%eth0]:9400", "fe80::1%eth0", "9400", ""},
        {"node-1.example:65535", "node-1.example", "65535", ""},
        {"localhost:09400", "localhost", "9400", ""},
        {"unix:/run/x.sock", "", "", "/run/x.sock"},
        {"unix:/with:colon", "", "", "/with:colon"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct listen_address address;

        assert_int_equal(listen_parse(cases[i].text, &address, NULL), 0);
        assert_string_equal(address.host, cases[i].host);
        assert_string_equal(address.port, cases[i].port);
        assert_string_equal(address.path, cases[i].path);
    }
}

static void what_is_not_an_address_is_refused_with_an_example(void **state)
{
    static const char *const cases[] = {
        "",
        "9400",
        "localhost",
        "localhost:",
        ":65536",
        ":-1",
        ":http",
        ": 9400",
        "::1",
        "::1:9400",
        "[::1]",
        "[::1:9400",
        "[]:9400",
        "a]:1",
        "unix:",
        "unix:relative",
        ":99999999999999999999",
        "[::1]x:80",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct listen_address address;
        struct error err = {""};

        if (listen_parse(cases[i], &address, &err) != -EINVAL)
            fail_msg("\"%s\" was taken for an address", cases[i]);
        assert_non_null(strstr(err.text, cases[i]));
    }
}

static void overlong_names_are_refused(void **state)
{
    struct listen_address address;
    char text[400];

    (void)state;
    memset(text, 'a', sizeof(text));
    strcpy(text + 256, ":9400");
    assert_int_equal(listen_parse(text, &address, NULL), -EINVAL);
    strcpy(text + 255, ":9400");
    assert_int_equal(listen_parse(text, &address, NULL), 0);
    memset(text, 'a', sizeof(text));
    memcpy(text, "unix:/", 6);
    text[5 + 108] = '\0';
    assert_int_equal(listen_parse(text, &address, NULL), -EINVAL);
    text[5 + 107] = '\0';
    assert_int_equal(listen_parse(text, &address, NULL), 0);
}

static int open_one(const char *address, struct error *err)
{
    int fds[LISTEN_MAX];
    size_t count;
    int r = listen_open(&address, 1, fds, &count, err);

    if (r < 0)
        return r;
    assert_int_equal(count, 1);
    assert_true(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
    return fds[0];
}

static void several_addresses_give_as_many_listeners(void **state)
{
    static const char *const addresses[] = {"127.0.0.1:0", ":0", "127.0.0.2:0"};
    int fds[LISTEN_MAX];
    char text[128];
    size_t count = 0;

    (void)state;
    assert_int_equal(listen_open(addresses, ARRAY_SIZE(addresses), fds, &count, NULL), 0);
    assert_int_equal(count, 3);
    assert_int_equal(listen_describe(fds[0], text, sizeof(text)), 0);
    assert_memory_equal(text, "127.0.0.1:", 10);
    assert_string_not_equal(text, "127.0.0.1:0");
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void a_port_alone_answers_ipv4_too(void **state)
{
    int fd = open_one(":0", NULL), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct listen_address address;
    char text[128];

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(listen_describe(fd, text, sizeof(text)), 0);
    assert_int_equal(listen_parse(text, &address, NULL), 0);
    loopback.sin_port = htons((uint16_t)strtoul(address.port, NULL, 10));
    assert_int_equal(connect(client, (struct sockaddr *)&loopback, sizeof(loopback)), 0);
    close(client);
    close(fd);
}

static void an_address_in_use_says_what_to_do_and_leaves_nothing_open(void **state)
{
    int fd = open_one("127.0.0.1:0", NULL), fds[LISTEN_MAX], before, after;
    char text[128];
    const char *addresses[] = {"127.0.0.1:0", text};
    struct error err;
    size_t count = 99;

    (void)state;
    assert_int_equal(listen_describe(fd, text, sizeof(text)), 0);
    before = dup(0);
    close(before);
    assert_int_equal(listen_open(addresses, 2, fds, &count, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, text));
    assert_non_null(strstr(err.text, "another process listens there; stop it or choose another "
                                     "port with --listen-address"));
    assert_int_equal(count, 99);
    after = dup(0);
    close(after);
    assert_int_equal(before, after);
    close(fd);
}

static void an_address_of_another_machine_is_refused(void **state)
{
    struct error err;

    (void)state;
    assert_int_equal(open_one("192.0.2.1:0", &err), -EADDRNOTAVAIL);
    assert_non_null(strstr(err.text, "no interface of this machine has that address"));
}

static void too_many_addresses_are_refused(void **state)
{
    const char *addresses[LISTEN_MAX + 1];
    int fds[LISTEN_MAX];
    size_t count;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
        addresses[i] = "127.0.0.1:0";
    assert_int_equal(listen_open(addresses, ARRAY_SIZE(addresses), fds, &count, NULL), -E2BIG);
}

static void a_stale_unix_socket_is_replaced_and_a_live_one_is_not(void **state)
{
    char dir[] = "/tmp/test-listen-XXXXXX", path[64], address[80], text[128];
    struct error err;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    snprintf(address, sizeof(address), "unix:%s", path);
    fd = open_one(address, &err);
    assert_true(fd >= 0);
    assert_int_equal(listen_describe(fd, text, sizeof(text)), 0);
    assert_string_equal(text, address);
    assert_int_equal(open_one(address, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, "choose another path"));
    close(fd); /* the file stays */
    fd = open_one(address, &err);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void the_file_of_a_unix_socket_goes_with_it_unless_another_listens_there(void **state)
{
    char dir[] = "/tmp/test-listen-XXXXXX", path[64], address[80];
    struct error err;
    int fd, other;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    snprintf(address, sizeof(address), "unix:%s", path);
    fd = open_one(address, &err);
    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    other = open_one(address, &err);
    assert_true(other >= 0);
    listen_close(&fd, 1);
    assert_int_equal(access(path, F_OK), 0);
    listen_close(&other, 1);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(dir), 0);
}

static void a_file_that_is_no_socket_is_never_removed(void **state)
{
    char dir[] = "/tmp/test-listen-XXXXXX", path[64], address[80];
    struct error err;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/file", dir);
    snprintf(address, sizeof(address), "unix:%s", path);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(open_one(address, &err), -EADDRINUSE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

/* Runs in a child, where descriptor 3 can be whatever the test needs. Returns its verdict. */
static int with_systemd(int passed_fd, bool for_this_process)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        const char *address = "127.0.0.1:0";
        char number[24];
        int fds[LISTEN_MAX], r;
        size_t count = 0;

        dup2(passed_fd, 3);
        snprintf(number, sizeof(number), "%d", for_this_process ? getpid() : getppid());
        setenv("LISTEN_PID", number, 1);
        setenv("LISTEN_FDS", "1", 1);
        setenv("LISTEN_FDNAMES", "http", 1);
        r = listen_open(&address, 1, fds, &count, NULL);
        if (getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES"))
            _exit(100);
        if (r < 0)
            _exit(-r);
        if (count != 1 || !(fcntl(fds[0], F_GETFL) & O_NONBLOCK) ||
            !(fcntl(fds[0], F_GETFD) & FD_CLOEXEC))
            _exit(101);
        _exit(fds[0] == 3 ? 0 : 102);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void sockets_of_systemd_replace_the_addresses(void **state)
{
    int listening = socket(AF_INET, SOCK_STREAM, 0), idle = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(with_systemd(listening, true), 0);
    assert_int_equal(with_systemd(idle, true), EINVAL);
    assert_int_equal(with_systemd(listening, false), 102);
    close(listening);
    close(idle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_parsed),
        cmocka_unit_test(what_is_not_an_address_is_refused_with_an_example),
        cmocka_unit_test(overlong_names_are_refused),
        cmocka_unit_test(several_addresses_give_as_many_listeners),
        cmocka_unit_test(a_port_alone_answers_ipv4_too),
        cmocka_unit_test(an_address_in_use_says_what_to_do_and_leaves_nothing_open),
        cmocka_unit_test(an_address_of_another_machine_is_refused),
        cmocka_unit_test(too_many_addresses_are_refused),
        cmocka_unit_test(a_stale_unix_socket_is_replaced_and_a_live_one_is_not),
        cmocka_unit_test(the_file_of_a_unix_socket_goes_with_it_unless_another_listens_there),
        cmocka_unit_test(a_file_that_is_no_socket_is_never_removed),
        cmocka_unit_test(sockets_of_systemd_replace_the_addresses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
