/* CPU time and memory of the whole machine. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/macros.h"
#include "host/machine.h"

enum { TICK_US = 10000 };

static void busy_time_has_no_idle_no_waiting_and_no_guest_twice(void **state)
{
    struct machine machine = {0};

    (void)state;
    assert_int_equal(machine_parse_stat(span_of("cpu  100 20 30 400 50 6 7 8 90 9\ncpu0 1 2 3 4\n"),
                                        TICK_US, &machine),
                     0);
    assert_int_equal(machine.busy_us, (100 + 20 + 30 + 6 + 7) * TICK_US);
    assert_int_equal(machine.capacity_us, (100 + 20 + 30 + 6 + 7 + 400 + 50 + 8) * TICK_US);
}

static void an_old_kernel_has_fewer_columns(void **state)
{
    struct machine machine = {0};

    (void)state;
    assert_int_equal(machine_parse_stat(span_of("cpu  1 2 3 4\n"), TICK_US, &machine), 0);
    assert_int_equal(machine.busy_us, 6 * TICK_US);
    assert_int_equal(machine.capacity_us, 10 * TICK_US);
}

static void other_texts_are_refused(void **state)
{
    static const char *const stats[] = {"",
                                        "cpu",
                                        "cpu  1 2 3\n",
                                        "cpu0 1 2 3 4\n",
                                        "cpu  1 2 -3 4\n",
                                        "cpu  1 2 x 4\n",
                                        "cpu  1 2 3 99999999999999999999\n",
                                        "intr 1 2 3 4\n"};
    static const char *const infos[] = {"",
                                        "MemTotal: 10 kB\n",
                                        "MemAvailable: 10 kB\n",
                                        "MemTotal: 10 kB\nMemAvailable: 11 kB\n",
                                        "MemTotal: 10 MB\nMemAvailable: 1 kB\n",
                                        "MemTotal: -10 kB\nMemAvailable: 1 kB\n",
                                        "MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB\n"};
    struct machine machine = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(stats); i++)
        assert_int_equal(machine_parse_stat(span_of(stats[i]), TICK_US, &machine), -EBADMSG);
    for (size_t i = 0; i < ARRAY_SIZE(infos); i++)
        assert_int_equal(machine_parse_meminfo(span_of(infos[i]), &machine), -EBADMSG);
}

static void used_memory_is_what_nobody_else_can_have(void **state)
{
    struct machine machine = {0};

    (void)state;
    assert_int_equal(machine_parse_meminfo(span_of("MemTotal:       1000 kB\nMemFree:  1 kB\n"
                                                   "MemAvailable:    400 kB\nBuffers: 3 kB\n"),
                                           &machine),
                     0);
    assert_int_equal(machine.memory_bytes, 1000 * 1024);
    assert_int_equal(machine.memory_used_bytes, 600 * 1024);
}

static void this_machine_can_be_read(void **state)
{
    struct host host = {.procfs_fd = open("/proc", O_RDONLY | O_DIRECTORY)};
    struct machine before, after;

    (void)state;
    assert_int_equal(machine_read(&host, &before), 0);
    assert_int_equal(machine_read(&host, &after), 0);
    assert_true(before.busy_us > 0 && after.busy_us >= before.busy_us);
    assert_true(before.busy_us < before.capacity_us);
    assert_true(before.memory_used_bytes > 0 && before.memory_used_bytes < before.memory_bytes);
    close(host.procfs_fd);
    host.procfs_fd = open("/dev", O_RDONLY | O_DIRECTORY);
    assert_int_equal(machine_read(&host, &before), -ENOENT);
    close(host.procfs_fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_time_has_no_idle_no_waiting_and_no_guest_twice),
        cmocka_unit_test(an_old_kernel_has_fewer_columns),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(used_memory_is_what_nobody_else_can_have),
        cmocka_unit_test(this_machine_can_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
