/* sources/cgroup/tree: which cgroups are workloads, found as they come and go. */
#include "unit.h"

#include "cgroup_fixture.h"

#define A  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B  "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define V2 MOUNT("", "cgroup2", "")

static const char POD[] = "kubepods.slice/kubepods-burstable.slice/"
                          "kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice";

static void put_usage(const struct fixture *fixture, const char *cgroup, unsigned usage_us)
{
    char path[4500], text[32];

    snprintf(path, sizeof(path), "%s/cpu.stat", cgroup);
    snprintf(text, sizeof(text), "usage_usec %u\n", usage_us);
    put_cgroup(fixture, path, text);
}

static void read_once(struct fixture *fixture)
{
    read_next(fixture, false);
}

static void a_pods_containers_are_workloads_but_not_the_pod_nor_what_is_in_them(void **state)
{
    struct fixture *fixture = *state;
    char path[512];

    put_usage(fixture, POD, 1);
    snprintf(path, sizeof(path), "%s/cri-containerd-" A ".scope", POD);
    put_usage(fixture, path, 2);
    snprintf(path, sizeof(path), "%s/cri-containerd-" A ".scope/inner/docker-" B ".scope", POD);
    put_usage(fixture, path, 3);
    start_reader(fixture, V2);
    read_once(fixture);
    assert_int_equal(count_items(fixture), 1);
    assert_value(fixture, A, USAGE_CPU_US, 2);
    assert_int_equal(get_item(fixture, A)->owner.kind, WORKLOAD_POD);
    assert_int_equal(get_item(fixture, A)->around, USAGE_AROUND_NONE);
}

static void a_workload_in_a_unit_or_a_users_slice_is_inside_it(void **state)
{
    struct fixture *fixture = *state;
    const struct usage_owner *items;
    size_t count;

    put_usage(fixture, "system.slice/slurmstepd.scope", 9);
    put_usage(fixture, "system.slice/slurmstepd.scope/job_7", 5);
    put_usage(fixture, "system.slice/slurmstepd.scope/job_7/step_0/user/task_0", 4);
    put_usage(fixture, "system.slice/cron.service", 3);
    put_usage(fixture, "user.slice/user-1000.slice", 8);
    put_usage(fixture, "user.slice/user-1000.slice/user@1000.service/app.slice/x.service", 2);
    put_usage(fixture, "user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" B ".scope",
              1);
    put_usage(fixture, "init.scope", 6);
    start_reader(fixture, V2);
    read_once(fixture);
    items = fixture->reader->items;
    count = fixture->reader->count;
    assert_int_equal(count, 6);
    assert_value(fixture, "slurmstepd.scope", USAGE_CPU_US, 9);
    assert_value(fixture, "7", USAGE_CPU_US, 5);
    assert_value(fixture, "cron.service", USAGE_CPU_US, 3);
    assert_value(fixture, "1000", USAGE_CPU_US, 8);
    assert_value(fixture, "1000/" B, USAGE_CPU_US, 1);
    assert_value(fixture, "init.scope", USAGE_CPU_US, 6);
    assert_ptr_equal(&items[get_item(fixture, "7")->around], get_item(fixture, "slurmstepd.scope"));
    assert_ptr_equal(&items[get_item(fixture, "1000/" B)->around], get_item(fixture, "1000"));
    assert_int_equal(get_item(fixture, "cron.service")->around, USAGE_AROUND_NONE);
}

/* The three ways to learn of it. */
static void come_and_go(struct fixture *fixture, size_t watches, bool rescan)
{
    uint64_t id;

    put_cgroup(fixture, "cgroup.controllers", "");
    start_reader(fixture, V2);
    cap_watches(fixture->reader, watches);
    read_once(fixture);
    assert_int_equal(count_items(fixture), 0);

    put_usage(fixture, "docker/" A, 1);
    put_usage(fixture, "machine.slice/docker-" B ".scope", 2);
    read_next(fixture, rescan);
    assert_int_equal(count_items(fixture), 2);
    assert_value(fixture, A, USAGE_CPU_US, 1);
    assert_value(fixture, B, USAGE_CPU_US, 2);
    id = get_item(fixture, A)->id;

    put_usage(fixture, "docker/" A, 7);
    read_next(fixture, rescan);
    remove_cgroup(fixture, "docker/" A);
    read_next(fixture, rescan);
    assert_int_equal(count_items(fixture), 2);
    assert_true(get_item(fixture, A)->ended);
    assert_int_equal(get_item(fixture, A)->id, id);
    assert_value(fixture, A, USAGE_CPU_US, 7);
    assert_false(get_item(fixture, B)->ended);

    read_next(fixture, rescan);
    assert_int_equal(count_items(fixture), 1);
    remove_cgroup(fixture, "machine.slice");
    read_next(fixture, rescan);
    assert_true(get_item(fixture, B)->ended);
    read_next(fixture, rescan);
    assert_int_equal(count_items(fixture), 0);
}

