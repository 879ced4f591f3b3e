/* sources/integrator: energy from power. */
#include "unit.h"

#include "random.h"
#include "sources/counter.h"

#define SECOND ((uint64_t)1000000)
#define WATT   ((uint64_t)1000000)
#define JOULE  ((uint64_t)1000000)

static void power_runs_straight_from_one_reading_to_the_next(void **state)
{
    struct integrator integrator = {.stale_us = 3 * SECOND};

    (void)state;
    integrator_add(&integrator, 5 * SECOND, 100 * WATT);
    assert_int_equal(integrator.energy_uj, 0);
    integrator_add(&integrator, 6 * SECOND, 300 * WATT);
    assert_int_equal(integrator.energy_uj, 200 * JOULE);
    integrator_add(&integrator, 8 * SECOND, 300 * WATT);
    assert_int_equal(integrator.energy_uj, 800 * JOULE);
    integrator_add(&integrator, 8 * SECOND, 500 * WATT); /* twice in one microsecond */
    assert_int_equal(integrator.energy_uj, 800 * JOULE);
    assert_int_equal(integrator.breaks, 0);
}

static void nothing_less_than_a_microjoule_is_lost(void **state)
{
    struct integrator integrator = {.stale_us = 3 * SECOND};
    struct random_source random = {7};
    unsigned __int128 area = 0;
    uint64_t t_us = 1, last_uw = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        uint64_t dt_us = random_u64(&random) % 3000, power_uw = random_u64(&random) % 5000;

        t_us += dt_us;
        if (i > 0)
            area += (unsigned __int128)(last_uw + power_uw) * dt_us;
        last_uw = power_uw;
        integrator_add(&integrator, t_us, power_uw);
    }
    assert_true(integrator.energy_uj > 0);
    assert_int_equal(integrator.energy_uj, (uint64_t)(area / 2000000));
    assert_int_equal(integrator.carry, (uint64_t)(area % 2000000));
}

static void the_largest_power_over_the_longest_gap_does_not_overflow(void **state)
{
    struct integrator integrator = {.stale_us = UINT64_MAX};

    (void)state;
    integrator_add(&integrator, 0, 50000 * WATT);
    integrator_add(&integrator, 86400 * SECOND, 50000 * WATT);
    assert_int_equal(integrator.energy_uj, JOULE * 50000 * 86400);
}

static void a_gap_longer_than_the_limit_is_a_break_and_not_integrated(void **state)
{
    struct integrator integrator = {.stale_us = 3 * SECOND};

    (void)state;
    integrator_add(&integrator, 1 * SECOND, 100 * WATT);
    integrator_add(&integrator, 4 * SECOND, 100 * WATT); /* just not longer */
    assert_int_equal(integrator.energy_uj, 300 * JOULE);
    assert_int_equal(integrator.breaks, 0);
    integrator_add(&integrator, 7 * SECOND + 1, 100 * WATT);
    assert_int_equal(integrator.energy_uj, 300 * JOULE);
    assert_int_equal(integrator.breaks, 1);
    integrator_add(&integrator, 8 * SECOND + 1, 100 * WATT);
    assert_int_equal(integrator.energy_uj, 400 * JOULE);
    assert_int_equal(integrator.breaks, 1);
}

static void a_clock_that_goes_back_is_a_break(void **state)
{
    struct integrator integrator = {.stale_us = 3 * SECOND};

    (void)state;
    integrator_add(&integrator, 9 * SECOND, 100 * WATT);
    integrator_add(&integrator, 5 * SECOND, 100 * WATT);
    integrator_add(&integrator, 6 * SECOND, 100 * WATT);
    assert_int_equal(integrator.energy_uj, 100 * JOULE);
    assert_int_equal(integrator.breaks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_runs_straight_from_one_reading_to_the_next),
        cmocka_unit_test(nothing_less_than_a_microjoule_is_lost),
        cmocka_unit_test(the_largest_power_over_the_longest_gap_does_not_overflow),
        cmocka_unit_test(a_gap_longer_than_the_limit_is_a_break_and_not_integrated),
        cmocka_unit_test(a_clock_that_goes_back_is_a_break),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
