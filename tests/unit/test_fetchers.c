/* collector/fetchers: what each is told, and that another one follows when its secrets change. This
 * test is its own fetcher, which reports what its secret is, and waits for its end. */
#include "tree_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "certificate_fixture.h"
#include "collector/fetchers.h"
#include "core/macros.h"
#include "log_capture.h"
#include "options_fixture.h"
#include "process/channel.h"

static const uint64_t NOON_US = UINT64_C(1768478400000000);

struct fixture {
    char directory[32];
    struct options options;
    struct clock_manual clock;
    struct emissions emissions;
    struct api_config api;
    struct fetchers fetchers;
    struct fetcher *fetcher; /* the one under test */
    int epoll_fd;
};

static void set(struct fixture *f, const char *flag, const char *value)
{
    struct error err = {""};

    assert_int_equal(set_flag(&f->options, flag, value, OPTIONS_COMMAND_LINE, &err), 0);
}

static int set_up(void **state)
{
    static struct fixture f;
    struct error err = {""};

    f = (struct fixture){.directory = "/tmp/wattribute-fetch-XXXXXX"};
    assert_non_null(mkdtemp(f.directory));
    assert_int_equal(options_init(&f.options, &err), 0);
    clock_manual_init(&f.clock, NOON_US);
    f.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    f.api = (struct api_config){"10.96.0.1", "443", "node-a", f.directory};
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    fetchers_close(&f->fetchers);
    close(f->epoll_fd);
    options_done(&f->options);
    tree_remove(f->directory, "");
    return 0;
}

static void write_secret(struct fixture *f, const char *name, const char *text)
{
    char path[64];

    tree_write(f->directory, name, text);
    snprintf(path, sizeof(path), "%s/%s", f->directory, name);
    assert_int_equal(chmod(path, 0600), 0);
}

static const char *path_of(struct fixture *f, const char *name)
{
    static char path[64];

    snprintf(path, sizeof(path), "%s/%s", f->directory, name);
    return path;
}

static int open_all(struct fixture *f, enum fetcher_kind kind, struct error *err)
{
    int r;

    assert_int_equal(emissions_init(&f->emissions, &f->options, &f->clock.clock, err), 0);
    f->fetcher = &f->fetchers.items[kind];
    r = fetchers_open(&f->fetchers,
                      &(struct fetchers_options){.options = &f->options,
                                                 .clock = &f->clock.clock,
                                                 .with_bmc = kind == FETCHER_BMC,
                                                 .api = kind == FETCHER_KUBERNETES ? &f->api : NULL,
                                                 .emissions = &f->emissions},
                      err);
    f->fetchers.epoll_fd = f->epoll_fd;
    return r;
}

static void start(struct fixture *f)
{
    fetchers_start_due(&f->fetchers);
    assert_true(f->fetcher->child.pid > 0);
    assert_true(f->fetcher->child.channel_fd >= 0);
}

static void open_with_keys(struct fixture *f, const char *text)
{
    struct error err = {""};

    write_secret(f, "keys.yaml", text);
    set(f, "emissions.providers", "electricity_maps,rte");
    set(f, "emissions.zone", "FR");
    set(f, "emissions.keys-file", path_of(f, "keys.yaml"));
    assert_int_equal(open_all(f, FETCHER_EMISSIONS, &err), 0);
    start(f);
    f->clock.now_us += 3600 * USEC_PER_SEC;
}

static void assert_reports(const struct fixture *f, const char *secret)
{
    int fd = f->fetcher->child.channel_fd;
    struct pollfd channel = {.fd = fd, .events = POLLIN};
    char text[128] = "";

    assert_int_equal(poll(&channel, 1, -1), 1);
    /* The first one fails if it has ended without reading its ping. */
    assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0 || recv(fd, text, sizeof(text) - 1, 0) > 0);
    assert_string_equal(text, secret);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    while ((text = strstr(text, part)) != NULL) {
        count++;
        text += strlen(part);
    }
    return count;
}

