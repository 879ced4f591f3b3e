/* model/counter: a register that wraps and resets becomes a total; power becomes energy. */
#include "unit.h"

#include "core/macros.h"
#include "model/counter.h"
#include "random.h"

#define SECOND USEC_PER_SEC
#define WATT   ((uint64_t)1000000) /* microjoules in a second */
#define JOULE  ((uint64_t)1000000)
#define RANGE  ((uint64_t)262143328850)

static struct counter make(uint64_t range, uint64_t max_per_s)
{
    struct counter counter = {.has_last = false};

    counter_limit(&counter, range, max_per_s);
    return counter;
}

static void assert_state(const struct counter *counter, uint64_t total, uint32_t breaks)
{
    assert_int_equal(counter->total, total);
    assert_int_equal(counter->breaks, breaks);
}

static void the_first_value_is_where_counting_begins(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    assert_true(counter_add(&counter, 5 * SECOND, 123456789));
    assert_state(&counter, 0, 0);
    assert_true(counter_add(&counter, 6 * SECOND, 123456789 + 77 * WATT));
    assert_state(&counter, 77 * WATT, 0);
    assert_true(counter_add(&counter, 7 * SECOND, 123456789 + 77 * WATT));
    assert_state(&counter, 77 * WATT, 0);
}

static void a_wrap_is_undone(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    counter_add(&counter, SECOND, 262143328000);
    counter_add(&counter, 2 * SECOND, 500000);
    assert_state(&counter, 500850, 0);
}

static void the_range_itself_is_a_value_and_the_same_as_zero(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    counter_add(&counter, SECOND, RANGE - 5);
    assert_true(counter_add(&counter, 2 * SECOND, RANGE));
    assert_state(&counter, 5, 0);
    counter_add(&counter, 3 * SECOND, 0);
    assert_state(&counter, 5, 0);
    counter_add(&counter, 4 * SECOND, 7);
    assert_state(&counter, 12, 0);
}

static void a_value_above_the_range_is_a_break_and_no_beginning(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    counter_add(&counter, SECOND, 1000);
    assert_false(counter_add(&counter, 2 * SECOND, RANGE + 1));
    assert_false(counter_add(&counter, 3 * SECOND, UINT64_MAX));
    assert_state(&counter, 0, 1);
    assert_true(counter_add(&counter, 4 * SECOND, 5000));
    assert_state(&counter, 0, 1);
    counter_add(&counter, 5 * SECOND, 5600);
    assert_state(&counter, 600, 1);
}

/* 1000 units at 10 in a second: full after 100 s, not to be trusted after 50. */
static void a_gap_in_which_it_may_have_gone_round_is_a_break(void **state)
{
    struct counter counter = make(1000, 10);

    (void)state;
    assert_int_equal(counter.max_gap_us, 50 * SECOND);
    counter_add(&counter, 0, 900);
    counter_add(&counter, 50 * SECOND, 300);
    assert_state(&counter, 400, 0);
    counter_add(&counter, 100 * SECOND + 1, 310);
    assert_state(&counter, 400, 1);
    counter_add(&counter, 101 * SECOND, 315);
    assert_state(&counter, 405, 1);
}

static void a_step_back_faster_than_it_can_count_is_a_reset(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    counter_add(&counter, SECOND, 100000 * WATT);
    counter_add(&counter, 2 * SECOND, 12);
    assert_state(&counter, 0, 1);
    counter_add(&counter, 3 * SECOND, 12 + 2200 * WATT); /* a tenth of a second is forgiven */
    assert_state(&counter, 2200 * WATT, 1);
    counter_add(&counter, 4 * SECOND, 13 + 4400 * WATT);
    assert_state(&counter, 2200 * WATT, 2);
}

static void a_loss_is_counted_once_and_only_if_there_was_a_count(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    counter_break(&counter);
    assert_state(&counter, 0, 0);
    counter_add(&counter, SECOND, 5);
    counter_break(&counter);
    counter_break(&counter);
    assert_state(&counter, 0, 1);
}

static void a_time_that_goes_back_is_a_break(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    counter_add(&counter, 10 * SECOND, 5);
    counter_add(&counter, 9 * SECOND, 6);
    assert_state(&counter, 0, 1);
}

static void another_range_does_not_make_the_old_value_wrong(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    counter_add(&counter, SECOND, RANGE);
    counter_limit(&counter, 1000 * WATT, 2000 * WATT);
    counter_add(&counter, SECOND + 1, 10);
    assert_state(&counter, 10, 0);
}

static void a_full_total_breaks_instead_of_going_back(void **state)
{
    struct counter counter = make(RANGE, 2000 * WATT);

    (void)state;
    counter.total = UINT64_MAX - 7;
    counter_add(&counter, SECOND, 0);
    counter_add(&counter, 2 * SECOND, 7);
    assert_state(&counter, UINT64_MAX, 0);
    counter_add(&counter, 3 * SECOND, 8);
    assert_state(&counter, UINT64_MAX, 1);
}

