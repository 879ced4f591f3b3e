/* host/host: three directories are opened, or none, and the error names the flag at fault. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/macros.h"
#include "host/host.h"

/* The next descriptor the kernel would hand out: equal before and after means that none leaked. */
static int next_descriptor(void)
{
    int fd = dup(STDIN_FILENO);

    close(fd);
    return fd;
}

static void each_root_is_opened_and_read_below(void **state)
{
    const int before = next_descriptor();
    struct host host;
    char text[4096];
    size_t len = 0;

    (void)state;
    assert_int_equal(host_open("/proc", "/sys", "/", &host, NULL), 0);
    assert_int_equal(fs_read_at(host.procfs_fd, "self/comm", text, sizeof(text), &len), 0);
    assert_true(len > 0);
    assert_int_equal(faccessat(host.sysfs_fd, "kernel", F_OK, 0), 0);
    assert_int_equal(faccessat(host.rootfs_fd, "proc", F_OK, 0), 0);
    host_close(&host);
    assert_int_equal(next_descriptor(), before);
}

static void an_error_names_the_flag_the_path_and_the_reason_and_leaves_nothing_open(void **state)
{
    static const struct {
        const char *procfs, *sysfs, *rootfs;
        int r;
        const char *flag, *path, *reason;
    } cases[] = {
        {"/nowhere", "/sys", "/", -ENOENT, "--path.procfs", "'/nowhere'", "No such file"},
        {"/proc", "/nowhere", "/", -ENOENT, "--path.sysfs", "'/nowhere'", "No such file"},
        {"/proc", "/sys", "/nowhere", -ENOENT, "--path.rootfs", "'/nowhere'", "No such file"},
        {"/proc", "/sys", "", -ENOENT, "--path.rootfs", "''", "No such file"},
        {"/proc", "/sys", "/dev/null", -ENOTDIR, "--path.rootfs", "'/dev/null'", "Not a directory"},
        {"/nowhere", "/nowhere", "/nowhere", -ENOENT, "--path.procfs", "'/nowhere'", "No such"},
    };
    const int before = next_descriptor();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct host host = {77, 77, 77, NULL};
        struct error err = {""};

        assert_int_equal(host_open(cases[i].procfs, cases[i].sysfs, cases[i].rootfs, &host, &err),
                         cases[i].r);
        assert_non_null(strstr(err.text, cases[i].flag));
        assert_non_null(strstr(err.text, cases[i].path));
        assert_non_null(strstr(err.text, cases[i].reason));
        assert_int_equal(host.procfs_fd, 77);
        assert_int_equal(host.sysfs_fd, 77);
        assert_int_equal(host.rootfs_fd, 77);
        assert_int_equal(next_descriptor(), before);
    }
}

static void a_host_can_be_closed_twice(void **state)
{
    struct host host;
    int other;

    (void)state;
    assert_int_equal(host_open("/proc", "/sys", "/", &host, NULL), 0);
    host_close(&host);
    other = open("/dev/null", O_RDONLY | O_CLOEXEC); /* takes a number that was the host's */
    host_close(&host);
    assert_true(fcntl(other, F_GETFD) >= 0);
    close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_root_is_opened_and_read_below),
        cmocka_unit_test(an_error_names_the_flag_the_path_and_the_reason_and_leaves_nothing_open),
        cmocka_unit_test(a_host_can_be_closed_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
