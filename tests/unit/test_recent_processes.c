/* identity/process/recent: remembered for a while, within bounds. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "identity/process/recent.h"

struct fixture {
    struct recent_processes recent;
    struct arena arena;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    if (!fixture)
        return -1;
    arena_init(&fixture->arena, 16 << 20);
    *state = fixture;
    return recent_processes_init(&fixture->recent, 1000);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    recent_processes_done(&fixture->recent);
    recent_processes_done(&fixture->recent); /* a second time is no harm */
    arena_done(&fixture->arena);
    free(fixture);
    return 0;
}

static int add(struct fixture *fixture, uint64_t now_us, uint32_t pid, const char *name,
               const char *cgroup)
{
    return recent_processes_add(
        &fixture->recent, now_us,
        &(struct sample_process){
            .pid = pid, .uid = pid + 1, .start_us = pid + 2, .name = name, .cgroup = cgroup});
}

static int find(struct fixture *fixture, uint64_t now_us, uint32_t pid,
                struct sample_process *ret_process)
{
    return recent_processes_find(&fixture->recent, now_us, pid, &fixture->arena, ret_process);
}

static void a_process_is_known_until_its_time_is_over(void **state)
{
    struct fixture *fixture = *state;
    struct sample_process process;
    char name[] = "python3";

    assert_int_equal(find(fixture, 0, 7, &process), -ESRCH);
    assert_int_equal(add(fixture, 5000, 7, name, "0::/a\n"), 0);
    memset(name, 'x', sizeof(name) - 1);
    assert_int_equal(find(fixture, 6000, 7, &process), 0);
    assert_int_equal(process.pid, 7);
    assert_int_equal(process.uid, 8);
    assert_int_equal(process.start_us, 9);
    assert_string_equal(process.name, "python3");
    assert_string_equal(process.cgroup, "0::/a\n");
    assert_int_equal(find(fixture, 6001, 7, &process), -ESRCH);
    assert_int_equal(find(fixture, 5000, 8, &process), -ESRCH);
}

static void the_newest_of_a_pid_counts_also_when_the_older_one_goes(void **state)
{
    struct fixture *fixture = *state;
    struct sample_process process;

    assert_int_equal(add(fixture, 1000, 7, "old", ""), 0);
    assert_int_equal(add(fixture, 1900, 7, "new", ""), 0);
    assert_int_equal(add(fixture, 2500, 8, "other", ""), 0); /* the old one is forgotten */
    assert_int_equal(fixture->recent.count, 2);
    assert_int_equal(find(fixture, 2500, 7, &process), 0);
    assert_string_equal(process.name, "new");
}

static void the_oldest_goes_when_there_are_too_many(void **state)
{
    struct fixture *fixture = *state;
    struct sample_process process;

    for (uint32_t pid = 1; pid <= RECENT_PROCESSES_MAX + 10; pid++)
        assert_int_equal(add(fixture, 5, pid, "x", ""), 0);
    assert_int_equal(fixture->recent.count, RECENT_PROCESSES_MAX);
    assert_int_equal(find(fixture, 5, 10, &process), -ESRCH);
    for (uint32_t pid = 11; pid <= RECENT_PROCESSES_MAX + 10; pid++)
        assert_int_equal(find(fixture, 5, pid, &process), 0);
}

static void the_oldest_go_when_their_texts_are_too_long(void **state)
{
    enum { LONG = 64 * 1024 };
    struct fixture *fixture = *state;
    struct sample_process process;
    char *text = malloc(RECENT_PROCESSES_BYTES_MAX + 1);

    assert_non_null(text);
    memset(text, 'x', RECENT_PROCESSES_BYTES_MAX);
    text[RECENT_PROCESSES_BYTES_MAX] = '\0';
    assert_int_equal(add(fixture, 5, 1000, "x", text), -E2BIG);
    text[LONG] = '\0';
    for (uint32_t pid = 1; pid <= 100; pid++)
        assert_int_equal(add(fixture, 5, pid, "x", text), 0);
    assert_true(fixture->recent.used_bytes <= RECENT_PROCESSES_BYTES_MAX);
    assert_in_range(fixture->recent.count, 60, 64);
    assert_int_equal(find(fixture, 5, 1, &process), -ESRCH);
    assert_int_equal(find(fixture, 5, 100, &process), 0);
    assert_int_equal(strlen(process.cgroup), LONG);
    free(text);
}

static void without_room_in_the_arena_nothing_is_returned(void **state)
{
    struct fixture *fixture = *state;
    struct sample_process process = {.pid = 77};
    struct arena small;

    arena_init(&small, 16);
    assert_int_equal(add(fixture, 5, 7, "name", "0::/a\n"), 0);
    assert_int_equal(recent_processes_find(&fixture->recent, 5, 7, &small, &process), -ENOMEM);
    assert_int_equal(process.pid, 77);
    arena_done(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_process_is_known_until_its_time_is_over, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_newest_of_a_pid_counts_also_when_the_older_one_goes,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_goes_when_there_are_too_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_go_when_their_texts_are_too_long, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_room_in_the_arena_nothing_is_returned, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
