/* What workloads did between two readings of their cgroups. */
#include "unit.h"

#include <string.h>

#include "core/macros.h"
#include "sources/cgroup/cgroups.h"

enum { ITEMS_MAX = 4 };

/* The cgroups of a machine, and what they did according to the last report. */
struct machine {
    struct usage_storage rooms[ITEMS_MAX];
    struct usage_owner items[ITEMS_MAX];
    size_t count;
    struct usage did[ITEMS_MAX];
    uint64_t cpu_us[ITEMS_MAX]; /* by which energy is divided */
    struct arena arena;
    bool has_reported;
};

static int set_up(void **state)
{
    struct machine *machine = calloc(1, sizeof(*machine));

    assert_non_null(machine);
    arena_init(&machine->arena, 1 << 20);
    *state = machine;
    return 0;
}

static int tear_down(void **state)
{
    struct machine *machine = *state;

    for (size_t i = 0; i < ITEMS_MAX; i++)
        usage_done(&machine->items[i].before);
    arena_done(&machine->arena);
    free(machine);
    return 0;
}

/* Reads a cgroup anew. */
static struct usage *put(struct machine *machine, size_t index, uint64_t cpu_us, uint64_t rss_bytes,
                         uint32_t around)
{
    struct usage_owner *item = &machine->items[index];

    machine->count = MAX(machine->count, index + 1);
    item->around = around;
    item->usage = usage_in(&machine->rooms[index]);
    usage_set(&item->usage, USAGE_CPU_US, cpu_us);
    usage_set(&item->usage, USAGE_MEMORY_RSS_BYTES, rss_bytes);
    return &item->usage;
}

static void put_io(struct usage *usage, uint32_t minor, uint64_t read_bytes)
{
    struct usage_io *io = usage_add_io(usage, 8, minor);

    io->values[USAGE_IO_READ_BYTES] = read_bytes;
    io->valid = 1U << USAGE_IO_READ_BYTES;
}

static void report(struct machine *machine)
{
    arena_reset(&machine->arena);
    assert_int_equal(
        usage_delta_compute(machine->items, machine->count, &machine->arena, machine->did), 0);
    for (size_t i = 0; i < machine->count; i++) {
        machine->cpu_us[i] = usage_delta_cpu_us(&machine->items[i], &machine->did[i]);
        assert_int_equal(usage_copy_counters(&machine->items[i].before, &machine->items[i].usage),
                         0);
        machine->items[i].is_older |= !machine->has_reported;
    }
    machine->has_reported = true;
}

static void assert_did(const struct machine *machine, size_t index, uint64_t cpu_us,
                       uint64_t rss_bytes)
{
    assert_int_equal(machine->cpu_us[index], cpu_us);
    assert_int_equal(usage_memory_bytes(&machine->did[index]), rss_bytes);
}

static void what_is_new_counts_from_its_beginning(void **state)
{
    struct machine *machine = *state;

    put(machine, 0, 100, 7, USAGE_AROUND_NONE);
    report(machine);
    assert_did(machine, 0, 100, 7);
    put(machine, 0, 130, 8, USAGE_AROUND_NONE);
    put(machine, 1, 40, 9, USAGE_AROUND_NONE);
    report(machine);
    assert_did(machine, 0, 30, 8);
    assert_did(machine, 1, 40, 9);
}

static void what_has_ended_counts_its_last_time_and_holds_nothing(void **state)
{
    struct machine *machine = *state;
    struct usage *usage;

    put(machine, 0, 100, 9, USAGE_AROUND_NONE);
    report(machine);
    usage = put(machine, 0, 170, 9, USAGE_AROUND_NONE);
    usage->hugetlb[usage->hugetlb_count++] = (struct usage_hugetlb){2 << 20, 5};
    machine->items[0].ended = true;
    report(machine);
    assert_did(machine, 0, 70, 0);
    assert_false(usage_has(&machine->did[0], USAGE_MEMORY_RSS_BYTES));
    assert_int_equal(machine->did[0].hugetlb_count, 0);
}