static int wait_for_end(const struct fixture *f)
{
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t)f->fetcher->child.pid, &info, WEXITED | WNOWAIT), 0);
    return info.si_status;
}

/* Until it has ended; then there is another one. */
static void await_next(struct fixture *f)
{
    (void)wait_for_end(f);
    fetchers_reap(&f->fetchers);
    assert_int_equal(f->fetcher->child.pid, 0);
    assert_in_range(f->fetcher->child.restart_us, f->clock.now_us, f->clock.now_us + USEC_PER_SEC);
    f->clock.now_us = f->fetcher->child.restart_us;
    start(f);
}

/* It lives for so long, is killed, and another one follows. */
static void die_after(struct fixture *f, uint64_t lived_us)
{
    f->clock.now_us += lived_us;
    assert_int_equal(kill(f->fetcher->child.pid, SIGKILL), 0);
    (void)wait_for_end(f);
    fetchers_reap(&f->fetchers);
    f->clock.now_us = f->fetcher->child.restart_us;
    start(f);
}

static void only_those_that_are_wanted_have_a_job(void **state)
{
    struct fixture *f = *state;

    open_with_keys(f, "electricity_maps: right\n");
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        assert_int_equal(f->fetchers.items[kind].job.len > 0, kind == FETCHER_EMISSIONS);
        assert_int_equal(f->fetchers.items[kind].child.pid > 0, kind == FETCHER_EMISSIONS);
        assert_int_equal(f->fetchers.items[kind].child.restart_us, UINT64_MAX);
    }
}

static void its_kind_can_be_seen_in_its_arguments(void **state)
{
    static const char expected[] = "wattribute\0fetcher\0emissions";
    struct fixture *f = *state;
    char path[64], seen[64] = "";
    FILE *file;

    open_with_keys(f, "electricity_maps: right\n");
    assert_reports(f, "first right");
    snprintf(path, sizeof(path), "/proc/%d/cmdline", f->fetcher->child.pid);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(seen, 1, sizeof(seen), file), sizeof(expected));
    assert_memory_equal(seen, expected, sizeof(expected));
    fclose(file);
}

static void open_bmc(struct fixture *f)
{
    struct error err = {""};

    write_secret(f, "credentials", "username: me\npassword: hunter2\n");
    set(f, "redfish.url", "http://bmc.example/");
    set(f, "redfish.insecure", "true");
    set(f, "redfish.credentials-file", path_of(f, "credentials"));
    assert_int_equal(open_all(f, FETCHER_BMC, &err), 0);
}

static void one_that_cannot_be_watched_is_replaced_after_a_pause(void **state)
{
    struct fixture *f = *state;

    open_bmc(f);
    f->fetchers.epoll_fd = -1;
    fetchers_start_due(&f->fetchers);
    assert_int_equal(f->fetcher->child.channel_fd, -1);
    assert_int_equal(wait_for_end(f), SIGKILL);
    fetchers_reap(&f->fetchers);
    assert_int_equal(f->fetcher->child.restart_us, f->clock.now_us + 100000);
    fetchers_start_due(&f->fetchers); /* too early */
    assert_int_equal(f->fetcher->child.pid, 0);
    f->fetchers.epoll_fd = f->epoll_fd;
    f->clock.now_us += 100000;
    start(f);
    assert_reports(f, "again http://bmc.example:80 me hunter2 with a socket");
}

static void one_that_answers_no_ping_is_killed_and_another_one_follows(void **state)
{
    struct fixture *f = *state;
    struct capture capture = capture_begin();
    char log[2048];

    open_with_keys(f, "electricity_maps: right\n");
    assert_reports(f, "first right");
    for (int i = 0; i < CHILD_PINGS_MAX; i++) {
        fetchers_ping(&f->fetchers);
        f->clock.now_us += CHILD_PING_US;
    }
    assert_true(f->fetcher->child.channel_fd >= 0);
    fetchers_ping(&f->fetchers);
    assert_int_equal(wait_for_end(f), SIGKILL);
    await_next(f);
    capture_end(capture, log, sizeof(log));
    assert_int_equal(count_of(log, "\n"), 1);
    assert_non_null(strstr(log, "level=warn msg=\"a fetcher hangs: it was killed, and another one "
                                "is started\" fetcher=emissions\n"));
    assert_int_equal(f->fetcher->child.hangs, 1);
    assert_reports(f, "again right");
}

