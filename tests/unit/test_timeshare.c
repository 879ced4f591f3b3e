#include "unit.h"

#include "attribution/gpu/timeshare.h"
#include "core/macros.h"

enum { CLAIMANTS_MAX = 8 };

struct result {
    uint64_t active_uj[CLAIMANTS_MAX], idle_uj[CLAIMANTS_MAX]; /* by process */
    uint64_t known_uj[CLAIMANTS_MAX], uncertain_uj[CLAIMANTS_MAX];
    uint64_t unowned_idle_uj, unattributed_uj;
    bool measured;
};

static struct result settle(const struct timeshare_window *window)
{
    struct share shares[2 * CLAIMANTS_MAX + 2];
    struct booking items[2 * CLAIMANTS_MAX + 2];
    struct bookings bookings = {items, shares, 0, 2 * CLAIMANTS_MAX + 2};
    struct result result = {0};
    uint64_t sum = 0;

    timeshare_settle(window, &bookings);
    for (size_t i = 0; i < bookings.count; i++) {
        const struct booking *booking = &items[i];

        if (booking->energy_uj == 0)
            continue; /* the ledger ignores it */
        sum += booking->energy_uj;
        assert_true(booking->known_uj <= booking->energy_uj);
        assert_true(booking->uncertain_uj <= booking->energy_uj);
        if (booking->process != LEDGER_NONE) {
            result.known_uj[booking->process] += booking->known_uj;
            result.uncertain_uj[booking->process] += booking->uncertain_uj;
            result.measured = booking->method == METHOD_MEASURED;
        }
        if (booking->process == LEDGER_NONE && booking->unowned == UNOWNED_IDLE)
            result.unowned_idle_uj += booking->energy_uj;
        else if (booking->process == LEDGER_NONE)
            result.unattributed_uj += booking->energy_uj;
        else if (booking->tier == TIER_ACTIVE)
            result.active_uj[booking->process] += booking->energy_uj;
        else
            result.idle_uj[booking->process] += booking->energy_uj;
    }
    assert_int_equal(sum, window->energy_uj);
    return result;
}

/* Two processes of one workload and one of another; samples 3 : 1 : 0. */
static const struct claimant claimants[] = {
    {.process = 0, .workload = 0, .weight = 3, .active_weight = 3, .has_context = true},
    {.process = 1, .workload = 0, .weight = 1, .active_weight = 1, .has_context = true},
    {.process = 2, .workload = 1, .weight = 0, .active_weight = 0, .has_context = true},
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

/* Two processes won as many samples each, but the second is known to draw three times as much. */
static const struct claimant learned[] = {
    {.process = 0,
     .weight = 2,
     .active_weight = 1,
     .confidence = 500000,
     .error = 90001,
     .has_context = true},
    {.process = 1,
     .weight = 2,
     .active_weight = 3,
     .confidence = 333333,
     .error = 30000,
     .has_context = true},
};

static struct timeshare_window learned_window(uint64_t energy_uj)
{
    return (struct timeshare_window){
        .energy_uj = energy_uj,
        .claimants = learned,
        .claimant_count = ARRAY_SIZE(learned),
        .policy = IDLE_POLICY_PROPORTIONAL,
    };
}

static void what_was_learned_divides_the_active_energy_and_not_the_floor(void **state)
{
    struct timeshare_window window = learned_window(1000);
    struct result result;

    (void)state;
    window.idle.floor_uj = 600;
    result = settle(&window);
    assert_int_equal(result.active_uj[0], 100);
    assert_int_equal(result.active_uj[1], 300);
    assert_int_equal(result.idle_uj[0], 300);
    assert_int_equal(result.idle_uj[1], 300);
}

static void shared_energy_is_known_by_its_confidence_rounded_down(void **state)
{
    static const struct {
        uint64_t energy_uj, known_uj[2];
    } cases[] = {
        {4, {0, 0}},                                     /* 1 x 0.5, 3 x 0.333333 */
        {8, {1, 1}},                                     /* 2 x 0.5, 6 x 0.333333 */
        {4000000, {500000, 999999}},                     /* 1 J x 0.5, 3 J x 0.333333 */
        {4ULL << 60, {1ULL << 59, 1152920351685342369}}, /* wider than 64 bits */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct timeshare_window window = learned_window(cases[i].energy_uj);
        struct result result = settle(&window);

        assert_int_equal(result.known_uj[0], cases[i].known_uj[0]);
        assert_int_equal(result.known_uj[1], cases[i].known_uj[1]);
    }
}

static void a_share_of_the_idle_level_has_the_confidence_of_its_process(void **state)
{
    struct timeshare_window window = learned_window(1000);
    struct result result;

    (void)state;
    window.idle.floor_uj = 1000;
    result = settle(&window);
    assert_int_equal(result.idle_uj[0], 500);
    assert_int_equal(result.known_uj[0], 250);
}

static void active_energy_is_uncertain_by_the_error_of_its_share_rounded_up(void **state)
{
    static const struct {
        uint64_t energy_uj, uncertain_uj[2];
    } cases[] = {
        {4, {1, 1}},                                            /* 1 x 0.090001, 3 x 0.03 */
        {4000000, {90001, 90000}},                              /* 1 J and 3 J of the same */
        {4ULL << 60, {103764088336120835, 103762935414616228}}, /* wider than 64 bits */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct timeshare_window window = learned_window(cases[i].energy_uj);
        struct result result = settle(&window);

        assert_int_equal(result.uncertain_uj[0], cases[i].uncertain_uj[0]);
        assert_int_equal(result.uncertain_uj[1], cases[i].uncertain_uj[1]);
    }
}

static void a_share_of_the_idle_level_is_not_uncertain(void **state)
{
    struct timeshare_window window = learned_window(1004000000);
    struct result result;

    (void)state;
    window.idle.floor_uj = 1000000000;
    result = settle(&window);
    assert_int_equal(result.idle_uj[0], 500000000);
    assert_int_equal(result.uncertain_uj[0], 90001);
}

static void what_is_inferred_is_uncertain_with_its_share_of_the_idle_level(void **state)
{
    struct claimant guessed[] = {learned[0], learned[1]};
    struct timeshare_window window = learned_window(4400);
    struct result result;

    (void)state;
    window.idle.floor_uj = 400;
    guessed[1].inferred = true;
    window.claimants = guessed;
    result = settle(&window);
    assert_int_equal(result.uncertain_uj[0], 91);
    assert_int_equal(result.uncertain_uj[1], 3000 + 200);
}

static void a_time_share_is_not_known(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct result result = settle(&window);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(claimants); i++)
        assert_int_equal(result.known_uj[i], 0);
}