static void what_is_inside_of_another_is_taken_from_it_so_that_the_sum_is_right(void **state)
{
    struct machine *machine = *state;

    /* A user's slice with a container in it, and a unit in that container's slice. */
    put(machine, 0, 0, 0, USAGE_AROUND_NONE);
    put(machine, 1, 0, 0, 0);
    put(machine, 2, 0, 0, 1);
    report(machine);
    put_io(put(machine, 0, 1000, 100, USAGE_AROUND_NONE), 0, 70);
    put_io(put(machine, 1, 600, 60, 0), 0, 30);
    put_io(put(machine, 2, 100, 10, 1), 1, 30);
    report(machine);
    assert_did(machine, 0, 400, 40);
    assert_did(machine, 1, 500, 50);
    assert_did(machine, 2, 100, 10);
    assert_int_equal(machine->did[0].io[0].values[USAGE_IO_READ_BYTES], 40);
    assert_int_equal(machine->did[1].io[0].values[USAGE_IO_READ_BYTES], 30);
}

static void put_halves(struct machine *machine, size_t index, uint64_t user_us, uint64_t system_us,
                       uint32_t around)
{
    struct usage *usage = put(machine, index, user_us + system_us, 0, around);

    usage_set(usage, USAGE_CPU_USER_US, user_us);
    usage_set(usage, USAGE_CPU_SYSTEM_US, system_us);
}

static void halves_that_differ_between_cgroups_add_no_time_to_the_one_around(void **state)
{
    struct machine *machine = *state;
    const uint64_t *rest;

    /* Nothing else is in it: only the kernel's halves differ. */
    put_halves(machine, 0, 900, 100, USAGE_AROUND_NONE);
    put_halves(machine, 1, 920, 80, 0);
    report(machine);
    rest = machine->did[0].values;
    assert_did(machine, 0, 0, 0);
    assert_int_equal(rest[USAGE_CPU_USER_US] + rest[USAGE_CPU_SYSTEM_US], 0);

    /* By halves 60 us of user mode are left, and none of system mode. */
    put_halves(machine, 0, 1900, 150, USAGE_AROUND_NONE);
    put_halves(machine, 1, 1860, 140, 0);
    report(machine);
    assert_did(machine, 0, 50, 0);
    assert_int_equal(rest[USAGE_CPU_USER_US], 50);
    assert_int_equal(rest[USAGE_CPU_SYSTEM_US], 0);
    assert_int_equal(machine->did[1].values[USAGE_CPU_USER_US], 940);
    assert_int_equal(machine->did[1].values[USAGE_CPU_SYSTEM_US], 60);
}

static void what_is_no_sum_stays_that_of_the_whole_cgroup(void **state)
{
    struct machine *machine = *state;

    usage_set(put(machine, 0, 0, 0, USAGE_AROUND_NONE), USAGE_MEMORY_SOME_US, 50);
    usage_set(put(machine, 1, 0, 0, 0), USAGE_MEMORY_SOME_US, 30);
    usage_set(&machine->items[0].usage, USAGE_MEMORY_LIMIT_BYTES, 9000);
    usage_set(&machine->items[1].usage, USAGE_MEMORY_LIMIT_BYTES, 4000);
    report(machine);
    assert_int_equal(machine->did[0].values[USAGE_MEMORY_SOME_US], 50);
    assert_int_equal(machine->did[0].values[USAGE_MEMORY_LIMIT_BYTES], 9000);
}

static void huge_pages_and_rdma_of_what_is_inside_are_taken_out_too(void **state)
{
    struct machine *machine = *state;
    const struct usage_rdma rdma = {"mlx5_0", true, true, 5, 7},
                            inner = {"mlx5_0", true, true, 2, 3};
    struct usage *outside = put(machine, 0, 0, 0, USAGE_AROUND_NONE);
    struct usage *inside = put(machine, 1, 0, 0, 0);

    outside->rdma[outside->rdma_count++] = rdma;
    inside->rdma[inside->rdma_count++] = inner;
    outside->hugetlb[outside->hugetlb_count++] = (struct usage_hugetlb){2 << 20, 100};
    inside->hugetlb[inside->hugetlb_count++] = (struct usage_hugetlb){2 << 20, 60};
    report(machine);
    assert_int_equal(machine->did[0].rdma[0].handles, 3);
    assert_int_equal(machine->did[0].rdma[0].objects, 4);
    assert_int_equal(machine->did[0].hugetlb[0].used_bytes, 40);
    assert_int_equal(machine->did[1].hugetlb[0].used_bytes, 60);
}