/* Of each kind: the channel has other records, too. */
static void one_that_answers_its_pings_is_left_alone(void **state)
{
    struct fixture *f = *state;

    open_bmc(f);
    for (int kind = 0; kind < FETCHER_KINDS; kind++) {
        struct fetcher *fetcher = &f->fetchers.items[kind];
        int fds[2];

        assert_int_equal(channel_open(&fds[0], &fds[1]), 0);
        fetcher->child.channel_fd = fds[0];
        for (int i = 0; i < 3 * CHILD_PINGS_MAX; i++) {
            struct channel_ping ping;

            fetchers_ping(&f->fetchers);
            assert_int_equal(channel_receive_ping(fds[1], &ping), 0);
            assert_int_equal(channel_send(fds[1], &ping, sizeof(ping), -1), 0);
            fetchers_read(&f->fetchers, (enum fetcher_kind)kind);
            assert_int_equal(fetcher->child.pings, fetcher->child.pongs);
        }
        assert_int_equal(fetcher->child.hangs, 0);
        child_stop(&fetcher->child, 0);
        close(fds[1]);
    }
}

static void one_that_ends_again_and_again_is_logged_at_most_once_a_minute(void **state)
{
    static const char ended[] = "a fetcher ended and is started again";
    struct fixture *f = *state;
    struct capture capture = capture_begin();
    char log[2048];

    open_with_keys(f, "electricity_maps: right\n"); /* it lives for an hour */
    die_after(f, 0);
    for (int i = 0; i < 4; i++)
        die_after(f, 14 * USEC_PER_SEC);
    capture_end(capture, log, sizeof(log));
    assert_int_equal(count_of(log, ended), 1);
    assert_non_null(strstr(log, "fetcher=emissions how=\"signal 9 (SIGKILL)\" times=1\n"));
    capture = capture_begin();
    die_after(f, 14 * USEC_PER_SEC);
    die_after(f, 14 * USEC_PER_SEC);
    capture_end(capture, log, sizeof(log));
    assert_int_equal(count_of(log, ended), 1);
    assert_non_null(strstr(log, "times=6\n"));
    capture = capture_begin();
    die_after(f, 60 * USEC_PER_SEC);
    capture_end(capture, log, sizeof(log));
    assert_non_null(strstr(log, "times=1\n"));
}

/* Its host may have got another address: no failure of the process, and no pause before a login. */
static void one_that_asks_for_another_one_gets_it_at_once_and_without_a_warning(void **state)
{
    struct fixture *f = *state;
    struct capture capture = capture_begin();
    char log[1024];

    open_with_keys(f, "electricity_maps: lost\n"); /* it lives for an hour */
    assert_reports(f, "first lost");
    assert_int_equal(wait_for_end(f), FETCHER_RESTART);
    fetchers_reap(&f->fetchers);
    capture_end(capture, log, sizeof(log));
    assert_string_equal(log, "");
    assert_int_equal(f->fetcher->child.restart_us, f->clock.now_us);
    start(f);
    assert_reports(f, "first lost");
}

static void report_state(struct fixture *f, int result, const char *why)
{
    struct channel_names_state state = {.result = result};
    int fds[2];

    snprintf(state.why, sizeof(state.why), "%s", why);
    assert_int_equal(channel_open(&fds[0], &fds[1]), 0);
    assert_int_equal(channel_send(fds[1], &state, sizeof(state), -1), 0);
    assert_int_equal(dup2(fds[0], f->fetcher->child.channel_fd), f->fetcher->child.channel_fd);
    fetchers_read(&f->fetchers, FETCHER_KUBERNETES);
    close(fds[0]);
    close(fds[1]);
}

