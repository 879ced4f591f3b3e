/* process/notify: what a service manager is told, and by which names it is found. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "process/notify.h"

/* A manager at this address, as its children would name it. */
static int listen_at(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    size_t len = strlen(name);

    memcpy(address.sun_path, name, len);
    if (name[0] == '@')
        address.sun_path[0] = '\0';
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
    return fd;
}

static void assert_told(int fd, const char *state)
{
    char text[256] = "";

    assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), strlen(state));
    assert_string_equal(text, state);
}

static void a_manager_at_a_path_or_a_name_is_told(void **state)
{
    char directory[] = "/tmp/wattribute-notify-XXXXXX", path[64], name[64];
    const char *const names[] = {path, name};

    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/socket", directory);
    snprintf(name, sizeof(name), "@%s/socket", directory);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        int manager_fd = listen_at(names[i]);
        struct notify notify;

        assert_int_equal(notify_open(&notify, names[i], NULL, NULL), 0);
        assert_int_equal(notify.beat_us, 0);
        notify_send(&notify, "READY=1\nSTATUS=fine");
        assert_told(manager_fd, "READY=1\nSTATUS=fine");
        notify_send(&notify, "STOPPING=1");
        assert_told(manager_fd, "STOPPING=1");
        notify_close(&notify);
        notify_send(&notify, "READY=1");
        assert_int_equal(recv(manager_fd, path, 1, MSG_DONTWAIT), -1);
        close(manager_fd);
    }
    unlink(path);
    assert_int_equal(rmdir(directory), 0);
}

static void without_a_manager_nothing_happens(void **state)
{
    static const struct {
        const char *name;
        int result;
    } cases[] = {
        {NULL, 0},
        {"", 0},
        {"vsock:2:9999", -EAFNOSUPPORT},
        {"relative", -EAFNOSUPPORT},
        {"/a-path-that-is-too-long-for-a-socket/a-path-that-is-too-long-for-a-socket/"
         "a-path-that-is-too-long-for-a-socket",
         -ENAMETOOLONG},
        {"/nonexistent/socket", 0}, /* it may come back */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct notify notify;

        assert_int_equal(notify_open(&notify, cases[i].name, NULL, NULL), cases[i].result);
        assert_true(notify_send(&notify, "READY=1"));
        notify_close(&notify);
    }
}

static void a_manager_that_does_not_read_does_not_block(void **state)
{
    char name[64];
    struct notify notify;
    int manager_fd;

    (void)state;
    snprintf(name, sizeof(name), "@wattribute-notify-%d", (int)getpid());
    manager_fd = listen_at(name);
    assert_int_equal(notify_open(&notify, name, NULL, NULL), 0);
    for (int i = 0; i < 10000 && notify_send(&notify, "WATCHDOG=1"); i++)
        continue;
    assert_false(notify_send(&notify, "READY=1"));
    assert_told(manager_fd, "WATCHDOG=1");
    assert_true(notify_send(&notify, "READY=1"));
    notify_close(&notify);
    close(manager_fd);
}

static void the_watchdog_is_told_twice_in_its_limit_if_it_is_for_us(void **state)
{
    char own[16];
    const struct {
        const char *usec, *pid;
        uint64_t beat_us;
    } cases[] = {
        {"30000000", own, 15 * USEC_PER_SEC},
        {"30000000", NULL, 15 * USEC_PER_SEC},
        {"30000000", "1", 0},
        {"30000000", "", 0},
        {"30000000", "4711x", 0},
        {NULL, own, 0},
        {"", own, 0},
        {"0", own, 0},
        {"-1", own, 0},
        {"30s", own, 0},
        {"18446744073709551616", own, 0},
        {"18446744073709551615", own, UINT64_MAX / 2},
    };

    (void)state;
    snprintf(own, sizeof(own), "%d", (int)getpid());
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct notify notify;

        assert_int_equal(notify_open(&notify, "@manager", cases[i].usec, cases[i].pid), 0);
        assert_int_equal(notify.beat_us, cases[i].beat_us);
        notify_close(&notify);
        assert_int_equal(notify_open(&notify, NULL, cases[i].usec, cases[i].pid), 0);
        assert_int_equal(notify.beat_us, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manager_at_a_path_or_a_name_is_told),
        cmocka_unit_test(without_a_manager_nothing_happens),
        cmocka_unit_test(a_manager_that_does_not_read_does_not_block),
        cmocka_unit_test(the_watchdog_is_told_twice_in_its_limit_if_it_is_for_us),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
