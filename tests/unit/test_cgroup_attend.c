/* sources/cgroup/reader between two cycles: nothing that begins or ends there is lost. */
#include "unit.h"

#include <poll.h>

#include "cgroup_fixture.h"

#define A         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B         "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define V1(path)  MOUNT("/" path, "cgroup", "," path)
#define V2        MOUNT("", "cgroup2", "")
#define IN_HYBRID MOUNT("/unified", "cgroup2", ",nsdelegate")

static const uint64_t START_US = 1000 * USEC_PER_SEC;

static void put_usage(const struct fixture *fixture, const char *cgroup, unsigned usage_us)
{
    char path[512], text[32];

    snprintf(path, sizeof(path), "%s/cpu.stat", cgroup);
    snprintf(text, sizeof(text), "usage_usec %u\n", usage_us);
    put_cgroup(fixture, path, text);
}

/* As the kernel announces it. */
static void put_populated(const struct fixture *fixture, const char *cgroup, bool populated)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/cgroup.events", cgroup);
    put_cgroup(fixture, path, populated ? "populated 1\nfrozen 0\n" : "populated 0\nfrozen 0\n");
}

static bool has_events(const struct fixture *fixture)
{
    struct pollfd event = {.fd = fixture->reader->tree.inotify_fd, .events = POLLIN};

    return poll(&event, 1, 0) == 1;
}

/* At a time at which nothing is due. */
static void attend(const struct fixture *fixture)
{
    assert_true(has_events(fixture));
    cgroup_reader_attend(fixture->reader, START_US);
    assert_false(has_events(fixture));
}

static void start(struct fixture *fixture, const char *mountinfo)
{
    put_cgroup(fixture, "docker/cgroup.controllers", "");
    start_reader(fixture, mountinfo);
    assert_true(cgroup_reader_attend(fixture->reader, START_US) == CGROUP_READER_NEVER);
    read_next(fixture, false);
}

static void one_that_lives_between_two_cycles_is_shown_once_with_its_last_numbers(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, V2);
    put_usage(fixture, "docker/" A, 1);
    put_populated(fixture, "docker/" A, true);
    attend(fixture);
    assert_value(fixture, A, USAGE_CPU_US, 1);
    assert_int_equal(fixture->reader->tree.events_watch_count, 1);

    put_usage(fixture, "docker/" A, 300);
    assert_false(has_events(fixture)); /* a counter announces nothing */
    put_populated(fixture, "docker/" A, false);
    attend(fixture);
    assert_value(fixture, A, USAGE_CPU_US, 300);

    remove_cgroup(fixture, "docker/" A);
    attend(fixture);
    assert_true(get_item(fixture, A)->ended);
    assert_int_equal(fixture->reader->tree.events_watch_count, 0);
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 0); /* read_next has reported it */
}

static void a_limit_that_is_set_after_the_first_look_is_seen(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, V2);
    put_cgroup(fixture, "docker/" A "/memory.max", "max\n");
    put_usage(fixture, "docker/" A, 1);
    attend(fixture);
    assert_absent(fixture, A, USAGE_MEMORY_LIMIT_BYTES);
    put_cgroup(fixture, "docker/" A "/memory.max", "4096\n");
    read_next(fixture, false);
    assert_value(fixture, A, USAGE_MEMORY_LIMIT_BYTES, 4096);
    put_cgroup(fixture, "docker/memory.max", "2048\n");
    read_next(fixture, false);
    assert_value(fixture, A, USAGE_MEMORY_LIMIT_BYTES, 2048);
}

static void what_has_ended_waits_until_it_was_reported(void **state)
{
    struct fixture *fixture = *state;

    start(fixture, V2);
    put_usage(fixture, "docker/" A, 5);
    attend(fixture);
    remove_cgroup(fixture, "docker/" A);
    for (int i = 0; i < 3; i++) {
        cgroup_reader_read(fixture->reader, i == 1);
        assert_true(get_item(fixture, A)->ended);
        assert_value(fixture, A, USAGE_CPU_US, 5);
        assert_int_equal(get_item(fixture, A)->before.valid, 0);
    }
    cgroup_reader_set_reported(fixture->reader);
    assert_int_equal(count_items(fixture), 0);
}

