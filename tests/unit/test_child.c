/* process/child: what a child of ours gets, when the next one may start, and how it ends. This test
 * is its own child: "show" tells what it got, "hang" stays until it is killed, "late" ignores
 * signals only when it is told to, "answer" answers pings. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "process/child.h"

static const uint64_t second = USEC_PER_SEC;

static int show(void)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    int count = -1; /* without the directory's own */
    sigset_t blocked;
    char text[512];

    while ((entry = readdir(directory)))
        count += entry->d_name[0] != '.';
    closedir(directory);
    child_ignore_signals();
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    snprintf(text, sizeof(text), "fds=%d env=%s,%s mask=%d winch=%d", count,
             environ[0] ? environ[0] : "", environ[0] && environ[1] ? "more" : "",
             sigismember(&blocked, SIGSEGV), signal(SIGWINCH, SIG_DFL) == SIG_DFL);
    fs_write_all(CHILD_MORE_FD, text, strlen(text));
    return 7;
}

static int hang(bool until_closed)
{
    struct pollfd channel = {.fd = CHILD_CHANNEL_FD};

    fs_write_all(CHILD_MORE_FD, "x", 1);
    return poll(&channel, until_closed, -1) == 1 ? 0 : 1;
}

static int ignore_late(void)
{
    sigset_t blocked;
    char byte;

    fs_write_all(CHILD_MORE_FD, "x", 1);
    if (read(CHILD_MORE_FD, &byte, 1) != 1)
        return 1;
    child_ignore_signals();
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&blocked, number) > 0)
            return 2;
    return hang(true);
}

static int answer(void)
{
    struct pollfd channel = {.fd = CHILD_CHANNEL_FD, .events = POLLIN};
    struct channel_ping ping;
    int r = 0;

    while (r == 0 && poll(&channel, 1, -1) == 1) {
        r = channel_receive_ping(CHILD_CHANNEL_FD, &ping);
        if (r == 0)
            r = channel_send(CHILD_CHANNEL_FD, &ping, sizeof(ping), -1);
    }
    return r == -ENOTCONN ? 0 : 1;
}

/* Starts it with one end of a socketpair beside its job; our end is the caller's. */
static int start(struct child *child, uint64_t now_us)
{
    int fds[2], job_fd;
    struct error err;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    assert_int_equal(fs_create_sealed("a job", 5, &job_fd), 0);
    assert_int_equal(child_start(child, job_fd, &fds[1], 1, now_us, &err), 0);
    close(job_fd);
    close(fds[1]);
    return fds[0];
}

