/* attribution/node/gpu_inclusion: whether a node's meter includes the GPUs, learned from steps. */
#include "unit.h"

#include "attribution/node/gpu_inclusion.h"
#include "core/macros.h"
#include "random.h"

/* Pairs of windows in which the GPUs are at 100 and at 100 + step W in turn; the node follows by
 * `slope`, of which the part `late` comes a window later. */
static void learn_windows(struct gpu_inclusion *inclusion, int count, double step_w, double slope,
                          double late)
{
    for (int i = 0; i < count; i++) {
        double now_w = (i / 2 % 2) * step_w, before_w = i ? ((i - 1) / 2 % 2) * step_w : now_w;

        gpu_inclusion_learn(inclusion, 800 + slope * (now_w + late * (before_w - now_w)),
                            100 + now_w);
    }
}

static bool decides_included(int windows, double step_w, double slope, double late)
{
    struct gpu_inclusion inclusion = {0};

    learn_windows(&inclusion, windows, step_w, slope, late);
    return !inclusion.excluded;
}

static void steps_decide_by_their_slope(void **state)
{
    (void)state;
    assert_true(decides_included(8, 300, 1.15, 0)); /* the power supplies lose in proportion */
    assert_true(decides_included(8, 300, 0.71, 0));
    assert_true(decides_included(8, 300, 0.5, 0)); /* undecided */
    assert_false(decides_included(8, 300, 0.29, 0));
    assert_false(decides_included(8, 300, 0, 0));
    assert_false(decides_included(8, 300, -0.1, 0));
}

static void three_steps_are_needed(void **state)
{
    (void)state;
    assert_true(decides_included(7, 300, 0, 0));
    assert_false(decides_included(8, 300, 0, 0));
}

static void small_steps_are_not_looked_at(void **state)
{
    (void)state;
    assert_true(decides_included(80, 100, 0, 0));
    assert_false(decides_included(80, 101, 0, 0));
}

static void a_meter_that_is_late_is_not_one_without_gpus(void **state)
{
    struct gpu_inclusion inclusion = {0};

    (void)state;
    learn_windows(&inclusion, 16, 300, 0, 0);
    assert_true(inclusion.excluded);
    learn_windows(&inclusion, 16, 300, 1, 0.9);
    assert_false(inclusion.excluded);
    assert_false(decides_included(16, 300, 0.2, 0.9));
}

static void a_decision_stays_until_the_other_is_clear(void **state)
{
    struct gpu_inclusion inclusion = {0};

    (void)state;
    learn_windows(&inclusion, 16, 300, 0, 0);
    assert_true(inclusion.excluded);
    learn_windows(&inclusion, 40, 300, 0.5, 0);
    assert_true(inclusion.excluded);
    learn_windows(&inclusion, 40, 300, 1, 0);
    assert_false(inclusion.excluded);
}

static void the_past_is_forgotten(void **state)
{
    struct gpu_inclusion inclusion = {0};

    (void)state;
    learn_windows(&inclusion, 1000, 300, 0, 0);
    assert_true(inclusion.excluded);
    learn_windows(&inclusion, GPU_INCLUSION_STEPS + 2, 300, 1, 0); /* another firmware */
    assert_false(inclusion.excluded);
}

static void power_that_turns_with_every_window_tells_nothing(void **state)
{
    struct gpu_inclusion inclusion = {0};

    (void)state;
    for (int i = 0; i < 100; i++) /* but for a watt, by which 50 W cannot be explained */
        gpu_inclusion_learn(&inclusion, 800 - i % 3 * 50, 100 + i % 2 * 300 + i % 3);
    assert_false(inclusion.excluded);
}

static void nothing_is_a_step_over_an_interruption(void **state)
{
    struct gpu_inclusion inclusion = {0};

    (void)state;
    for (int i = 0; i < 100; i++) {
        gpu_inclusion_learn(&inclusion, 800, 100 + i / 2 % 2 * 300);
        if (i % 2)
            gpu_inclusion_interrupt(&inclusion);
    }
    assert_false(inclusion.excluded);
}

/* Loads that change every 13 s in the mean, in windows of 30 s. */
static void random_loads_are_told_apart_whatever_the_meter_is_late(void **state)
{
    (void)state;
    for (int late_s = 0; late_s <= 10; late_s += 5)
        for (int included = 0; included < 2; included++) {
            struct random_source random = {.state = 77};
            struct gpu_inclusion inclusion = {0};
            double load_w = 300, history_w[3600];

            for (int t = 0; t < 3600; t++) {
                if (random_u64(&random) % 13 == 0)
                    load_w = 80 + (double)(random_u64(&random) % 600);
                history_w[t] = load_w;
            }
            for (int t = 30; t < 3600; t += 30) {
                double node_w = 500, gpus_w = 0;

                for (int s = t; s < t + 30; s++) {
                    gpus_w += history_w[s] / 30;
                    node_w += included * history_w[s - late_s] / 30;
                }
                gpu_inclusion_learn(&inclusion, node_w, gpus_w);
                if (included || t > 1800) /* never wrong, and right by half of the time */
                    assert_int_equal(inclusion.excluded, !included);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_decide_by_their_slope),
        cmocka_unit_test(three_steps_are_needed),
        cmocka_unit_test(small_steps_are_not_looked_at),
        cmocka_unit_test(a_meter_that_is_late_is_not_one_without_gpus),
        cmocka_unit_test(a_decision_stays_until_the_other_is_clear),
        cmocka_unit_test(the_past_is_forgotten),
        cmocka_unit_test(power_that_turns_with_every_window_tells_nothing),
        cmocka_unit_test(nothing_is_a_step_over_an_interruption),
        cmocka_unit_test(random_loads_are_told_apart_whatever_the_meter_is_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
