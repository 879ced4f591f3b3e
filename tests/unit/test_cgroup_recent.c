/* sources/cgroup/reader: workloads that have just begun are read often, for a while. */
#include "unit.h"

#include "core/macros.h"
#include "sources/cgroup/reader.h"

enum { READS_MAX = 200 };

static const uint64_t BORN_US = 1000 * USEC_PER_SEC + 1234;

struct log {
    uint64_t now_us;
    uint64_t reads_us[READS_MAX];
    size_t count;
    bool is_reported; /* by the kernel, when it ends */
};

static bool take_read(void *context, uint64_t id)
{
    struct log *log = context;

    (void)id;
    assert_true(log->count < READS_MAX);
    log->reads_us[log->count++] = log->now_us;
    return log->is_reported;
}

/* Until it is not recent any more, on a clock that jumps from one read to the next. */
static void live(struct recents *recents, struct log *log)
{
    uint64_t next_us = BORN_US;

    while (next_us != CGROUP_READER_NEVER) {
        log->now_us = next_us;
        next_us = recents_read(recents, log->now_us, take_read, log);
        assert_true(next_us > log->now_us);
    }
    assert_int_equal(recents->count, 0);
}

static void assert_steps(const struct log *log, uint64_t parts)
{
    assert_int_equal(log->reads_us[0], BORN_US);
    for (size_t i = 1; i < log->count; i++) {
        uint64_t age_us = log->reads_us[i - 1] - BORN_US;

        assert_true(log->reads_us[i] - log->reads_us[i - 1] <=
                    MAX(age_us / parts, (uint64_t)50000));
    }
}

static void without_events_it_is_read_at_each_eighth_of_its_life(void **state)
{
    struct recents recents = {.count = 0};
    struct log log = {.count = 0};

    (void)state;
    recents_add(&recents, 7);
    live(&recents, &log);
    assert_steps(&log, 8);
    assert_in_range(log.count, 40, 60);
    assert_true(log.now_us - BORN_US >= 40 * USEC_PER_SEC); /* an eighth is a cycle */
}

static void with_events_it_is_read_less_often(void **state)
{
    struct recents recents = {.count = 0};
    struct log log = {.is_reported = true};

    (void)state;
    recents_add(&recents, 7);
    live(&recents, &log);
    assert_steps(&log, 2);
    assert_in_range(log.count, 8, 20);
}

static void reads_that_are_due_soon_share_a_wake_up(void **state)
{
    struct recents recents = {.count = 0};
    struct log log = {.is_reported = true};
    uint64_t next_us = 0;

    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        recents_add(&recents, i);
        next_us = recents_read(&recents, BORN_US + i * 10000, take_read, &log);
    }
    assert_int_equal(log.count, 3);
    recents_read(&recents, next_us, take_read, &log);
    assert_int_equal(log.count, 6);
}

static void too_many_are_left_to_the_cycles_and_one_that_ends_makes_room(void **state)
{
    static struct recents recents;
    struct log log = {.count = 0};

    (void)state;
    for (uint64_t id = 1; id <= RECENT_MAX + 2; id++)
        recents_add(&recents, id);
    assert_int_equal(recents.count, RECENT_MAX);
    recents_remove(&recents, RECENT_MAX + 2); /* was never in it */
    assert_int_equal(recents.count, RECENT_MAX);
    while (recents.count > 1)
        recents_remove(&recents, recents.items[0].id);
    recents_add(&recents, RECENT_MAX + 1);
    recents_read(&recents, BORN_US, take_read, &log);
    assert_int_equal(log.count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_events_it_is_read_at_each_eighth_of_its_life),
        cmocka_unit_test(with_events_it_is_read_less_often),
        cmocka_unit_test(reads_that_are_due_soon_share_a_wake_up),
        cmocka_unit_test(too_many_are_left_to_the_cycles_and_one_that_ends_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
