#include "unit.h"

#include "attribution/timeshare.h"
#include "core/macros.h"

enum { CLAIMANTS_MAX = 8 };

struct result {
    uint64_t active_uj[CLAIMANTS_MAX], idle_uj[CLAIMANTS_MAX]; /* by process */
    uint64_t unowned_idle_uj, unattributed_uj;
    bool measured;
};

static struct result settle(const struct timeshare_window *window)
{
    struct share scratch[CLAIMANTS_MAX + 1];
    struct booking bookings[2 * CLAIMANTS_MAX + 2];
    struct result result = {0};
    uint64_t sum = 0;
    size_t count = timeshare_settle(window, scratch, bookings);

    for (size_t i = 0; i < count; i++) {
        const struct booking *booking = &bookings[i];

        sum += booking->energy_uj;
        if (booking->process == LEDGER_NONE && booking->unowned == UNOWNED_IDLE)
            result.unowned_idle_uj += booking->energy_uj;
        else if (booking->process == LEDGER_NONE)
            result.unattributed_uj += booking->energy_uj;
        else if (booking->tier == TIER_ACTIVE)
            result.active_uj[booking->process] += booking->energy_uj;
        else
            result.idle_uj[booking->process] += booking->energy_uj;
        result.measured = booking->method == METHOD_MEASURED;
    }
    assert_int_equal(sum, window->energy_uj);
    return result;
}

/* Two processes of one workload and one of another; samples 3 : 1 : 0. */
static const struct claimant claimants[] = {
    {.process = 0, .workload = 0, .weight = 3, .has_context = true},
    {.process = 1, .workload = 0, .weight = 1, .has_context = true},
    {.process = 2, .workload = 1, .weight = 0, .has_context = true},
};

static struct timeshare_window shared_window(enum idle_policy policy)
{
    return (struct timeshare_window){
        .energy_uj = 1000,
        .idle = {.floor_uj = 400, .step_uj = 200},
        .claimants = claimants,
        .claimant_count = ARRAY_SIZE(claimants),
        .policy = policy,
    };
}

static void active_energy_goes_by_samples_won(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct result result = settle(&window);

    (void)state;
    assert_int_equal(result.active_uj[0], 300);
    assert_int_equal(result.active_uj[1], 100);
    assert_int_equal(result.active_uj[2], 0);
    assert_false(result.measured);
}

static void the_floor_goes_by_samples_and_the_step_equally_over_workloads(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct result result = settle(&window);

    (void)state;
    assert_int_equal(result.idle_uj[0], 300 + 50);
    assert_int_equal(result.idle_uj[1], 100 + 50);
    assert_int_equal(result.idle_uj[2], 100);
    assert_int_equal(result.unowned_idle_uj, 0);
}

static void with_the_equal_policy_the_floor_goes_equally_over_workloads_too(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_EQUAL);
    struct result result = settle(&window);

    (void)state;
    assert_int_equal(result.idle_uj[0] + result.idle_uj[1], 300);
    assert_int_equal(result.idle_uj[2], 300);
}

static void with_no_policy_floor_and_step_are_idle(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_NONE);
    struct result result = settle(&window);

    (void)state;
    assert_int_equal(result.unowned_idle_uj, 600);
    assert_int_equal(result.idle_uj[0] + result.idle_uj[1] + result.idle_uj[2], 0);
    assert_int_equal(result.active_uj[0], 300);
}

static void if_nobody_is_active_the_floor_is_idle_and_the_step_is_still_paid(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct result result;

    (void)state;
    window.nobody_active = true;
    window.energy_uj = 600;
    result = settle(&window);
    assert_int_equal(result.unowned_idle_uj, 400);
    assert_int_equal(result.idle_uj[0] + result.idle_uj[1], 100);
    assert_int_equal(result.idle_uj[2], 100);
}

static void samples_without_a_known_pid_are_unattributed(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct result result;

    (void)state;
    window.unknown_weight = 4;
    result = settle(&window);
    assert_int_equal(result.active_uj[0], 150);
    assert_int_equal(result.unattributed_uj, 200 + 200);
}

static void active_energy_without_any_sample_is_unattributed(void **state)
{
    struct claimant quiet[] = {{.process = 0, .workload = 0, .has_context = true},
                               {.process = 1, .workload = 1, .has_context = true}};
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct result result;

    (void)state;
    window.claimants = quiet;
    window.claimant_count = 2;
    result = settle(&window);
    assert_int_equal(result.unattributed_uj, 400);
    assert_int_equal(result.unowned_idle_uj, 400);
    assert_int_equal(result.idle_uj[0], 100);
}

static void who_is_alone_gets_the_whole_window_as_measured(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct result result;

    (void)state;
    window.claimant_count = 1;
    window.alone = true;
    result = settle(&window);
    assert_int_equal(result.active_uj[0] + result.idle_uj[0], 1000);
    assert_true(result.measured);
}

static void who_is_alone_but_does_not_get_the_floor_is_not_measured(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_NONE);

    (void)state;
    window.claimant_count = 1;
    window.alone = true;
    assert_false(settle(&window).measured);
}

static void a_window_without_anybody_is_conserved(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_EQUAL);
    struct result result;

    (void)state;
    window.claimant_count = 0;
    result = settle(&window);
    assert_int_equal(result.unowned_idle_uj, 600);
    assert_int_equal(result.unattributed_uj, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(active_energy_goes_by_samples_won),
        cmocka_unit_test(the_floor_goes_by_samples_and_the_step_equally_over_workloads),
        cmocka_unit_test(with_the_equal_policy_the_floor_goes_equally_over_workloads_too),
        cmocka_unit_test(with_no_policy_floor_and_step_are_idle),
        cmocka_unit_test(if_nobody_is_active_the_floor_is_idle_and_the_step_is_still_paid),
        cmocka_unit_test(samples_without_a_known_pid_are_unattributed),
        cmocka_unit_test(active_energy_without_any_sample_is_unattributed),
        cmocka_unit_test(who_is_alone_gets_the_whole_window_as_measured),
        cmocka_unit_test(who_is_alone_but_does_not_get_the_floor_is_not_measured),
        cmocka_unit_test(a_window_without_anybody_is_conserved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
