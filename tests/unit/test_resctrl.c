/* sources/resctrl/resctrl: memory traffic by container. */
#include "sysfs_fixture.h"

#include <errno.h>

#include "sources/resctrl/resctrl.h"

#define SECOND USEC_PER_SEC
#define A      "a3f0c1d2e4b5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff"
#define B      "b00112233445566778899aabbccddeeffa3f0c1d2e4b5968778695a4b3c2d1e0"

/* A machine with two L3 caches, and a reader of it. */
struct node {
    struct machine *machine;
    struct resctrl *resctrl;
    uint64_t now_us;
};

static int set_up(void **state)
{
    struct node *node = calloc(1, sizeof(*node));
    void *machine;

    if (!node || machine_set_up(&machine) < 0)
        return -1;
    node->machine = machine;
    assert_int_equal(resctrl_new(&node->machine->host, &node->resctrl), 0);
    *state = node;
    return 0;
}

static int tear_down(void **state)
{
    struct node *node = *state;
    void *machine = node->machine;

    resctrl_free(node->resctrl);
    free(node);
    return machine_tear_down(&machine);
}

/* `group` is "" or ends with a slash. */
static void write_text(const struct node *node, const char *group, unsigned domain,
                       const char *text)
{
    char path[200];

    snprintf(path, sizeof(path), "fs/resctrl/%smon_data/mon_L3_%02u/mbm_total_bytes", group,
             domain);
    machine_write(node->machine, path, text);
}

/* All of it in one cache, nothing in the other. */
static void write_count(const struct node *node, const char *group, uint64_t bytes)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu\n", (unsigned long long)bytes);
    write_text(node, group, 0, text);
    write_text(node, group, 1, "0\n");
}

static void remove_group(const struct node *node, const char *group)
{
    char path[200];

    snprintf(path, sizeof(path), "fs/resctrl/%s", group);
    machine_remove(node->machine, path);
}

static bool read_after(struct node *node, uint64_t us)
{
    node->now_us += us;
    return resctrl_read(node->resctrl, node->now_us);
}

static bool read_next(struct node *node)
{
    return read_after(node, 5 * SECOND);
}

static void assert_traffic(const struct node *node, const char *container_id, uint64_t bytes)
{
    uint64_t found = UINT64_MAX;

    assert_true(resctrl_find(node->resctrl, container_id, &found));
    assert_int_equal(found, bytes);
}

static void assert_none(const struct node *node, const char *container_id)
{
    uint64_t found;

    assert_false(resctrl_find(node->resctrl, container_id, &found));
}

