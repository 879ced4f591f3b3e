/* What workloads did between two readings of their cgroups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/macros.h"
#include "sources/usage_delta.h"

static struct usage_owner item(uint64_t id, uint64_t cpu_us, uint64_t rss_bytes, uint32_t around)
{
    struct usage_owner item = {.id = id, .around = around};

    usage_set(&item.usage, USAGE_CPU_US, cpu_us);
    usage_set(&item.usage, USAGE_MEMORY_RSS_BYTES, rss_bytes);
    return item;
}

static void the_first_reading_counts_no_time_but_memory(void **state)
{
    struct usage_delta delta = {0};
    struct usage_owner items[] = {item(1, 500, 7, USAGE_AROUND_NONE)};
    struct usage_did did[1];

    (void)state;
    assert_int_equal(usage_delta_take(&delta, items, 1, did), 0);
    assert_int_equal(did[0].cpu_us, 0);
    assert_int_equal(did[0].memory_bytes, 7);
    usage_delta_done(&delta);
}

static void what_is_new_counts_from_its_beginning(void **state)
{
    struct usage_delta delta = {0};
    struct usage_owner before[] = {item(5, 100, 0, USAGE_AROUND_NONE)};
    struct usage_owner after[] = {item(9, 40, 0, USAGE_AROUND_NONE),
                                  item(5, 130, 0, USAGE_AROUND_NONE)};
    struct usage_did did[2];

    (void)state;
    assert_int_equal(usage_delta_take(&delta, before, 1, did), 0);
    assert_int_equal(usage_delta_take(&delta, after, 2, did), 0);
    assert_int_equal(did[0].cpu_us, 40);
    assert_int_equal(did[1].cpu_us, 30);
    usage_delta_done(&delta);
}

static void what_has_ended_counts_its_last_time_once(void **state)
{
    struct usage_delta delta = {0};
    struct usage_owner items[] = {item(5, 100, 9, USAGE_AROUND_NONE)};
    struct usage_did did[1];

    (void)state;
    assert_int_equal(usage_delta_take(&delta, items, 1, did), 0);
    items[0] = item(5, 170, 9, USAGE_AROUND_NONE);
    items[0].ended = true;
    assert_int_equal(usage_delta_take(&delta, items, 1, did), 0);
    assert_int_equal(did[0].cpu_us, 70);
    assert_int_equal(did[0].memory_bytes, 0);
    assert_int_equal(usage_delta_take(&delta, items, 0, did), 0);
    assert_int_equal(delta.count, 0);
    usage_delta_done(&delta);
}

static void what_is_inside_of_another_is_taken_from_it_so_that_the_sum_is_right(void **state)
{
    struct usage_delta delta = {0};
    /* A user's slice with a container in it, and a unit in that container's slice. */
    struct usage_owner items[] = {item(1, 0, 100, USAGE_AROUND_NONE), item(2, 0, 60, 0),
                                  item(3, 0, 10, 1)};
    struct usage_did did[3];

    (void)state;
    assert_int_equal(usage_delta_take(&delta, items, 3, did), 0);
    items[0] = item(1, 1000, 100, USAGE_AROUND_NONE);
    items[1] = item(2, 600, 60, 0);
    items[2] = item(3, 100, 10, 1);
    assert_int_equal(usage_delta_take(&delta, items, 3, did), 0);
    assert_int_equal(did[0].cpu_us, 400);
    assert_int_equal(did[1].cpu_us, 500);
    assert_int_equal(did[2].cpu_us, 100);
    assert_int_equal(did[0].memory_bytes, 40);
    assert_int_equal(did[1].memory_bytes, 50);
    assert_int_equal(did[2].memory_bytes, 10);
    usage_delta_done(&delta);
}

static void a_counter_that_goes_back_counts_nothing(void **state)
{
    struct usage_delta delta = {0};
    struct usage_owner items[] = {item(1, 900, 0, USAGE_AROUND_NONE)};
    struct usage_did did[1];

    (void)state;
    assert_int_equal(usage_delta_take(&delta, items, 1, did), 0);
    items[0] = item(1, 10, 0, USAGE_AROUND_NONE);
    assert_int_equal(usage_delta_take(&delta, items, 1, did), 0);
    assert_int_equal(did[0].cpu_us, 0);
    items[0] = item(1, 25, 0, USAGE_AROUND_NONE);
    assert_int_equal(usage_delta_take(&delta, items, 1, did), 0);
    assert_int_equal(did[0].cpu_us, 15);
    usage_delta_done(&delta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_reading_counts_no_time_but_memory),
        cmocka_unit_test(what_is_new_counts_from_its_beginning),
        cmocka_unit_test(what_has_ended_counts_its_last_time_once),
        cmocka_unit_test(what_is_inside_of_another_is_taken_from_it_so_that_the_sum_is_right),
        cmocka_unit_test(a_counter_that_goes_back_counts_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