static void events_report_what_comes_and_goes(void **state)
{
    struct fixture *fixture = *state;

    come_and_go(fixture, SIZE_MAX, false);
    assert_int_equal(fixture->reader->tree.unwatched_count, 0);
    assert_int_equal(fixture->reader->tree.watch_count, 2); /* the root and docker */
}

static void without_watches_directories_are_listed_each_time(void **state)
{
    struct fixture *fixture = *state;

    come_and_go(fixture, 0, false);
    assert_int_equal(fixture->reader->tree.unwatched_count, 2);
    assert_int_equal(fixture->reader->tree.watch_count, 0);
}

static void with_too_few_watches_the_rest_is_listed(void **state)
{
    come_and_go(*state, 1, false);
}

static void a_rescan_finds_the_same(void **state)
{
    come_and_go(*state, SIZE_MAX, true);
}

static void one_that_is_made_again_is_another_one(void **state)
{
    struct fixture *fixture = *state;
    char old_path[256], new_path[256];
    const struct usage_owner *items;
    size_t count;

    put_usage(fixture, "docker/" A, 100);
    start_reader(fixture, V2);
    read_once(fixture);
    /* Made before the old one goes, so that it has another inode, as in a cgroup file system. */
    put(fixture, "next/cpu.stat", "usage_usec 1\n");
    remove_cgroup(fixture, "docker/" A);
    snprintf(old_path, sizeof(old_path), "%s/next", fixture->path);
    snprintf(new_path, sizeof(new_path), "%s/sys/fs/cgroup/docker/" A, fixture->path);
    assert_int_equal(rename(old_path, new_path), 0);
    read_once(fixture);
    items = fixture->reader->items;
    count = fixture->reader->count;
    assert_int_equal(count, 2);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(items[i].usage.values[USAGE_CPU_US], items[i].ended ? 100 : 1);
    assert_true(items[0].ended != items[1].ended);
    assert_true(items[0].id != items[1].id);
    read_once(fixture);
    assert_int_equal(count_items(fixture), 1);
}

static void one_that_came_and_went_unread_is_not_shown(void **state)
{
    struct fixture *fixture = *state;

    put_usage(fixture, "docker/" B, 1);
    start_reader(fixture, V2);
    read_once(fixture);
    put_usage(fixture, "docker/" A, 1);
    remove_cgroup(fixture, "docker/" A);
    read_once(fixture);
    assert_int_equal(count_items(fixture), 1);
}

static void workloads_beyond_the_cap_are_counted_and_come_in_when_there_is_room(void **state)
{
    struct fixture *fixture = *state;

    put_usage(fixture, "docker/" A, 1);
    start_reader(fixture, V2);
    fixture->reader->tree.workloads_max = 1;
    read_once(fixture);
    put_usage(fixture, "docker/" B, 2);
    read_once(fixture);
    assert_int_equal(fixture->reader->tree.workload_count, 1);
    assert_int_equal(fixture->reader->tree.left_out, 1);
    assert_true(fixture->reader->tree.misses_workloads);
    assert_null(find_item(fixture, B));
    remove_cgroup(fixture, "docker/" A);
    read_once(fixture);
    read_next(fixture, true);
    assert_value(fixture, B, USAGE_CPU_US, 2);
    assert_int_equal(fixture->reader->tree.left_out, 0);
    assert_false(fixture->reader->tree.misses_workloads);
}

static void one_user_cannot_take_the_room_of_others(void **state)
{
    struct fixture *fixture = *state;
    char path[256];

    for (int i = 0; i < CGROUP_INNER_MAX + 10; i++) {
        snprintf(path, sizeof(path), "user.slice/user-1000.slice/libpod-%064x.scope", i);
        put_usage(fixture, path, 1);
    }
    start_reader(fixture, V2);
    read_once(fixture);
    assert_int_equal(fixture->reader->tree.workload_count, CGROUP_INNER_MAX + 1);
    assert_int_equal(fixture->reader->tree.left_out, 10);
    assert_false(fixture->reader->tree.misses_workloads); /* the user's row has what they use */
    put_usage(fixture, "docker/" A, 1);
    read_once(fixture);
    assert_value(fixture, A, USAGE_CPU_US, 1);
}