static void a_count_is_a_number(void **state)
{
    static const struct {
        const char *text;
        int r;
        uint64_t bytes;
    } cases[] = {
        {"0\n", 0, 0},
        {"1073741824\n", 0, 1073741824},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616\n", -EINVAL, 0},
        {"Unavailable\n", -EINVAL, 0},
        {"Unassigned\n", -EINVAL, 0},
        {"Error\n", -EINVAL, 0},
        {"error\n", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"\n", -EINVAL, 0},
        {"-1\n", -EINVAL, 0},
        {"1 \n", -EINVAL, 0},
        {"1\n2\n", -EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t bytes = 0;

        assert_int_equal(resctrl_parse_bytes(span_of(cases[i].text), &bytes), cases[i].r);
        assert_int_equal(bytes, cases[i].bytes);
    }
}

static void domains_are_those_of_l3_caches(void **state)
{
    static const struct {
        const char *name;
        int r;
        uint32_t id;
    } cases[] = {
        {"mon_L3_00", 0, 0},       {"mon_L3_07", 0, 7},           {"mon_L3_31", 0, 31},
        {"mon_L3_128", 0, 128},    {"mon_L3_99999", 0, 99999},    {"mon_L3_100000", -EINVAL, 0},
        {"mon_L3_1", -EINVAL, 0},  {"mon_L3_007", -EINVAL, 0},    {"mon_L3_", -EINVAL, 0},
        {"mon_L3_0x", -EINVAL, 0}, {"mon_sub_L3_00", -EINVAL, 0}, {"mon_PERF_PKG_00", -EINVAL, 0},
        {"mon_L2_00", -EINVAL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t id = 0;

        assert_int_equal(resctrl_parse_domain(span_of(cases[i].name), &id), cases[i].r);
        assert_int_equal(id, cases[i].id);
    }
}

static void a_group_is_a_containers_if_its_name_ends_with_the_id(void **state)
{
    static const struct {
        const char *name;
        bool is_container;
    } cases[] = {
        {A, true},
        {"goresctrl." A, true},
        {"container-" A, true},
        {"crio_" A, true},
        {"0" A, false},
        {A "0", false},
        {"x" A, false},
        {"", false},
        {"guaranteed", false},
        {A ".service", false},
        {"A3F0c1d2e4b5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char id[WORKLOAD_CONTAINER_BYTES] = "";

        assert_int_equal(resctrl_parse_container(span_of(cases[i].name), id),
                         cases[i].is_container);
        assert_string_equal(id, cases[i].is_container ? A : "");
    }
}

static void a_lower_value_is_accepted_when_it_is_seen_twice(void **state)
{
    struct resctrl_counter counter = {0};
    uint64_t bytes = 0;

    (void)state;
    assert_int_equal(resctrl_counter_update(&counter, 0, 1000, &bytes), RESCTRL_FIRST);
    assert_int_equal(resctrl_counter_update(&counter, SECOND, 1300, &bytes), RESCTRL_KNOWN);
    assert_int_equal(bytes, 300);
    assert_int_equal(resctrl_counter_update(&counter, 2 * SECOND, 5, &bytes), RESCTRL_LOWER);
    assert_int_equal(resctrl_counter_update(&counter, 3 * SECOND, 1400, &bytes), RESCTRL_KNOWN);
    assert_int_equal(bytes, 100); /* since the last that was believed */
    assert_int_equal(resctrl_counter_update(&counter, 4 * SECOND, 20, &bytes), RESCTRL_LOWER);
    assert_int_equal(resctrl_counter_update(&counter, 5 * SECOND, 50, &bytes), RESCTRL_LOWER);
    assert_int_equal(resctrl_counter_update(&counter, 6 * SECOND, 57, &bytes), RESCTRL_KNOWN);
    assert_int_equal(bytes, 7);
}

static void more_than_a_memory_can_move_is_no_traffic(void **state)
{
    struct resctrl_counter counter = {0};
    uint64_t bytes = 17, most = (uint64_t)8000000000000;

    (void)state;
    assert_int_equal(resctrl_counter_update(&counter, SECOND, 0, &bytes), RESCTRL_FIRST);
    assert_int_equal(resctrl_counter_update(&counter, 2 * SECOND, most + 1, &bytes),
                     RESCTRL_ABSURD);
    assert_int_equal(bytes, 17);
    assert_int_equal(resctrl_counter_update(&counter, 3 * SECOND, 2 * most + 1, &bytes),
                     RESCTRL_KNOWN);
    assert_int_equal(bytes, most);
    assert_int_equal(resctrl_counter_update(&counter, 3 * SECOND, UINT64_MAX, &bytes),
                     RESCTRL_ABSURD);
    assert_int_equal(resctrl_counter_update(&counter, UINT64_MAX, UINT64_MAX, &bytes),
                     RESCTRL_KNOWN);
    assert_int_equal(bytes, 0);
}

static void a_container_with_its_own_class_is_apart_from_the_default_class(void **state)
{
    struct node *node = *state;

    write_count(node, "", 1000);
    write_count(node, A "/", 500);
    machine_write(node->machine, "fs/resctrl/info/L3_MON/mon_features", "mbm_total_bytes\n");
    assert_false(read_next(node)); /* the first time */
    write_count(node, "", 1070);
    write_count(node, A "/", 530);
    assert_true(read_next(node));
    assert_traffic(node, A, 30);
    assert_none(node, B);
    assert_none(node, "");
    assert_int_equal(resctrl_total_bytes(node->resctrl), 100);
    assert_int_equal(resctrl_container_count(node->resctrl), 1);
}

static void what_groups_in_a_class_moved_is_not_counted_twice(void **state)
{
    struct node *node = *state;

    write_count(node, "", 1000); /* 900 of its own */
    write_count(node, "mon_groups/container-" B "/", 100);
    write_count(node, "guaranteed/", 5000); /* 2000 of its own */
    write_count(node, "guaranteed/mon_groups/" A "/", 3000);
    (void)read_next(node);
    write_count(node, "", 1050);
    write_count(node, "mon_groups/container-" B "/", 140);
    write_count(node, "guaranteed/", 5600);
    write_count(node, "guaranteed/mon_groups/" A "/", 3400);
    assert_true(read_next(node));
    assert_traffic(node, A, 400);
    assert_traffic(node, B, 40);
    assert_int_equal(resctrl_total_bytes(node->resctrl), 50 + 600);
}

static void groups_inside_of_a_containers_class_are_the_containers(void **state)
{
    struct node *node = *state;

    write_count(node, "", 0);
    write_count(node, A "/", 30);
    write_count(node, A "/mon_groups/workers/", 10);
    write_count(node, A "/mon_groups/" A "/", 10);
    (void)read_next(node);
    write_count(node, A "/", 630);
    write_count(node, A "/mon_groups/workers/", 110);
    write_count(node, A "/mon_groups/" A "/", 210);
    assert_true(read_next(node));
    assert_traffic(node, A, 600);
}

static void caches_are_added_up_and_one_without_a_count_is_left_out(void **state)
{
    struct node *node = *state;

    write_text(node, "", 0, "100\n");
    write_text(node, "", 1, "100\n");
    write_text(node, A "/", 0, "7\n");
    write_text(node, A "/", 1, "Unavailable\n");
    (void)read_next(node);
    write_text(node, "", 0, "110\n");
    write_text(node, "", 1, "103\n");
    write_text(node, A "/", 0, "9\n");
    write_text(node, A "/", 1, "1000\n"); /* from where on it was counted is not known */
    assert_true(read_next(node));
    assert_traffic(node, A, 2);
    assert_int_equal(resctrl_total_bytes(node->resctrl), 15);
    write_text(node, A "/", 1, "1001\n");
    assert_true(read_next(node));
    assert_traffic(node, A, 1);
}

static void a_group_without_a_count_has_no_traffic_and_not_none(void **state)
{
    struct node *node = *state;

    write_count(node, "", 0);
    write_count(node, A "/", 0);
    (void)read_next(node);
    write_text(node, A "/", 0, "Error\n");
    write_text(node, A "/", 1, "Unassigned\n");
    assert_true(read_next(node));
    assert_none(node, A);
    write_count(node, A "/", 900);
    assert_true(read_next(node));
    assert_none(node, A); /* it begins anew */
    assert_true(read_next(node));
    assert_traffic(node, A, 0);
}

static void a_group_that_ends_takes_its_count_with_it(void **state)
{
    struct node *node = *state;

    write_count(node, "", 0);
    write_count(node, "batch/", 100 + 70000);
    write_count(node, "batch/mon_groups/" A "/", 70000);
    (void)read_next(node);
    remove_group(node, "batch/mon_groups/" A);
    write_count(node, "batch/", 130);
    assert_true(read_next(node));
    assert_none(node, A);
    assert_int_equal(resctrl_total_bytes(node->resctrl), 30);
    remove_group(node, "batch");
    assert_true(read_next(node));
    assert_int_equal(resctrl_total_bytes(node->resctrl), 0);
}

static void a_group_that_comes_counts_from_its_second_reading_on(void **state)
{
    struct node *node = *state;

    write_count(node, "", 100);
    (void)read_next(node);
    write_count(node, "", 40000 + 107);
    write_count(node, "mon_groups/" A "/", 40000);
    assert_true(read_next(node));
    assert_none(node, A);
    assert_int_equal(resctrl_total_bytes(node->resctrl), 7);
    write_count(node, "", 40002 + 108);
    write_count(node, "mon_groups/" A "/", 40002);
    assert_true(read_next(node));
    assert_traffic(node, A, 2);
    assert_int_equal(resctrl_total_bytes(node->resctrl), 3);
}

static void a_counter_that_begins_anew_invents_no_traffic(void **state)
{
    struct node *node = *state;

    write_count(node, "", 0);
    write_count(node, A "/", UINT64_MAX - 5);
    (void)read_next(node);
    write_count(node, A "/", 40);
    assert_true(read_next(node));
    assert_none(node, A);
    write_count(node, A "/", 50);
    assert_true(read_next(node));
    assert_none(node, A);
    write_count(node, A "/", 65);
    assert_true(read_next(node));
    assert_traffic(node, A, 15);
}

/* The class is read after the groups in it: they may have moved something meanwhile. */
static void a_class_that_seems_to_go_back_a_little_did_nothing(void **state)
{
    struct node *node = *state;

    write_count(node, "", 1010);
    write_count(node, "mon_groups/" A "/", 1000);
    (void)read_next(node);
    for (uint64_t i = 1; i < 10; i++) {
        write_count(node, "", 1000 * i + 1010 - i);
        write_count(node, "mon_groups/" A "/", 1000 * i + 1000);
        assert_true(read_next(node));
        assert_traffic(node, A, 1000);
        assert_int_equal(resctrl_total_bytes(node->resctrl), 1000);
    }
}

static void a_group_that_ends_while_it_is_read_does_not_look_like_its_class(void **state)
{
    struct node *node = *state;

    write_count(node, "", 70100);
    write_count(node, "mon_groups/" A "/", 70000);
    (void)read_next(node);
    write_count(node, "", 130); /* without the group, which was still there a moment ago */
    write_count(node, "mon_groups/" A "/", 70020);
    assert_true(read_next(node));
    assert_int_equal(resctrl_total_bytes(node->resctrl), 20);
    remove_group(node, "mon_groups/" A);
    write_count(node, "", 140);
    assert_true(read_next(node));
    assert_int_equal(resctrl_total_bytes(node->resctrl), 40);
}

static void without_a_mount_or_without_counters_there_is_nothing(void **state)
{
    struct node *node = *state;

    assert_false(read_next(node));
    machine_write(node->machine, "fs/resctrl/schemata", "L3:0=ff\n");
    machine_write(node->machine, "fs/resctrl/mon_data/mon_L3_00/llc_occupancy", "12\n");
    machine_write(node->machine, "fs/resctrl/" A "/mon_data/mon_L3_00/llc_occupancy", "12\n");
    assert_false(read_next(node));
    assert_false(read_next(node));
    assert_none(node, A);
    write_count(node, "", 0); /* counting begins */
    assert_false(read_next(node));
    assert_true(read_next(node));
    remove_group(node, "");
    assert_false(read_next(node));
    assert_int_equal(resctrl_total_bytes(node->resctrl), 0);
}

static void a_cache_that_comes_or_goes_begins_all_counts_anew(void **state)
{
    struct node *node = *state;

    write_count(node, "", 10);
    write_count(node, A "/", 10);
    (void)read_next(node);
    write_text(node, "", 2, "5000\n");
    assert_false(read_next(node));
    assert_true(read_next(node));
    assert_traffic(node, A, 0);
    remove_group(node, "mon_data/mon_L3_02");
    assert_false(read_next(node));
    assert_true(read_next(node));
}

static void with_too_many_groups_nothing_is_known(void **state)
{
    struct node *node = *state;

    write_count(node, "", 0);
    write_count(node, A "/", 0);
    (void)read_next(node);
    for (unsigned i = 0; i < RESCTRL_GROUPS_MAX - 1; i++) {
        char path[64];

        snprintf(path, sizeof(path), "fs/resctrl/mon_groups/%u/tasks", i);
        machine_write(node->machine, path, "");
    }
    assert_false(read_next(node));
    assert_none(node, A);
    remove_group(node, "mon_groups/0");
    assert_false(read_next(node));
    assert_true(read_next(node));
    assert_traffic(node, A, 0);
}

static void with_too_many_caches_nothing_is_known(void **state)
{
    struct node *node = *state;

    for (unsigned i = 0; i < RESCTRL_DOMAINS_MAX; i++)
        write_text(node, "", i, "1\n");
    assert_false(read_next(node));
    assert_true(read_next(node));
    write_text(node, "", RESCTRL_DOMAINS_MAX, "1\n");
    assert_false(read_next(node));
    assert_false(read_next(node));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_count_is_a_number),
        cmocka_unit_test(domains_are_those_of_l3_caches),
        cmocka_unit_test(a_group_is_a_containers_if_its_name_ends_with_the_id),
        cmocka_unit_test(a_lower_value_is_accepted_when_it_is_seen_twice),
        cmocka_unit_test(more_than_a_memory_can_move_is_no_traffic),
        TEST(a_container_with_its_own_class_is_apart_from_the_default_class),
        TEST(what_groups_in_a_class_moved_is_not_counted_twice),
        TEST(groups_inside_of_a_containers_class_are_the_containers),
        TEST(caches_are_added_up_and_one_without_a_count_is_left_out),
        TEST(a_group_without_a_count_has_no_traffic_and_not_none),
        TEST(a_group_that_ends_takes_its_count_with_it),
        TEST(a_group_that_comes_counts_from_its_second_reading_on),
        TEST(a_counter_that_begins_anew_invents_no_traffic),
        TEST(a_class_that_seems_to_go_back_a_little_did_nothing),
        TEST(a_group_that_ends_while_it_is_read_does_not_look_like_its_class),
        TEST(without_a_mount_or_without_counters_there_is_nothing),
        TEST(a_cache_that_comes_or_goes_begins_all_counts_anew),
        TEST(with_too_many_groups_nothing_is_known),
        TEST(with_too_many_caches_nothing_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