/* Counters in registers so wide that they are never full, as those of a node's controller. */
static void what_is_never_full_is_counted_from_its_first_value(void **state)
{
    struct counter counter = make(0, 50000 * WATT);

    (void)state;
    counter_add(&counter, SECOND, 1360621494 * JOULE);
    assert_state(&counter, 0, 0);
    counter_add(&counter, 2 * SECOND, 1360622367 * JOULE);
    counter_add(&counter, 2 * SECOND, 1360622367 * JOULE);
    assert_state(&counter, 873 * JOULE, 0);
    counter_add(&counter, 1000000 * SECOND, 1360622368 * JOULE); /* no gap is too long */
    assert_state(&counter, 874 * JOULE, 0);
}

static void what_is_never_full_and_goes_back_or_jumps_is_a_break(void **state)
{
    struct counter counter = make(0, 50000 * WATT);

    (void)state;
    counter_add(&counter, SECOND, 1000 * JOULE);
    counter_add(&counter, 2 * SECOND, 1100 * JOULE);
    counter_add(&counter, 3 * SECOND, 5 * JOULE); /* restarted */
    counter_add(&counter, 4 * SECOND, 105 * JOULE);
    assert_state(&counter, 200 * JOULE, 1);
    assert_true(counter_add(&counter, 5 * SECOND, UINT64_MAX)); /* nonsense: in, and out again */
    counter_add(&counter, 6 * SECOND, 305 * JOULE);
    counter_add(&counter, 7 * SECOND, 405 * JOULE);
    assert_state(&counter, 300 * JOULE, 3);
    counter_add(&counter, 8 * SECOND, 55405 * JOULE); /* the most, with what is forgiven */
    assert_state(&counter, 55300 * JOULE, 3);
    counter_add(&counter, 9 * SECOND, 110405 * JOULE + 1);
    assert_state(&counter, 55300 * JOULE, 4);
    counter_add(&counter, 5 * SECOND, 110505 * JOULE); /* the clock went back */
    assert_state(&counter, 55300 * JOULE, 5);
}

static void a_known_loss_is_a_break_whatever_the_counter_shows(void **state)
{
    struct counter counter = make(0, 50000 * WATT);

    (void)state;
    counter_add(&counter, SECOND, 100 * JOULE);
    counter_break(&counter);
    counter_add(&counter, 2 * SECOND, 900 * JOULE);
    assert_state(&counter, 0, 1);
    counter_add(&counter, 3 * SECOND, 1000 * JOULE);
    assert_state(&counter, 100 * JOULE, 1);
}

static void random_increments_survive_random_wraps_exactly(void **state)
{
    struct random_source random = {0x9e3779b97f4a7c15};

    (void)state;
    for (int round = 0; round < 200; round++) {
        uint64_t range = 1 + random_u64(&random) % (round % 2 ? 65532610987 : 1000000);
        uint64_t max_per_s = 1 + random_u64(&random) % (2000 * WATT);
        struct counter counter = make(range, max_per_s);
        uint64_t begin = random_u64(&random) % range, truth = begin, t_us = 1;

        counter_add(&counter, t_us, begin);
        for (int i = 0; i < 500; i++) {
            uint64_t step_us = random_u64(&random) % (MIN(counter.max_gap_us, 20 * SECOND) + 1);
            uint64_t most = (uint64_t)((unsigned __int128)max_per_s * step_us / SECOND);

            t_us += step_us;
            truth += random_u64(&random) % (most + 1);
            assert_true(counter_add(&counter, t_us, truth % range));
        }
        assert_state(&counter, truth - begin, 0);
    }
}

static void power_is_linear_between_two_readings(void **state)
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

static void a_reading_before_the_last_one_is_a_break(void **state)
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
        cmocka_unit_test(the_first_value_is_where_counting_begins),
        cmocka_unit_test(a_wrap_is_undone),
        cmocka_unit_test(the_range_itself_is_a_value_and_the_same_as_zero),
        cmocka_unit_test(a_value_above_the_range_is_a_break_and_no_beginning),
        cmocka_unit_test(a_gap_in_which_it_may_have_gone_round_is_a_break),
        cmocka_unit_test(a_step_back_faster_than_it_can_count_is_a_reset),
        cmocka_unit_test(a_loss_is_counted_once_and_only_if_there_was_a_count),
        cmocka_unit_test(a_time_that_goes_back_is_a_break),
        cmocka_unit_test(another_range_does_not_make_the_old_value_wrong),
        cmocka_unit_test(a_full_total_breaks_instead_of_going_back),
        cmocka_unit_test(what_is_never_full_is_counted_from_its_first_value),
        cmocka_unit_test(what_is_never_full_and_goes_back_or_jumps_is_a_break),
        cmocka_unit_test(a_known_loss_is_a_break_whatever_the_counter_shows),
        cmocka_unit_test(random_increments_survive_random_wraps_exactly),
        cmocka_unit_test(power_is_linear_between_two_readings),
        cmocka_unit_test(nothing_less_than_a_microjoule_is_lost),
        cmocka_unit_test(the_largest_power_over_the_longest_gap_does_not_overflow),
        cmocka_unit_test(a_gap_longer_than_the_limit_is_a_break_and_not_integrated),
        cmocka_unit_test(a_reading_before_the_last_one_is_a_break),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
