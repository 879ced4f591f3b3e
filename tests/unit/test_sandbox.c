#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "core/macros.h"
#include "log_capture.h"
#include "process/sandbox.h"

/* What the sandboxed child does; `fd` is its end of a socketpair. Its result is the exit status. */
typedef int child_body(int fd);

static int enter(void)
{
    int r = sandbox_drop_privileges(SANDBOX_SERVER, NULL);

    return r < 0 ? r : sandbox_filter_calls(SYSCALL_SERVER, NULL);
}

static pid_t start_child(child_body *body, int *ret_fd)
{
    int fds[2];
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        if (enter() < 0)
            _exit(99);
        _exit(body(fds[1]));
    }
    close(fds[1]);
    *ret_fd = fds[0];
    return pid;
}

static int wait_for(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int run_child(child_body *body)
{
    int fd;
    pid_t pid = start_child(body, &fd);
    int status = wait_for(pid);

    close(fd);
    return status;
}

static int log_a_line(int fd)
{
    /* dup2 is not allowed inside; a descriptor with the number of stderr was made by the caller. */
    (void)fd;
    log_info("still here");
    return 0;
}

static void a_log_line_with_its_time_can_be_written_inside(void **state)
{
    char line[256] = "";
    int fds[2], saved = dup(STDERR_FILENO), status;
    ssize_t n;

    (void)state;
    assert_int_equal(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    status = run_child(log_a_line);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fds[1]);
    n = read(fds[0], line, sizeof(line) - 1);
    close(fds[0]);
    assert_int_equal(status, 0);
    assert_true(n > 0);
    assert_non_null(strstr(line, "msg=\"still here\""));
}

/* Says that it is inside, then waits to be let go. */
static int stand_by(int fd)
{
    char byte = 1;

    if (send(fd, &byte, 1, 0) != 1)
        return 1;
    return recv(fd, &byte, 1, 0) == 0 ? 0 : 2;
}

static void read_status(pid_t pid, char *text, size_t size)
{
    char path[64];
    FILE *file;
    size_t len;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    assert_non_null(file);
    len = fread(text, 1, size - 1, file);
    text[len] = '\0';
    fclose(file);
}

static void assert_powerless(const char *status)
{
    assert_non_null(strstr(status, "\nNoNewPrivs:\t1\n"));
    assert_non_null(strstr(status, "\nSeccomp:\t2\n"));
    assert_non_null(strstr(status, "\nCapEff:\t0000000000000000\n"));
    assert_non_null(strstr(status, "\nCapPrm:\t0000000000000000\n"));
    assert_non_null(strstr(status, "\nCapInh:\t0000000000000000\n"));
    assert_non_null(strstr(status, "\nCapAmb:\t0000000000000000\n"));
}

static bool may(unsigned capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    return data[capability / 32].effective >> (capability % 32) & 1;
}

static void inside_it_has_a_user_of_its_own_and_no_capability(void **state)
{
    char status[8192], byte;
    int fd;
    pid_t pid = start_child(stand_by, &fd);

    (void)state;
    assert_int_equal(recv(fd, &byte, 1, 0), 1);
    read_status(pid, status, sizeof(status));
    close(fd);
    assert_int_equal(wait_for(pid), 0);
    assert_powerless(status);
    if (geteuid() == 0 && may(CAP_SETUID) && may(CAP_SETGID)) {
        assert_non_null(strstr(status, "\nUid:\t65521\t65521\t65521\t65521\n"));
        assert_non_null(strstr(status, "\nGid:\t65521\t65521\t65521\t65521\n"));
        assert_non_null(strstr(status, "\nGroups:\t \n"));
    }
    if (may(CAP_SETPCAP))
        assert_non_null(strstr(status, "\nCapBnd:\t0000000000000000\n"));
}

static void root_that_may_not_change_its_user_gives_up_all_else(void **state)
{
    struct capture capture = capture_begin();
    char status[8192], log[1024], byte;
    int fds[2];
    pid_t pid;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

        close(fds[0]);
        if (syscall(SYS_capset, &header, none) < 0 || enter() < 0)
            _exit(99);
        _exit(stand_by(fds[1]));
    }
    close(fds[1]);
    assert_int_equal(recv(fds[0], &byte, 1, 0), 1);
    read_status(pid, status, sizeof(status));
    close(fds[0]);
    assert_int_equal(wait_for(pid), 0);
    capture_end(capture, log, sizeof(log));
    assert_powerless(status);
    assert_int_equal(
        geteuid() == 0,
        strstr(log,
               "level=warn msg=\"a process that talks to the network stays root, without "
               "capabilities: it cannot change its user; give the collector CAP_SETUID, "
               "CAP_SETGID and CAP_KILL\" user=65521 error=\"Operation not permitted\"\n") != NULL);
}