static void the_last_numbers_of_one_that_was_reported_count_from_there(void **state)
{
    struct fixture *fixture = *state;

    put_usage(fixture, "docker/" A, 100);
    put_populated(fixture, "docker/" A, true);
    start(fixture, V2);
    cgroup_reader_set_reported(fixture->reader);
    put_usage(fixture, "docker/" A, 130);
    put_populated(fixture, "docker/" A, false);
    attend(fixture);
    remove_cgroup(fixture, "docker/" A);
    cgroup_reader_read(fixture->reader, false);
    assert_true(get_item(fixture, A)->ended);
    assert_value(fixture, A, USAGE_CPU_US, 130);
    assert_int_equal(get_item(fixture, A)->before.values[USAGE_CPU_US], 100);
}

static void without_the_kernels_word_it_is_read_as_time_passes(void **state)
{
    struct fixture *fixture = *state;
    uint64_t now_us = START_US, next_us, reads = 0;

    start(fixture, V2);
    put_usage(fixture, "docker/" A, 0);
    next_us = cgroup_reader_attend(fixture->reader, now_us);
    for (unsigned i = 1; next_us != CGROUP_READER_NEVER; i++) {
        assert_true(next_us > now_us);
        now_us = next_us;
        put_usage(fixture, "docker/" A, i);
        next_us = cgroup_reader_attend(fixture->reader, now_us);
        assert_value(fixture, A, USAGE_CPU_US, i);
        reads++;
    }
    assert_in_range(reads, 30, 60);
}

static void workloads_older_than_the_first_cycle_are_not_recent(void **state)
{
    struct fixture *fixture = *state;

    put_usage(fixture, "docker/" A, 0);
    start(fixture, V2);
    assert_true(cgroup_reader_attend(fixture->reader, START_US) == CGROUP_READER_NEVER);
}

static void on_v1_the_first_directory_that_goes_is_the_sign_to_read_the_others(void **state)
{
    struct fixture *fixture = *state;

    put_cgroup(fixture, "memory/docker/" A "/memory.usage_in_bytes", "1\n");
    put_cgroup(fixture, "cpuacct/docker/" A "/cpuacct.usage", "1000\n");
    start(fixture, V1("cpuacct") V1("memory"));
    put_cgroup(fixture, "cpuacct/docker/" A "/cpuacct.usage", "7000\n");
    assert_false(has_events(fixture));
    remove_cgroup(fixture, "memory/docker/" A);
    attend(fixture);
    assert_false(get_item(fixture, A)->ended);
    assert_value(fixture, A, USAGE_CPU_US, 7);
    remove_cgroup(fixture, "cpuacct/docker/" A);
    attend(fixture);
    assert_true(get_item(fixture, A)->ended);
    assert_value(fixture, A, USAGE_CPU_US, 7);
}

static void in_a_hybrid_the_v2_side_announces_the_end_for_v1(void **state)
{
    struct fixture *fixture = *state;

    put_cgroup(fixture, "cpuacct/docker/" A "/cpuacct.usage", "1000\n");
    put_populated(fixture, "unified/docker/" A, true);
    start(fixture, V1("cpuacct") IN_HYBRID);
    put_cgroup(fixture, "cpuacct/docker/" A "/cpuacct.usage", "9000\n");
    put_populated(fixture, "unified/docker/" A, false);
    attend(fixture);
    assert_value(fixture, A, USAGE_CPU_US, 9);
}