/* In as many slots of an unknown scheduler, units or containers as they were given. */
static void nor_with_many_places_and_what_they_have_too_much_stays_with_the_row_around(void **state)
{
    enum { MAX = 160, SLOTS = 4, EACH = 10 };
    struct fixture *fixture = *state;
    char path[256];

    for (int s = 0; s < SLOTS; s++)
        for (int i = 0; i < EACH; i++) {
            snprintf(path, sizeof(path), "user.slice/user-%d.slice/libpod-%064x.scope",
                     1000 + s / 2, s * EACH + i);
            put_usage(fixture, path, 1);
        }
    put_usage(fixture, "user.slice/user-1000.slice", 100);
    start_reader(fixture, V2);
    fixture->reader->tree.workloads_max = fixture->reader->scopes.workloads_max = MAX;
    read_once(fixture);
    /* A sixteenth of the room for each user, besides their own rows. */
    assert_int_equal(fixture->reader->scopes.count, 2 * MAX / 16);
    assert_int_equal(fixture->reader->tree.workload_count, 2 * MAX / 16 + 2);
    assert_int_equal(fixture->reader->tree.left_out, SLOTS * EACH - 2 * MAX / 16);
    assert_false(fixture->reader->tree.misses_workloads);
    assert_value(fixture, "1000", USAGE_CPU_US, 100);
    put_usage(fixture, "docker/" A, 1);
    read_once(fixture);
    assert_value(fixture, A, USAGE_CPU_US, 1);

    /* With those that end, others have room. */
    tree_remove(fixture->path, "sys/fs/cgroup/user.slice/user-1000.slice");
    read_next(fixture, true);
    assert_int_equal(fixture->reader->scopes.count, MAX / 16);
}

/* The ledger cuts, and needs to know what those have used that it cuts. */
static void more_workloads_are_read_than_are_shown_by_default(void **state)
{
    enum { MANY = 16400 };
    struct fixture *fixture = *state;
    char path[256];

    put_usage(fixture, "docker/" A, 1);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "%s/sys/fs/cgroup/docker/%064x", fixture->path, i);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    open_host(fixture, V2);
    assert_int_equal(
        cgroup_reader_new(&fixture->host, source_set_classify_cgroup, &fixture->reader), 0);
    read_once(fixture);
    assert_int_equal(fixture->reader->tree.workload_count, MANY + 1);
    assert_int_equal(fixture->reader->tree.left_out, 0);
    assert_int_equal(count_items(fixture), MANY + 1);
}

static void depth_has_an_end(void **state)
{
    struct fixture *fixture = *state;
    char path[4096] = "";

    for (int i = 0; i < CGROUP_DEPTH_MAX - 1; i++)
        strcat(path, "d/");
    strcat(path, "docker-" A ".scope");
    put_usage(fixture, path, 1);
    path[0] = '\0';
    for (int i = 0; i < CGROUP_DEPTH_MAX; i++)
        strcat(path, "d/");
    strcat(path, "docker-" B ".scope");
    put_usage(fixture, path, 1);
    start_reader(fixture, V2);
    read_once(fixture);
    assert_non_null(find_item(fixture, A));
    assert_null(find_item(fixture, B));
    assert_int_equal(fixture->reader->tree.left_out, 1);
}

static void links_lead_nowhere(void **state)
{
    struct fixture *fixture = *state;
    char path[256];

    put_usage(fixture, "system.slice/cron.service", 1);
    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/docker-" A ".scope", fixture->path);
    assert_int_equal(symlink("system.slice", path), 0);
    start_reader(fixture, V2);
    read_once(fixture);
    assert_null(find_item(fixture, A));
    assert_non_null(find_item(fixture, "cron.service"));
}

static void a_flood_of_events_is_survived_by_a_rescan(void **state)
{
    struct fixture *fixture = *state;
    char path[256];

    put_usage(fixture, "docker/" A, 1);
    start_reader(fixture, V2);
    read_once(fixture);
    /* More than the kernel's queue holds by default: 16384. */
    snprintf(path, sizeof(path), "%s/sys/fs/cgroup/docker/flood", fixture->path);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(rmdir(path), 0);
    }
    put_usage(fixture, "docker/" B, 2);
    remove_cgroup(fixture, "docker/" A);
    read_once(fixture);
    assert_value(fixture, B, USAGE_CPU_US, 2);
    assert_true(get_item(fixture, A)->ended);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_pods_containers_are_workloads_but_not_the_pod_nor_what_is_in_them),
        TEST(a_workload_in_a_unit_or_a_users_slice_is_inside_it),
        TEST(events_report_what_comes_and_goes),
        TEST(without_watches_directories_are_listed_each_time),
        TEST(with_too_few_watches_the_rest_is_listed),
        TEST(a_rescan_finds_the_same),
        TEST(one_that_is_made_again_is_another_one),
        TEST(one_that_came_and_went_unread_is_not_shown),
        TEST(workloads_beyond_the_cap_are_counted_and_come_in_when_there_is_room),
        TEST(one_user_cannot_take_the_room_of_others),
        TEST(nor_with_many_places_and_what_they_have_too_much_stays_with_the_row_around),
        TEST(more_workloads_are_read_than_are_shown_by_default),
        TEST(depth_has_an_end),
        TEST(links_lead_nowhere),
        TEST(a_flood_of_events_is_survived_by_a_rescan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