static void it_dies_with_its_parent(void **state)
{
    int fds[2];
    char byte;
    pid_t parent;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        int inner[2];

        close(fds[0]);
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, inner) < 0)
            _exit(1);
        if (fork() == 0) {
            if (enter() < 0)
                _exit(99);
            /* It holds both ends of `inner`, so only the signal can end it. */
            _exit(stand_by(inner[1]));
        }
        _exit(recv(inner[0], &byte, 1, 0) == 1 ? 0 : 2);
    }
    close(fds[1]);
    assert_int_equal(wait_for(parent), 0);
    /* The end that the grandchild inherited closes when it is killed. */
    assert_int_equal(recv(fds[0], &byte, 1, 0), 0);
    close(fds[0]);
}

#ifdef SANITIZED
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

/* Exit status 0: it reads files before the second filter, and none after it. The kernel without
 * Landlock is no different: nothing is left that opens a file. */
static int look_around(void)
{
    static const char *const paths[] = {"/etc/passwd", "/proc/self/status", "/", "."};
    int file;

    if (sandbox_drop_privileges(SANDBOX_SERVER, NULL) < 0 ||
        sandbox_filter_calls(SYSCALL_CLIENT, NULL) < 0)
        return 97;
    file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 98;
    close(file);
    if (sandbox_filter_calls(SYSCALL_FILELESS_CLIENT, NULL) < 0)
        return 99;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
        if (open(paths[i], O_RDONLY | O_CLOEXEC) >= 0 || errno != EPERM)
            return IS_SANITIZED ? 0 : 1 + (int)i; /* whose reports read files */
    return 0;
}

static void a_client_that_has_what_it_needs_opens_no_file_any_more(void **state)
{
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_LOGFMT);
        _exit(look_around());
    }
    assert_int_equal(wait_for(pid), 0);
}

static void it_cannot_be_dumped_or_traced(void **state)
{
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(sandbox_drop_privileges(SANDBOX_SERVER, NULL) < 0
                  ? 99
                  : prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    assert_int_equal(wait_for(pid), 0);
}

/* What a program sees that a confined process starts. */
static void the_collector_and_its_children_keep_what_they_need_and_can_gain_no_more(void **state)
{
    static const char *const sets[] = {"CapPrm", "CapEff", "CapBnd"};
    const bool limits_bounding_set = may(CAP_SETPCAP);
    uint64_t wanted = UINT64_C(1) << CAP_KILL | UINT64_C(1) << CAP_SYS_PTRACE, kept = 0;
    char status[8192], line[64];
    int fds[2];
    ssize_t n;
    pid_t pid;

    (void)state;
    for (unsigned cap = 0; cap < 64; cap++)
        if (wanted >> cap & 1 && may(cap))
            kept |= UINT64_C(1) << cap;
    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        if (sandbox_confine_collector(wanted, NULL) < 0 || may(CAP_SETPCAP))
            _exit(99);
        execl("/bin/cat", "cat", "/proc/self/status", NULL);
        _exit(98);
    }
    assert_int_equal(wait_for(pid), 0);
    n = read(fds[0], status, sizeof(status) - 1);
    assert_true(n > 0);
    status[n] = '\0';
    close(fds[0]);
    close(fds[1]);
    assert_non_null(strstr(status, "\nNoNewPrivs:\t1\n"));
    assert_non_null(strstr(status, "\nSeccomp:\t2\n"));
    assert_non_null(strstr(status, "\nCapInh:\t0000000000000000\n"));
    assert_non_null(strstr(status, "\nCapAmb:\t0000000000000000\n"));
    for (size_t i = 0; i < (limits_bounding_set ? 3 : 2); i++) {
        snprintf(line, sizeof(line), "\n%s:\t%016llx\n", sets[i], (unsigned long long)kept);
        assert_non_null(strstr(status, line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_has_what_it_needs_opens_no_file_any_more),
        cmocka_unit_test(it_cannot_be_dumped_or_traced),
        cmocka_unit_test(a_log_line_with_its_time_can_be_written_inside),
        cmocka_unit_test(inside_it_has_a_user_of_its_own_and_no_capability),
        cmocka_unit_test(root_that_may_not_change_its_user_gives_up_all_else),
        cmocka_unit_test(it_dies_with_its_parent),
        cmocka_unit_test(the_collector_and_its_children_keep_what_they_need_and_can_gain_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