static void the_state_of_the_api_server_is_logged_once_per_change_across_restarts(void **state)
{
    struct fixture *f = *state;
    int host_fd = open(f->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct error err = {""};
    struct capture capture = capture_begin();
    struct host host;
    char log[4096];

    tree_write(f->directory, "ca.crt", certificate_pem);
    tree_write(f->directory, "token", "abc");
    assert_int_equal(open_all(f, FETCHER_KUBERNETES, &err), 0);
    host = (struct host){.procfs_fd = host_fd, .sysfs_fd = -1, .rootfs_fd = host_fd};
    assert_int_equal(
        identity_open(&(struct identity_options){.host = &host,
                                                 .rootfs_path = f->directory,
                                                 .clock = &clock_system,
                                                 .scan_interval_us = 3600 * USEC_PER_SEC},
                      &f->fetchers.identity, &err),
        0);
    for (int i = 0; i < 2; i++) {
        start(f);
        report_state(f, -EHOSTUNREACH, "no such name");
        assert_int_equal(kill(f->fetcher->child.pid, SIGKILL), 0);
        (void)wait_for_end(f);
        fetchers_reap(&f->fetchers);
        f->clock.now_us += 10 * USEC_PER_SEC;
    }
    start(f);
    report_state(f, -EIO, "it hangs");
    report_state(f, -EIO, "it hangs");
    report_state(f, 0, "");
    report_state(f, 0, "");
    capture_end(capture, log, sizeof(log));
    identity_close(f->fetchers.identity);
    f->fetchers.identity = NULL;
    close(host_fd);
    assert_int_equal(count_of(log, "names from the Kubernetes API are missing"), 1);
    assert_int_equal(count_of(log, "error=\"no such name\""), 1);
    assert_int_equal(count_of(log, "url=https://10.96.0.1:443 error=\"it hangs\""), 1);
    assert_int_equal(count_of(log, "reading this node's pod names"), 1);
}

static void new_keys_start_another_process_at_once(void **state)
{
    struct fixture *f = *state;
    struct child *child;
    pid_t first;

    open_with_keys(f, "electricity_maps: wrong\n");
    child = &f->fetcher->child;
    assert_reports(f, "first wrong");
    fetchers_check_files(&f->fetchers);
    assert_false(child->is_replaced);
    write_secret(f, "keys.yaml", "electricity_maps: the right one\n");
    fetchers_check_files(&f->fetchers);
    assert_true(child->is_replaced);
    first = child->pid;
    assert_int_equal(wait_for_end(f), 0); /* by itself */
    fetchers_reap(&f->fetchers);
    assert_int_equal(child->restart_us, f->clock.now_us);
    start(f);
    assert_int_not_equal(child->pid, first);
    assert_reports(f, "first the right one");
    fetchers_check_files(&f->fetchers);
    assert_false(child->is_replaced);
}

static void the_same_keys_in_a_new_file_leave_it_alone(void **state)
{
    struct fixture *f = *state;

    open_with_keys(f, "electricity_maps: right\n");
    write_secret(f, "keys.yaml", "# of today\nelectricity_maps: 'right'\n");
    fetchers_check_files(&f->fetchers);
    assert_false(f->fetcher->child.is_replaced);
    assert_true(f->fetcher->child.channel_fd >= 0);
}

static void the_next_one_has_the_last_good_keys_also_if_the_file_is_bad(void **state)
{
    struct fixture *f = *state;

    open_with_keys(f, "electricity_maps: right\n");
    assert_reports(f, "first right");
    write_secret(f, "keys.yaml", "electricity_maps: another\n");
    fetchers_check_files(&f->fetchers);
    write_secret(f, "keys.yaml", "nonsense\n"); /* before another one is there */
    await_next(f);
    assert_reports(f, "first another");
    fetchers_check_files(&f->fetchers);
    tree_remove(f->directory, "keys.yaml");
    fetchers_check_files(&f->fetchers);
    assert_int_equal(kill(f->fetcher->child.pid, SIGKILL), 0);
    await_next(f);
    assert_reports(f, "again another");
}

static void one_that_does_not_end_is_killed_at_the_next_check(void **state)
{
    struct fixture *f = *state;

    open_with_keys(f, "electricity_maps: right\n");
    assert_int_equal(kill(f->fetcher->child.pid, SIGSTOP), 0);
    write_secret(f, "keys.yaml", "electricity_maps: another\n");
    fetchers_check_files(&f->fetchers);
    assert_true(f->fetcher->child.is_replaced);
    fetchers_check_files(&f->fetchers);
    assert_int_equal(wait_for_end(f), SIGKILL);
    fetchers_reap(&f->fetchers);
    assert_false(f->fetcher->child.is_replaced);
}

/* The kubelet replaces the token every hour, and may write the first one late. */
static void a_token_that_comes_late_or_changes_is_used(void **state)
{
    struct fixture *f = *state;
    struct error err = {""};

    assert_int_equal(open_all(f, FETCHER_KUBERNETES, &err), 0);
    assert_int_equal(f->fetcher->job.len, 0);
    tree_write(f->directory, "ca.crt", certificate_pem);
    tree_write(f->directory, "token", "abc");
    fetchers_check_files(&f->fetchers);
    start(f);
    assert_reports(f, "first 10.96.0.1 443 node-a abc with an authority");
    tree_write(f->directory, "token", "def");
    fetchers_check_files(&f->fetchers);
    await_next(f);
    assert_reports(f, "first 10.96.0.1 443 node-a def with an authority");
}

static void an_authority_that_cannot_be_used_leaves_the_one_before_and_is_logged_once(void **state)
{
    struct fixture *f = *state;
    struct error err = {""};
    struct capture capture;
    char log[1024];

    tree_write(f->directory, "ca.crt", certificate_pem);
    tree_write(f->directory, "token", "abc");
    assert_int_equal(open_all(f, FETCHER_KUBERNETES, &err), 0);
    start(f);
    assert_reports(f, "first 10.96.0.1 443 node-a abc with an authority");
    tree_write(f->directory, "ca.crt", "garbage");
    capture = capture_begin();
    fetchers_check_files(&f->fetchers);
    fetchers_check_files(&f->fetchers);
    capture_end(capture, log, sizeof(log));
    assert_false(f->fetcher->child.is_replaced);
    assert_int_equal(count_of(log, "cannot be used; keeping the previous ones"), 1);
    assert_non_null(strstr(log, "ca.crt"));
}

static void the_fetcher_of_the_bmc_gets_a_user_a_password_and_a_socket_for_readings(void **state)
{
    struct fixture *f = *state;

    open_bmc(f);
    start(f);
    assert_reports(f, "first http://bmc.example:80 me hunter2 with a socket");
    assert_int_equal(kill(f->fetcher->child.pid, SIGKILL), 0);
    await_next(f);
    assert_reports(f, "again http://bmc.example:80 me hunter2 with a socket");
}

static void a_mistake_of_the_user_stops_the_start(void **state)
{
    struct fixture *f = *state;
    struct error err = {""};

    set(f, "redfish.url", "https://bmc.example/");
    assert_int_equal(open_all(f, FETCHER_BMC, &err), -EINVAL);
    assert_non_null(strstr(err.text, "--redfish.credentials-file"));
}

static int open_with_authority(struct fixture *f, const char *path, struct error *err)
{
    fetchers_close(&f->fetchers);
    set(f, "emissions.ca-file", path);
    return open_all(f, FETCHER_EMISSIONS, err);
}

static void an_authority_that_nobody_can_reach_stops_the_start(void **state)
{
    struct fixture *f = *state;
    char path[64], link[64], closed[64];
    const int refused = geteuid() == 0 ? -EACCES : 0; /* others ask as who they are */
    struct error err = {""};

    open_with_keys(f, "electricity_maps: right\n");
    assert_int_equal(chmod(f->directory, 0755), 0);
    tree_write(f->directory, "closed/open/ca.pem", "");
    snprintf(closed, sizeof(closed), "%s/closed/", f->directory);
    snprintf(path, sizeof(path), "%s/closed/open/ca.pem", f->directory);
    snprintf(link, sizeof(link), "%s/link.pem", f->directory);
    assert_int_equal(symlink("closed/open/ca.pem", link), 0);
    assert_int_equal(open_with_authority(f, path, &err), 0);
    assert_int_equal(chmod(closed, 0750), 0);
    assert_int_equal(open_with_authority(f, path, &err), refused);
    assert_true(refused == 0 || strstr(err.text, closed));
    err.text[0] = '\0';
    assert_int_equal(open_with_authority(f, link, &err), refused);
    assert_true(refused == 0 || strstr(err.text, closed));
    assert_int_equal(chmod(closed, 0711), 0);
    assert_int_equal(open_with_authority(f, link, &err), 0);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(open_with_authority(f, link, &err), -EACCES);
}

static int be_fetcher(void)
{
    struct pollfd channel = {.fd = CHILD_CHANNEL_FD};
    struct fetcher_job job;
    struct job block;
    char text[128] = "";
    int type = 0;
    socklen_t len = sizeof(type);

    if (fetcher_job_read(CHILD_JOB_FD, &block, &job) < 0)
        return 1;
    if (job.kind == FETCHER_EMISSIONS)
        snprintf(text, sizeof(text), "%.100s", job.emissions.keys.values[0]);
    else if (job.kind == FETCHER_KUBERNETES)
        snprintf(text, sizeof(text), "%s %s %s %s with%s an authority", job.kubernetes.host,
                 job.kubernetes.port, job.kubernetes.node, job.kubernetes.token,
                 span_equals(job.kubernetes.ca, certificate_pem) ? "" : "out");
    else
        snprintf(text, sizeof(text), "%s %s %s with%s a socket", job.bmc.url, job.bmc.user,
                 job.bmc.password,
                 getsockopt(CHILD_MORE_FD, SOL_SOCKET, SO_TYPE, &type, &len) == 0 ? "" : "out");
    memmove(text + 6, text, sizeof(text) - 7);
    memcpy(text, job.is_restart ? "again " : "first ", 6);
    job_done(&block);
    if (send(CHILD_CHANNEL_FD, text, strlen(text), 0) < 0)
        return 2;
    if (strcmp(text + 6, "lost") == 0)
        return FETCHER_RESTART;
    return poll(&channel, 1, -1) == 1 ? 0 : 2;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(only_those_that_are_wanted_have_a_job),
        TEST(its_kind_can_be_seen_in_its_arguments),
        TEST(one_that_cannot_be_watched_is_replaced_after_a_pause),
        TEST(one_that_answers_no_ping_is_killed_and_another_one_follows),
        TEST(one_that_answers_its_pings_is_left_alone),
        TEST(one_that_ends_again_and_again_is_logged_at_most_once_a_minute),
        TEST(one_that_asks_for_another_one_gets_it_at_once_and_without_a_warning),
        TEST(the_state_of_the_api_server_is_logged_once_per_change_across_restarts),
        TEST(new_keys_start_another_process_at_once),
        TEST(the_same_keys_in_a_new_file_leave_it_alone),
        TEST(the_next_one_has_the_last_good_keys_also_if_the_file_is_bad),
        TEST(one_that_does_not_end_is_killed_at_the_next_check),
        TEST(a_token_that_comes_late_or_changes_is_used),
        TEST(an_authority_that_cannot_be_used_leaves_the_one_before_and_is_logged_once),
        TEST(the_fetcher_of_the_bmc_gets_a_user_a_password_and_a_socket_for_readings),
        TEST(a_mistake_of_the_user_stops_the_start),
        TEST(an_authority_that_nobody_can_reach_stops_the_start),
    };

    (void)argv;
    if (argc > 1)
        return be_fetcher();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
