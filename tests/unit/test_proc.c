/* host/proc: the identity of a pid, from any text in /proc. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "core/macros.h"
#include "host/proc.h"

#define TAIL " S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345 0 0 0\n"

static void a_command_may_hold_anything_and_the_start_is_the_22nd_field(void **state)
{
    static const struct {
        const char *text;
        const char *command; /* NULL: refused */
    } cases[] = {
        {"7 (python3)" TAIL, "python3"},
        {"7 (a b)" TAIL, "a b"},
        {"7 (evil) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99)" TAIL,
         "evil) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 0 0 99"},
        {"7 ()" TAIL, ""},
        {"7 (((" TAIL, NULL},
        {"", NULL},
        {"7", NULL},
        {"7 (x)", NULL},
        {"7 (x) ", NULL},
        {"7 (x) S 1 1", NULL},
        {")(", NULL},
        {"7 (x)S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 12345", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct span command = {"untouched", 9};
        uint64_t ticks = 77;
        int r = proc_parse_stat(span_of(cases[i].text), &command, &ticks);

        assert_int_equal(r, cases[i].command ? 0 : -EBADMSG);
        if (!cases[i].command)
            continue;
        assert_true(span_equals(command, cases[i].command));
        assert_int_equal(ticks, 12345);
    }
}

static void the_user_is_the_real_one(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint32_t uid;
    } cases[] = {
        {"Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n", 0, 1000},
        {"Uid:\t0\t0\t0\t0\n", 0, 0},
        {"Uid:\t4294967294", 0, 4294967294},
        {"Uid:\t4294967295\t0\n", -EBADMSG, 0}, /* means "none" to the kernel */
        {"Name:\tUid:\t7\n", -EBADMSG, 0},
        {"Uid:\t-1\n", -EBADMSG, 0},
        {"Uid:", -EBADMSG, 0},
        {"", -EBADMSG, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t uid = 0;

        assert_int_equal(proc_parse_uid(span_of(cases[i].text), &uid), cases[i].r);
        assert_int_equal(uid, cases[i].uid);
    }
}

static void this_process_is_known_by_its_executable(void **state)
{
    struct host host = {.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
                        .sysfs_fd = -1,
                        .rootfs_fd = -1};
    struct sample_process process;
    struct proc_reader reader;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, &host);
    assert_int_equal(proc_identify(&reader, (uint32_t)getpid(), &arena, &process), 0);
    assert_string_equal(process.name, "test_proc");
    assert_true(process.start_us > 1500000000 * USEC_PER_SEC);
    assert_non_null(strstr(process.cgroup, ":/"));
    assert_int_equal(process.uid, getuid());
    assert_true(proc_exists(&reader, (uint32_t)getpid()));
    arena_done(&arena);
    close(host.procfs_fd);
}

static void a_pid_that_is_not_there_is_no_process(void **state)
{
    struct host host = {.procfs_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
                        .sysfs_fd = -1,
                        .rootfs_fd = -1};
    struct sample_process process;
    struct proc_reader reader;
    struct arena arena;

    (void)state;
    arena_init(&arena, 1 << 20);
    proc_reader_init(&reader, &host);
    assert_int_equal(proc_identify(&reader, 4194305, &arena, &process), -ESRCH); /* above PID_MAX */
    assert_false(proc_exists(&reader, 4194305));
    arena_done(&arena);
    close(host.procfs_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_may_hold_anything_and_the_start_is_the_22nd_field),
        cmocka_unit_test(the_user_is_the_real_one),
        cmocka_unit_test(this_process_is_known_by_its_executable),
        cmocka_unit_test(a_pid_that_is_not_there_is_no_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