static void one_that_has_ended_is_still_in_what_was_around_it(void **state)
{
    struct fixture *fixture = *state;
    const struct usage_owner *items;
    size_t count;

    put_usage(fixture, "docker/" B, 1); /* ends first, so that all others move */
    put_usage(fixture, "user.slice/user-1000.slice", 50);
    start(fixture, V2);
    put_usage(fixture, "user.slice/user-1000.slice/libpod-" A ".scope", 20);
    attend(fixture);
    remove_cgroup(fixture, "docker/" B);
    read_next(fixture, false);
    remove_cgroup(fixture, "user.slice/user-1000.slice/libpod-" A ".scope");
    attend(fixture);
    read_next(fixture, false);
    assert_null(find_item(fixture, "1000/" A)); /* reported, and gone */

    put_usage(fixture, "user.slice/user-1000.slice/libpod-" A ".scope", 30);
    attend(fixture);
    remove_cgroup(fixture, "user.slice/user-1000.slice/libpod-" A ".scope");
    cgroup_reader_read(fixture->reader, false);
    items = fixture->reader->items;
    count = fixture->reader->count;
    assert_int_equal(count, 2);
    assert_true(get_item(fixture, "1000/" A)->ended);
    assert_ptr_equal(&items[get_item(fixture, "1000/" A)->around], get_item(fixture, "1000"));

    /* Also if that ends with it. */
    remove_cgroup(fixture, "user.slice");
    cgroup_reader_read(fixture->reader, false);
    items = fixture->reader->items;
    count = fixture->reader->count;
    assert_int_equal(count, 2);
    assert_true(get_item(fixture, "1000")->ended);
    assert_ptr_equal(&items[get_item(fixture, "1000/" A)->around], get_item(fixture, "1000"));
}

static void at_most_half_of_the_watches_are_for_ends_and_cycles_see_the_others(void **state)
{
    struct fixture *fixture = *state;
    char path[128];

    put_cgroup(fixture, "cgroup.controllers", "");
    start_reader(fixture, V2);
    cap_watches(fixture->reader, 6);
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "docker/%064x", i);
        put_usage(fixture, path, 1);
        put_populated(fixture, path, true);
    }
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 10);
    assert_int_equal(fixture->reader->tree.events_watch_count, 3);
    assert_int_equal(fixture->reader->tree.watch_count, 2);
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "docker/%064x", i);
        put_usage(fixture, path, 9);
    }
    read_next(fixture, false);
    assert_value(fixture, path + sizeof("docker/") - 1, USAGE_CPU_US, 9);
    remove_cgroup(fixture, "docker");
    read_next(fixture, false);
    assert_int_equal(fixture->reader->tree.events_watch_count, 0);
}

static void the_kernels_cap_of_watches_is_not_used_up(void **state)
{
    struct fixture *fixture = *state;
    char path[128];

    put(fixture, "proc/sys/fs/inotify/max_user_watches", "16\n");
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "docker/%064x", i);
        put_usage(fixture, path, 1);
        put_populated(fixture, path, true);
    }
    start_reader(fixture, V2);
    read_next(fixture, false);
    assert_int_equal(fixture->reader->tree.events_watch_count, 2);
}

static void a_flood_is_followed_in_parts_and_ends_in_a_rescan(void **state)
{
    struct fixture *fixture = *state;
    char path[256];
    int attends = 0;

    start(fixture, V2);
    /* More than the kernel's queue holds by default: 16384. */
    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/docker/flood", fixture->path);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(rmdir(path), 0);
    }
    put_usage(fixture, "docker/" B, 2); /* no event */
    for (; has_events(fixture); attends++)
        cgroup_reader_attend(fixture->reader, START_US);
    assert_true(attends > 10);
    assert_null(find_item(fixture, B));
    read_next(fixture, false);
    assert_value(fixture, B, USAGE_CPU_US, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_that_lives_between_two_cycles_is_shown_once_with_its_last_numbers),
        TEST(a_limit_that_is_set_after_the_first_look_is_seen),
        TEST(what_has_ended_waits_until_it_was_reported),
        TEST(the_last_numbers_of_one_that_was_reported_count_from_there),
        TEST(without_the_kernels_word_it_is_read_as_time_passes),
        TEST(workloads_older_than_the_first_cycle_are_not_recent),
        TEST(on_v1_the_first_directory_that_goes_is_the_sign_to_read_the_others),
        TEST(in_a_hybrid_the_v2_side_announces_the_end_for_v1),
        TEST(one_that_has_ended_is_still_in_what_was_around_it),
        TEST(at_most_half_of_the_watches_are_for_ends_and_cycles_see_the_others),
        TEST(the_kernels_cap_of_watches_is_not_used_up),
        TEST(a_flood_is_followed_in_parts_and_ends_in_a_rescan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