/* Until the other end is closed. */
static void read_all(int fd, char *text, size_t size_bytes)
{
    size_t len = 0;
    ssize_t n;

    while ((n = read(fd, text + len, size_bytes - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
}

/* SIGCHLD has come: waits for it without taking it. */
static void wait_for_end(const struct child *child)
{
    siginfo_t info;

    assert_int_equal(waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOWAIT), 0);
}

static void a_child_gets_what_it_is_given_and_nothing_else(void **state)
{
    struct child child;
    char text[512];
    sigset_t signals;
    int ours, stray = dup(STDERR_FILENO), status;

    (void)state;
    setenv("LD_LIBRARY_PATH", "/kept", 1);
    setenv("SECRET", "hunter2", 1);
    sigemptyset(&signals);
    sigaddset(&signals, SIGSEGV);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGWINCH, SIG_IGN);
    child_init(&child, "show");
    ours = start(&child, second);
    assert_int_equal(child.restart_us, UINT64_MAX);
    assert_int_equal(child.starts, 1);
    read_all(ours, text, sizeof(text));
    assert_string_equal(text, "fds=6 env=LD_LIBRARY_PATH=/kept, mask=0 winch=1");
    wait_for_end(&child);
    assert_true(child_reap(&child, second, &status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_false(child_reap(&child, second, &status));
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    signal(SIGWINCH, SIG_DFL);
    unsetenv("LD_LIBRARY_PATH");
    close(stray);
    close(ours);
}

/* All that end a process by default, but for faults, and for what says that it is to be ended. */
static const int harmless[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                               SIGPROF, SIGVTALRM, SIGIO,   SIGPIPE, SIGPWR,  SIGXFSZ, SIGSTKFLT};

static void signal_all(pid_t pid)
{
    for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
        assert_int_equal(kill(pid, harmless[i]), 0);
    assert_int_equal(kill(pid, SIGRTMIN), 0);
    assert_int_equal(kill(pid, SIGRTMAX), 0);
}

static void no_stray_signal_ends_a_child_from_its_first_moment_on(void **state)
{
    struct child child;
    char byte;
    int ours, status;

    (void)state;
    child_init(&child, "late");
    ours = start(&child, second);
    signal_all(child.pid); /* maybe before its main() */
    assert_int_equal(read(ours, &byte, 1), 1);
    signal_all(child.pid);
    assert_int_equal(fs_write_all(ours, "x", 1), 0);
    assert_int_equal(read(ours, &byte, 1), 1);
    signal_all(child.pid);
    child_replace(&child); /* which ends it by the end of the channel */
    wait_for_end(&child);
    assert_true(child_reap(&child, second, &status));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(child.restart_us, second); /* another one follows at once */
    assert_int_equal(child.channel_fd, -1);
    close(ours);
}

static uint64_t pause_after(struct child *child, uint64_t lived_us)
{
    uint64_t began_us = 100 * second;
    char text[512];
    int ours = start(child, began_us), status;

    read_all(ours, text, sizeof(text));
    close(ours);
    wait_for_end(child);
    assert_true(child_reap(child, began_us + lived_us, &status));
    return child->restart_us - began_us - lived_us;
}

static void one_that_dies_young_is_started_again_after_ever_longer_pauses(void **state)
{
    static const uint64_t pauses_ms[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000};
    struct child child;

    (void)state;
    child_init(&child, "show");
    for (size_t i = 0; i < ARRAY_SIZE(pauses_ms); i++)
        assert_int_equal(pause_after(&child, 10 * second - 1), pauses_ms[i] * 1000);
    assert_int_equal(pause_after(&child, 10 * second), 0);
    assert_int_equal(pause_after(&child, 0), 100000);
}

static void one_that_cannot_start_is_tried_again_after_a_pause(void **state)
{
    struct child child;
    struct error err;

    (void)state;
    child_init(&child, "show");
    assert_int_equal(child_start(&child, 1000, NULL, 0, second, &err), -EBADF);
    assert_int_equal(child.restart_us, second + 100000);
    assert_string_equal(err.text,
                        "cannot start the show process from /proc/self/exe: Bad file descriptor");
    assert_int_equal(child.pid, 0);
    assert_int_equal(child.channel_fd, -1);
}

static void one_that_cannot_be_watched_is_killed_and_tried_again_after_a_pause(void **state)
{
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC), ours, status;
    struct child child;
    struct epoll_event event;
    struct error err;

    (void)state;
    child_init(&child, "hang");
    ours = start(&child, second);
    assert_int_equal(child_watch(&child, STDIN_FILENO, 7, &err), -EINVAL); /* no epoll */
    assert_string_equal(err.text, "cannot watch its channel: Invalid argument");
    assert_int_equal(child.channel_fd, -1);
    wait_for_end(&child);
    assert_true(child_reap(&child, second, &status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(child.restart_us, second + 100000);
    close(ours);
    ours = start(&child, child.restart_us);
    assert_int_equal(child_watch(&child, epoll_fd, 7, &err), 0);
    assert_int_equal(kill(child.pid, SIGKILL), 0);
    assert_int_equal(epoll_wait(epoll_fd, &event, 1, -1), 1); /* the end of the channel */
    assert_int_equal(event.data.u32, 7);
    child_stop(&child, 0);
    close(ours);
    close(epoll_fd);
}

static void the_error_says_what_to_do(void **state)
{
    struct child child;
    struct error err;

    (void)state;
    child_init(&child, "server");
    assert_int_equal(child_start(&child, -ENOENT, NULL, 0, second, &err), -ENOENT);
    assert_string_equal(err.text, "cannot start the server process from /proc/self/exe: No such "
                                  "file or directory; mount /proc");
    assert_int_equal(child_start(&child, -EAGAIN, NULL, 0, second, &err), -EAGAIN);
    assert_int_equal(child.restart_us, second + 200000);
    assert_non_null(strstr(err.text, "; raise the limit of processes"));
}

static void one_that_is_killed_is_reaped_with_its_signal(void **state)
{
    struct child child;
    char byte;
    int ours, status;

    (void)state;
    child_init(&child, "hang");
    child_kill(&child); /* none runs: nothing happens */
    ours = start(&child, 0);
    assert_int_equal(read(ours, &byte, 1), 1);
    assert_false(child_reap(&child, 0, &status));
    child_kill(&child);
    wait_for_end(&child);
    assert_true(child_reap(&child, 0, &status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    close(ours);
}

static void a_stop_waits_for_one_that_ends_and_ends_one_that_does_not(void **state)
{
    static const char *const verbs[] = {"listen", "hang"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        struct child child;
        char byte;
        pid_t pid;
        int ours;

        child_init(&child, verbs[i]);
        ours = start(&child, 0);
        pid = child.pid;
        assert_int_equal(read(ours, &byte, 1), 1);
        close(ours);
        child_stop(&child, i == 0 ? 60 * second : 0);
        assert_int_equal(child.pid, 0);
        assert_int_equal(kill(pid, 0), -1);
        assert_int_equal(errno, ESRCH);
        child_stop(&child, 0); /* none runs */
    }
}

static void await_pong(struct child *child)
{
    struct pollfd channel = {.fd = child->channel_fd, .events = POLLIN};
    struct channel_ping pong;

    assert_int_equal(poll(&channel, 1, -1), 1);
    assert_int_equal(channel_receive_ping(child->channel_fd, &pong), 0);
    assert_int_equal(child_note_pong(child, &pong), 0);
}

static void one_that_answers_is_left_alone(void **state)
{
    struct child child;
    int ours, status;

    (void)state;
    child_init(&child, "answer");
    assert_int_equal(child_ping(&child), 0); /* none runs */
    ours = start(&child, 0);
    await_pong(&child); /* it is up, before any period has passed */
    for (int i = 0; i < 3 * CHILD_PINGS_MAX; i++) {
        assert_int_equal(child_ping(&child), 0);
        await_pong(&child);
    }
    assert_false(child_reap(&child, 0, &status));
    child_stop(&child, 60 * second);
    assert_int_equal(child.hangs, 0);
    close(ours);
}

/* It is asked at the start and in each of three periods, and the last of them is over. */
static void hang_and_be_killed(struct child *child)
{
    int ours = start(child, 0), status;

    for (int i = 0; i < CHILD_PINGS_MAX; i++)
        assert_int_equal(child_ping(child), 0);
    assert_false(child->has_hung);
    assert_int_equal(child_ping(child), -ETIMEDOUT);
    assert_true(child->has_hung);
    assert_int_equal(child->channel_fd, -1);
    assert_int_equal(child_ping(child), 0); /* once */
    wait_for_end(child);
    assert_true(child_reap(child, 20 * second, &status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(child->restart_us, 20 * second); /* another one follows at once */
    close(ours);
}

static void one_that_answers_no_ping_for_three_periods_is_killed(void **state)
{
    struct child child;

    (void)state;
    child_init(&child, "hang");
    hang_and_be_killed(&child);
    hang_and_be_killed(&child); /* the next one is not charged for it */
    assert_int_equal(child.hangs, 2);
}

static void one_that_is_stopped_is_killed(void **state)
{
    struct child child;
    int ours, status;

    (void)state;
    child_init(&child, "answer");
    ours = start(&child, 0);
    await_pong(&child);
    assert_int_equal(kill(child.pid, SIGSTOP), 0);
    assert_int_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
    for (int i = 0; i < CHILD_PINGS_MAX; i++)
        assert_int_equal(child_ping(&child), 0);
    assert_int_equal(child_ping(&child), -ETIMEDOUT);
    wait_for_end(&child);
    assert_true(child_reap(&child, 20 * second, &status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    close(ours);
}

static void a_late_answer_counts_for_all_before_it(void **state)
{
    struct child child;
    int ours;

    (void)state;
    child_init(&child, "hang");
    ours = start(&child, 0);
    for (int i = 0; i < CHILD_PINGS_MAX; i++)
        assert_int_equal(child_ping(&child), 0);
    assert_int_equal(child_note_pong(&child, &(struct channel_ping){3}), 0);
    assert_int_equal(child_ping(&child), 0); /* the fourth and the fifth are out */
    assert_int_equal(child_ping(&child), 0);
    assert_int_equal(child_ping(&child), -ETIMEDOUT);
    child_stop(&child, 0);
    close(ours);
}

static void an_answer_to_no_ping_or_to_an_old_one_breaks_the_protocol(void **state)
{
    struct child child;
    int ours;

    (void)state;
    child_init(&child, "hang");
    ours = start(&child, 0);
    assert_int_equal(child_ping(&child), 0);
    assert_int_equal(child_note_pong(&child, &(struct channel_ping){3}), -EPROTO);
    assert_int_equal(child_note_pong(&child, &(struct channel_ping){2}), 0);
    assert_int_equal(child_note_pong(&child, &(struct channel_ping){2}), -EPROTO);
    assert_int_equal(child_note_pong(&child, &(struct channel_ping){1}), -EPROTO);
    child_stop(&child, 0);
    close(ours);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_gets_what_it_is_given_and_nothing_else),
        cmocka_unit_test(no_stray_signal_ends_a_child_from_its_first_moment_on),
        cmocka_unit_test(one_that_dies_young_is_started_again_after_ever_longer_pauses),
        cmocka_unit_test(one_that_cannot_start_is_tried_again_after_a_pause),
        cmocka_unit_test(one_that_cannot_be_watched_is_killed_and_tried_again_after_a_pause),
        cmocka_unit_test(the_error_says_what_to_do),
        cmocka_unit_test(one_that_is_killed_is_reaped_with_its_signal),
        cmocka_unit_test(a_stop_waits_for_one_that_ends_and_ends_one_that_does_not),
        cmocka_unit_test(one_that_answers_is_left_alone),
        cmocka_unit_test(one_that_answers_no_ping_for_three_periods_is_killed),
        cmocka_unit_test(one_that_is_stopped_is_killed),
        cmocka_unit_test(a_late_answer_counts_for_all_before_it),
        cmocka_unit_test(an_answer_to_no_ping_or_to_an_old_one_breaks_the_protocol),
    };

    if (argc > 1 && strcmp(argv[1], "late") == 0)
        return ignore_late();
    if (argc > 1 && strcmp(argv[1], "answer") == 0)
        return answer();
    if (argc > 1)
        return strcmp(argv[1], "show") == 0 ? show() : hang(strcmp(argv[1], "listen") == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