static void what_is_inferred_is_not_known_however_confident_the_shares_are(void **state)
{
    struct claimant guessed[] = {learned[0], learned[1]};
    struct timeshare_window window = learned_window(4000);
    struct result result;

    (void)state;
    guessed[1].inferred = true;
    window.claimants = guessed;
    result = settle(&window);
    assert_int_equal(result.known_uj[0], 500);
    assert_int_equal(result.known_uj[1], 0);
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

static void in_an_inactive_window_the_floor_is_idle_and_the_step_is_still_charged(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct result result;

    (void)state;
    window.is_inactive = true;
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

static void a_process_alone_gets_the_whole_window_as_measured(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_PROPORTIONAL);
    struct claimant alone = claimants[0];
    struct result result;

    (void)state;
    alone.error = 500000;
    window.claimants = &alone;
    window.claimant_count = 1;
    window.is_alone = true;
    result = settle(&window);
    assert_int_equal(result.active_uj[0] + result.idle_uj[0], 1000);
    assert_int_equal(result.known_uj[0], 1000);  /* whatever the confidence in its share is */
    assert_int_equal(result.uncertain_uj[0], 0); /* and its error */
    assert_true(result.measured);
}

static void a_process_alone_without_the_floor_is_not_measured(void **state)
{
    struct timeshare_window window = shared_window(IDLE_POLICY_NONE);

    (void)state;
    window.claimant_count = 1;
    window.is_alone = true;
    assert_false(settle(&window).measured);
    assert_int_equal(settle(&window).known_uj[0], 0);
}

static void a_window_without_claimants_is_conserved(void **state)
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
        cmocka_unit_test(what_was_learned_divides_the_active_energy_and_not_the_floor),
        cmocka_unit_test(shared_energy_is_known_by_its_confidence_rounded_down),
        cmocka_unit_test(a_share_of_the_idle_level_has_the_confidence_of_its_process),
        cmocka_unit_test(active_energy_is_uncertain_by_the_error_of_its_share_rounded_up),
        cmocka_unit_test(a_share_of_the_idle_level_is_not_uncertain),
        cmocka_unit_test(what_is_inferred_is_uncertain_with_its_share_of_the_idle_level),
        cmocka_unit_test(a_time_share_is_not_known),
        cmocka_unit_test(what_is_inferred_is_not_known_however_confident_the_shares_are),
        cmocka_unit_test(the_floor_goes_by_samples_and_the_step_equally_over_workloads),
        cmocka_unit_test(with_the_equal_policy_the_floor_goes_equally_over_workloads_too),
        cmocka_unit_test(with_no_policy_floor_and_step_are_idle),
        cmocka_unit_test(in_an_inactive_window_the_floor_is_idle_and_the_step_is_still_charged),
        cmocka_unit_test(samples_without_a_known_pid_are_unattributed),
        cmocka_unit_test(active_energy_without_any_sample_is_unattributed),
        cmocka_unit_test(a_process_alone_gets_the_whole_window_as_measured),
        cmocka_unit_test(a_process_alone_without_the_floor_is_not_measured),
        cmocka_unit_test(a_window_without_claimants_is_conserved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
