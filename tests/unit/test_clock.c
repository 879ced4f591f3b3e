/* core/clock: the system's two clocks. */
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
        cmocka_unit_test(the_system_clock_reads_each_clock_in_microseconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
