/* process/sandbox_files: which files can be opened afterwards, with the kernel's Landlock; and that
 * all can where it has none. */
#include "file_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
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

#include "core/macros.h"
#include "process/sandbox.h"

enum { COULD_NOT_ENTER = 255 };

static const char *const names[] = {"inside", "inside/file", "outside", "outside/file", "alone"};

/* Into a directory of their own, which is the working directory then. */
static int make_files(void **state)
{
    char *directory = strdup("/tmp/wattribute-files-XXXXXX");

    *state = directory;
    if (!mkdtemp(directory) || chmod(directory, 0755) < 0 || chdir(directory) < 0)
        return -1;
    if (mkdir("inside", 0755) < 0 || mkdir("outside", 0755) < 0)
        return -1;
    file_write_at(AT_FDCWD, "inside/file", "x", 1);
    file_write_at(AT_FDCWD, "outside/file", "x", 1);
    file_write_at(AT_FDCWD, "alone", "x", 1);
    return symlink("../outside/file", "inside/link");
}

static int remove_files(void **state)
{
    unlink("inside/link");
    for (size_t i = ARRAY_SIZE(names); i-- > 0;)
        (void)remove(names[i]);
    (void)!chdir("/");
    rmdir(*state);
    free(*state);
    return 0;
}

static bool kernel_has_landlock(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

/* errno of opening it, 0 if that went well. */
static int try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int open_plainly(const char *path)
{
    return try_open(path, O_RDONLY);
}

static int list(const char *path)
{
    return try_open(path, O_RDONLY | O_DIRECTORY);
}

static int open_for_writing(const char *path)
{
    return try_open(path, O_WRONLY);
}

static int run_it(const char *path)
{
    execl(path, path, NULL);
    return errno;
}

/* In a child that may read `inside` and `alone` only. */
static void assert_errno(int (*body)(const char *path), const char *path, int wanted)
{
    static const char *const paths[] = {"", "/nonexistent/directory", "inside", "alone", NULL};
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || sandbox_limit_files(paths, NULL) < 0)
            _exit(COULD_NOT_ENTER);
        _exit(body(path));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != wanted)
        fail_msg("%s: %s, not %s", path, strerror(WEXITSTATUS(status)), strerror(wanted));
}

/* What is refused is so only where the kernel can. */
static void assert_refused(int (*body)(const char *path), const char *path)
{
    assert_errno(body, path, kernel_has_landlock() ? EACCES : 0);
}

static void what_is_at_and_below_the_paths_can_be_read(void **state)
{
    (void)state;
    assert_errno(open_plainly, "inside/file", 0);
    assert_errno(open_plainly, "alone", 0);
    assert_errno(list, "inside", 0);
}

static void nothing_else_can_be_opened_where_the_kernel_has_landlock(void **state)
{
    (void)state;
    assert_refused(open_plainly, "outside/file");
    assert_refused(open_plainly, "inside/link");
    assert_refused(open_plainly, "/etc/passwd");
    assert_refused(list, "outside");
    assert_refused(list, "/");
}

static void nothing_can_be_written(void **state)
{
    (void)state;
    assert_refused(open_for_writing, "inside/file");
    assert_refused(open_for_writing, "outside/file");
}

static void nothing_can_be_run(void **state)
{
    (void)state;
    assert_int_equal(chmod("inside/file", 0755), 0);
    assert_errno(run_it, "inside/file", kernel_has_landlock() ? EACCES : ENOEXEC);
}

/* As /etc/resolv.conf is, by whoever writes it, while the process runs. */
static void a_file_below_a_path_that_is_replaced_can_still_be_read(void **state)
{
    static const char *const paths[] = {"inside", NULL};
    int fds[2], status;
    char byte = 1;
    pid_t pid;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        if (sandbox_drop_privileges(SANDBOX_EMISSIONS, NULL) < 0 ||
            sandbox_limit_files(paths, NULL) < 0 ||
            sandbox_filter_calls(SYSCALL_CLIENT, NULL) < 0 || send(fds[1], &byte, 1, 0) != 1 ||
            recv(fds[1], &byte, 1, 0) != 1)
            _exit(COULD_NOT_ENTER);
        _exit(open_plainly("inside/file"));
    }
    close(fds[1]);
    assert_int_equal(recv(fds[0], &byte, 1, 0), 1); /* it is inside */
    assert_int_equal(rename("alone", "inside/file"), 0);
    assert_int_equal(send(fds[0], &byte, 1, 0), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(fds[0]);
}

#define TEST(body) cmocka_unit_test_setup_teardown(body, make_files, remove_files)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_at_and_below_the_paths_can_be_read),
        TEST(nothing_else_can_be_opened_where_the_kernel_has_landlock),
        TEST(nothing_can_be_written),
        TEST(nothing_can_be_run),
        TEST(a_file_below_a_path_that_is_replaced_can_still_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