static void a_counter_that_goes_back_counts_nothing(void **state)
{
    struct machine *machine = *state;

    put(machine, 0, 900, 0, USAGE_AROUND_NONE);
    report(machine);
    put(machine, 0, 10, 0, USAGE_AROUND_NONE);
    report(machine);
    assert_did(machine, 0, 0, 0);
    put(machine, 0, 25, 0, USAGE_AROUND_NONE);
    report(machine);
    assert_did(machine, 0, 15, 0);
}

static void a_counter_that_could_not_be_read_goes_on_where_it_was(void **state)
{
    struct machine *machine = *state;

    usage_set(put(machine, 0, 900, 0, USAGE_AROUND_NONE), USAGE_MEMORY_OOM_KILLS, 3);
    report(machine);
    put(machine, 0, 910, 0, USAGE_AROUND_NONE);
    report(machine);
    assert_false(usage_has(&machine->did[0], USAGE_MEMORY_OOM_KILLS));
    usage_set(put(machine, 0, 920, 0, USAGE_AROUND_NONE), USAGE_MEMORY_OOM_KILLS, 5);
    report(machine);
    assert_int_equal(machine->did[0].values[USAGE_MEMORY_OOM_KILLS], 2);
}

static void what_cannot_be_read_at_first_counts_from_when_it_can_or_from_its_beginning(void **state)
{
    struct machine *machine = *state;

    put(machine, 0, 0, 0, USAGE_AROUND_NONE)->valid = 0;
    report(machine);
    assert_did(machine, 0, 0, 0);
    put(machine, 0, 900, 0, USAGE_AROUND_NONE);
    report(machine);
    assert_did(machine, 0, 0, 0);
    assert_int_equal(machine->did[0].values[USAGE_CPU_US], 900);
    put(machine, 0, 930, 0, USAGE_AROUND_NONE)->valid = 0;
    report(machine);
    assert_did(machine, 0, 0, 0);
    put(machine, 0, 960, 0, USAGE_AROUND_NONE);
    report(machine);
    assert_did(machine, 0, 60, 0);
    put(machine, 1, 0, 0, USAGE_AROUND_NONE)->valid = 0;
    report(machine);
    put(machine, 1, 40, 0, USAGE_AROUND_NONE);
    report(machine);
    assert_did(machine, 1, 40, 0);
}

static void devices_are_counted_each_for_itself(void **state)
{
    struct machine *machine = *state;

    put_io(put(machine, 0, 0, 0, USAGE_AROUND_NONE), 16, 100);
    report(machine);
    put(machine, 0, 0, 0, USAGE_AROUND_NONE);
    put_io(&machine->items[0].usage, 32, 4);
    put_io(&machine->items[0].usage, 16, 150);
    report(machine);
    assert_int_equal(usage_find_io(&machine->did[0], 8, 32)->values[USAGE_IO_READ_BYTES], 4);
    assert_int_equal(usage_find_io(&machine->did[0], 8, 16)->values[USAGE_IO_READ_BYTES], 50);
}

static void what_is_left_of_a_machine_with_unread_workloads_is_other(void **state)
{
    struct sample_workload workloads[3] = {{.cpu_us = 300, .memory_bytes = 10},
                                           {.cpu_us = 200, .memory_bytes = 20}};
    struct sample_usage usage = {
        .busy_us = 900, .memory_used_bytes = 25, .count = 2, .workloads = workloads};

    (void)state;
    usage_others_add(workloads, &usage);
    assert_int_equal(usage.count, 3);
    assert_int_equal(workloads[2].kind, WORKLOAD_OTHER);
    assert_string_equal(workloads[2].id, "other");
    assert_int_equal(workloads[2].cpu_us, 400);
    assert_int_equal(workloads[2].memory_bytes, 0); /* shared memory counts more than once */
    assert_null(workloads[2].did);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_new_counts_from_its_beginning, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_has_ended_counts_its_last_time_and_holds_nothing,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_inside_of_another_is_taken_from_it_so_that_the_sum_is_right, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            halves_that_differ_between_cgroups_add_no_time_to_the_one_around, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_sum_stays_that_of_the_whole_cgroup, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(huge_pages_and_rdma_of_what_is_inside_are_taken_out_too,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_counter_that_goes_back_counts_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_counter_that_could_not_be_read_goes_on_where_it_was,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_cannot_be_read_at_first_counts_from_when_it_can_or_from_its_beginning, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(devices_are_counted_each_for_itself, set_up, tear_down),
        cmocka_unit_test(what_is_left_of_a_machine_with_unread_workloads_is_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
