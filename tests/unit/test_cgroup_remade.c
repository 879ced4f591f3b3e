/* sources/cgroup when cgroups are removed and made again, or renamed, faster than it reads. */
#include "unit.h"

#include "cgroup_fixture.h"
#include "sources/cgroup/cgroups.h"

#define A         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B         "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define V1(path)  MOUNT("/" path, "cgroup", "," path)
#define V2        MOUNT("", "cgroup2", "")
#define IN_HYBRID MOUNT("/unified", "cgroup2", ",nsdelegate")

static void make(const struct fixture *fixture, const char *cgroup)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/%s", fixture->path, cgroup);
    assert_int_equal(mkdir(path, 0755), 0);
}

static void move(const struct fixture *fixture, const char *from, const char *to)
{
    char old_path[512], new_path[512];

    snprintf(old_path, sizeof(old_path), "%s/sys/fs/cgroup/%s", fixture->path, from);
    snprintf(new_path, sizeof(new_path), "%s/sys/fs/cgroup/%s", fixture->path, to);
    assert_int_equal(rename(old_path, new_path), 0);
}

static size_t count_ended(const struct fixture *fixture)
{
    const struct usage_owner *items = fixture->reader->items;
    size_t count = fixture->reader->count, ended = 0;

    for (size_t i = 0; i < count; i++)
        ended += items[i].ended;
    return ended;
}

static void assert_empty(struct fixture *fixture, size_t hierarchies)
{
    read_next(fixture, false);
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 0);
    assert_int_equal(fixture->reader->tree.workload_count, 0);
    assert_int_equal(fixture->reader->tree.watch_count, hierarchies); /* the roots */
    assert_int_equal(fixture->reader->tree.unwatched_count, 0);
    assert_int_equal(fixture->reader->tree.events_watch_count, 0);
}

static void one_is_never_in_a_hierarchy_where_its_parent_is_not_known(void **state)
{
    struct fixture *fixture = *state;

    put_cgroup(fixture, "cpuacct/docker/" A "/cpuacct.usage", "1000\n");
    put_cgroup(fixture, "memory/cgroup.procs", "");
    start_reader(fixture, V1("cpuacct") V1("memory"));
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 1);

    remove_cgroup(fixture, "cpuacct/docker");
    make(fixture, "cpuacct/docker");
    make(fixture, "cpuacct/docker/" A);
    make(fixture, "memory/docker");
    put_cgroup(fixture, "memory/docker/" A "/memory.usage_in_bytes", "5\n");
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 2);
    assert_int_equal(count_ended(fixture), 1);
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 1);
    assert_value(fixture, A, USAGE_MEMORY_USED_BYTES, 5);

    remove_cgroup(fixture, "cpuacct/docker");
    remove_cgroup(fixture, "memory/docker");
    assert_empty(fixture, 2);
}

/* The last event of the old parent must not lead to the child of the new one. */
static void with_a_parent_that_is_made_again_it_begins_once(void **state)
{
    struct fixture *fixture = *state;

    put_cgroup(fixture, "docker/" A "/cpu.stat", "usage_usec 100\n");
    start_reader(fixture, V2);
    read_next(fixture, false);
    for (int i = 0; i < 3; i++) {
        remove_cgroup(fixture, "docker");
        put_cgroup(fixture, "docker/" A "/cpu.stat", "usage_usec 1\n");
        cgroup_reader_attend(fixture->reader, 1);
        assert_int_equal(count_items(fixture), 2);
        read_next(fixture, false);
        assert_int_equal(count_items(fixture), 1);
        assert_false(get_item(fixture, A)->ended);
    }
    remove_cgroup(fixture, "docker");
    assert_empty(fixture, 1);
}

static void one_that_is_made_again_on_v2_only_is_reported_once(void **state)
{
    struct fixture *fixture = *state;

    put_cgroup(fixture, "cpuacct/docker/" A "/cpuacct.usage", "1000\n");
    put_cgroup(fixture, "unified/docker/" A "/cgroup.events", "populated 1\n");
    start_reader(fixture, V1("cpuacct") IN_HYBRID);
    read_next(fixture, false);
    for (int i = 0; i < 3; i++) {
        remove_cgroup(fixture, "unified/docker/" A);
        read_next(fixture, false);
        assert_int_equal(fixture->reader->tree.events_watch_count, 0);
        assert_false(get_item(fixture, A)->ended);
        make(fixture, "unified/next");
        put_cgroup(fixture, "unified/next/cgroup.events", "populated 1\n");
        move(fixture, "unified/next", "unified/docker/" A);
        read_next(fixture, false);
        assert_int_equal(fixture->reader->tree.events_watch_count, 1);
    }
    remove_cgroup(fixture, "cpuacct/docker");
    remove_cgroup(fixture, "unified/docker");
    assert_empty(fixture, 2);
}

/* Of all that have not ended: what of their CPU time counts as used since the last report. */
static uint64_t count_new_us(const struct fixture *fixture)
{
    const struct usage_owner *items = fixture->reader->items;
    size_t count = fixture->reader->count;
    uint64_t cpu_us = 0;

    for (size_t i = 0; i < count; i++)
        if (!items[i].ended)
            cpu_us += usage_delta_cpu_us(&items[i], &items[i].usage);
    return cpu_us;
}

static void one_that_is_renamed_brings_no_time_that_was_counted_before(void **state)
{
    struct fixture *fixture = *state;

    put_cgroup(fixture, "cpuacct/docker/" A "/cpuacct.usage", "5000\n");
    put_cgroup(fixture, "memory/docker/" A "/memory.usage_in_bytes", "5\n");
    start_reader(fixture, V1("cpuacct") V1("memory"));
    read_next(fixture, false);
    move(fixture, "cpuacct/docker/" A, "cpuacct/docker/" B);
    move(fixture, "memory/docker/" A, "memory/docker/" B);
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 2);
    assert_true(get_item(fixture, A)->ended);
    assert_value(fixture, B, USAGE_CPU_US, 5);
    assert_int_equal(count_new_us(fixture), 0);

    /* And with all that is in it. */
    move(fixture, "cpuacct/docker", "cpuacct/k8s.io");
    move(fixture, "memory/docker", "memory/k8s.io");
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 2);
    assert_int_equal(count_ended(fixture), 1);
    assert_int_equal(count_new_us(fixture), 0);
    remove_cgroup(fixture, "cpuacct/k8s.io");
    remove_cgroup(fixture, "memory/k8s.io");
    assert_empty(fixture, 2);
}

static void one_that_is_made_again_in_one_hierarchy_keeps_its_time_in_the_other(void **state)
{
    struct fixture *fixture = *state;

    put_cgroup(fixture, "cpuacct/docker/" A "/cpuacct.usage", "5000\n");
    put_cgroup(fixture, "memory/docker/" A "/memory.usage_in_bytes", "5\n");
    start_reader(fixture, V1("cpuacct") V1("memory"));
    read_next(fixture, false);
    remove_cgroup(fixture, "memory/docker/" A);
    make(fixture, "memory/docker/" A);
    read_next(fixture, false);
    assert_int_equal(count_items(fixture), 2);
    assert_int_equal(count_ended(fixture), 1);
    assert_int_equal(count_new_us(fixture), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_is_never_in_a_hierarchy_where_its_parent_is_not_known),
        TEST(with_a_parent_that_is_made_again_it_begins_once),
        TEST(one_that_is_made_again_on_v2_only_is_reported_once),
        TEST(one_that_is_renamed_brings_no_time_that_was_counted_before),
        TEST(one_that_is_made_again_in_one_hierarchy_keeps_its_time_in_the_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
