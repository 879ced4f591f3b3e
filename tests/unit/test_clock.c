/* core/clock: the system's two clocks, and one that only the test moves. */
#include "unit.h"

#include <time.h>

#include "core/clock.h"
#include "core/macros.h"

static uint64_t system_us(clockid_t id)
{
    struct timespec now;

    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / 1000;
}

static void a_manual_clock_stands_still_until_it_is_moved(void **state)
{
    struct clock_manual manual;
    const struct clock *clock = &manual.clock;

    (void)state;
    clock_manual_init(&manual, 1000);
    for (int i = 0; i < 3; i++) {
        assert_true(clock->realtime_us(clock) == 1000);
        assert_true(clock->monotonic_us(clock) == 1000);
    }
    manual.now_us += 5;
    assert_true(clock->realtime_us(clock) == 1005);
    assert_true(clock->monotonic_us(clock) == 1005);
}

static void manual_clocks_do_not_share_their_time(void **state)
{
    struct clock_manual one, two;

    (void)state;
    clock_manual_init(&one, 1);
    clock_manual_init(&two, UINT64_MAX);
    one.now_us = 7;
    assert_true(one.clock.monotonic_us(&one.clock) == 7);
    assert_true(two.clock.monotonic_us(&two.clock) == UINT64_MAX);
}

static void the_system_clock_reads_each_clock_in_microseconds(void **state)
{
    uint64_t before, at, after;

    (void)state;
    before = system_us(CLOCK_MONOTONIC);
    at = clock_system.monotonic_us(&clock_system);
    after = system_us(CLOCK_MONOTONIC);
    assert_true(before <= at && at <= after);
    /* The wall clock may be stepped meanwhile; a day apart would be another clock or unit. */
    before = system_us(CLOCK_REALTIME);
    at = clock_system.realtime_us(&clock_system);
    assert_true(at + 86400 * USEC_PER_SEC > before && at < before + 86400 * USEC_PER_SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manual_clock_stands_still_until_it_is_moved),
        cmocka_unit_test(manual_clocks_do_not_share_their_time),
        cmocka_unit_test(the_system_clock_reads_each_clock_in_microseconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
