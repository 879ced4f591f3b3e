/* attribution/gpu: boards whose driver counts how long each process kept them busy. */
#include "pipeline_fixture.h"

#include <math.h>

/* What two processes did in the time before. */
static void busy(struct pipeline *pipeline, uint64_t t_us, uint64_t interval_us, uint32_t first,
                 uint64_t first_us, uint32_t second, uint64_t second_us)
{
    const struct sample_busy_process entries[] = {{first, first_us}, {second, second_us}};

    feed(pipeline, (struct sample){.kind = SAMPLE_BUSY,
                                   .t_us = t_us,
                                   .busy = {interval_us, ARRAY_SIZE(entries), entries, false}});
}

static void energy_goes_by_counted_time(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    for (uint64_t t = T0; t < T0 + 10 * SECOND; t += SECOND) {
        LIST(pipeline, t + 1, 10, 11);
        busy(pipeline, t + SECOND / 2, SECOND / 2, 10, 300000, 11, 50000);
        busy(pipeline, t + SECOND - 1, SECOND / 2, 10, 150000, 11, 100000);
        energy(pipeline, 0, t + SECOND, (t + SECOND - T0) * 100);
    }
    pipeline_finish(pipeline);
    assert_int_equal(process_on(pipeline, 0, 10).active_uj, 750 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 11).active_uj, 250 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED), 0);
    pipeline_free(pipeline);
}

static void who_worked_pays_though_no_list_has_it(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 10);
    busy(pipeline, T0 + SECOND - 1, SECOND, 10, 600000, 11, 400000);
    energy(pipeline, 0, T0 + SECOND, 100 * JOULE);
    pipeline_finish(pipeline);
    assert_int_equal(process_on(pipeline, 0, 10).active_uj, 60 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 11).active_uj, 40 * JOULE);
    pipeline_free(pipeline);
}

static void a_process_that_did_nothing_has_no_active_part(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t counter_uj = 0;

    (void)state;
    energy(pipeline, 0, T0, 0);
    for (uint64_t t = T0; t < T0 + 20 * SECOND; t += SECOND) {
        bool works = t >= T0 + 10 * SECOND;

        LIST(pipeline, t + 1, 10, 11);
        utilisation(pipeline, 0, t + 2, works ? 50 : 0);
        busy(pipeline, t + SECOND - 1, SECOND, 10, works ? SECOND / 2 : 0, 11, 0);
        energy(pipeline, 0, t + SECOND, counter_uj += (works ? 90 : 40) * JOULE);
    }
    pipeline_finish(pipeline);
    assert_int_equal(process_on(pipeline, 0, 10).active_uj, 500 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 11).active_uj, 0);
    pipeline_free(pipeline);
}

static void who_is_alone_is_measured(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    for (uint64_t t = T0; t < T0 + 5 * SECOND; t += SECOND) {
        LIST(pipeline, t + 1, 10);
        busy(pipeline, t + SECOND - 1, SECOND, 10, SECOND, 10, 0);
        energy(pipeline, 0, t + SECOND, (t + SECOND - T0) * 100);
    }
    pipeline_finish(pipeline);
    assert_int_equal(process_on(pipeline, 0, 10).measured_uj, 500 * JOULE);
    pipeline_free(pipeline);
}

static void the_utilisation_of_a_process_is_what_was_counted_last(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot_process process;

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 10, 11);
    utilisation(pipeline, 0, T0 + 2, 70);
    busy(pipeline, T0 + 3, SECOND, 10, 725000, 11, 25000);
    process = process_on(pipeline, 0, 10);
    assert_int_equal(process.sm_won_percent * 10 / process.samples, 725);
    process = process_on(pipeline, 0, 11);
    assert_int_equal(process.sm_won_percent * 10 / process.samples, 25);
    pipeline_free(pipeline);
}

/* One draws 300 W while it works and the other 100, in parts that vary. */
static void power_that_differs_is_learned_from_counted_time(void **state)
{
    struct pipeline_options options = default_options();
    double used_j[2] = {0}, counter_j = 0;
    struct pipeline *pipeline;
    double share;

    (void)state;
    options.gpu.attribution = ATTRIBUTION_INTENSITY;
    options.gpu.patience_us = 60 * SECOND;
    pipeline = pipeline_with(options);
    energy(pipeline, 0, T0, 0);
    for (uint64_t i = 1; i <= 600; i++) {
        uint64_t t_us = T0 + i * SECOND / 5;
        /* Idle first, to show the level without work. */
        double a = i < 50 ? 0 : 0.1 + 0.7 * ((i / 20) % 3) / 2.0, b = i < 50 ? 0 : 0.9 - a;

        used_j[0] += 300 * a / 5;
        used_j[1] += 100 * b / 5;
        counter_j += (50 + 300 * a + 100 * b) / 5;
        if (i % 5 == 0)
            LIST(pipeline, t_us, 10, 11);
        utilisation(pipeline, 0, t_us, i < 50 ? 0 : 90);
        busy(pipeline, t_us, SECOND / 5, 10, (uint64_t)(a * 200000), 11, (uint64_t)(b * 200000));
        energy(pipeline, 0, t_us, (uint64_t)(counter_j * 1e6));
    }
    pipeline_finish(pipeline);
    share = (double)process_on(pipeline, 0, 10).active_uj /
            (double)(process_on(pipeline, 0, 10).active_uj + process_on(pipeline, 0, 11).active_uj);
    if (fabs(share - used_j[0] / (used_j[0] + used_j[1])) > 0.02)
        fail_msg("%.3f, not %.3f", share, used_j[0] / (used_j[0] + used_j[1]));
    pipeline_free(pipeline);
}

/* The device shows the same before and after they change places. */
static void energy_goes_by_what_is_counted_now(void **state)
{
    struct pipeline_options options = default_options();
    double used_j[2] = {0}, counter_j = 0, share;
    struct pipeline *pipeline;

    (void)state;
    options.gpu.attribution = ATTRIBUTION_INTENSITY;
    options.gpu.patience_us = 2 * SECOND;
    pipeline = pipeline_with(options);
    energy(pipeline, 0, T0, 0);
    for (uint64_t i = 1; i <= 80; i++) {
        uint64_t t_us = T0 + i * SECOND;
        double a = i <= 10 ? 0 : i <= 30 ? 0.6 : 0.2, b = i <= 10 ? 0 : 0.8 - a;

        used_j[0] += 100 * a;
        used_j[1] += 100 * b;
        counter_j += 20 + 100 * (a + b);
        if (i >= 10)
            LIST(pipeline, t_us - SECOND / 2, 10, 11);
        utilisation(pipeline, 0, t_us, i <= 10 ? 0 : 80);
        busy(pipeline, t_us, SECOND, 10, (uint64_t)(a * 1e6), 11, (uint64_t)(b * 1e6));
        energy(pipeline, 0, t_us, (uint64_t)(counter_j * 1e6));
    }
    pipeline_finish(pipeline);
    share = (double)process_on(pipeline, 0, 10).active_uj /
            (double)(process_on(pipeline, 0, 10).active_uj + process_on(pipeline, 0, 11).active_uj);
    if (fabs(share - used_j[0] / (used_j[0] + used_j[1])) > 0.02)
        fail_msg("%.3f, not %.3f", share, used_j[0] / (used_j[0] + used_j[1]));
    pipeline_free(pipeline);
}

static void counts_beyond_reason_are_bounded(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    for (int i = 0; i < 100; i++)
        busy(pipeline, T0 + 1, UINT64_MAX, 10, UINT64_MAX, 11, UINT64_MAX);
    busy(pipeline, T0 + 2, 0, 0, UINT64_MAX, 11, 0);
    energy(pipeline, 0, T0 + SECOND, 100 * JOULE);
    pipeline_finish(pipeline);
    assert_int_equal(process_on(pipeline, 0, 10).active_uj, 50 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 11).active_uj, 50 * JOULE);
    pipeline_free(pipeline);
}

/* Nothing tells the two apart: each may have used everything, or nothing. */
static void what_was_divided_by_presence_is_all_uncertain(void **state)
{
    const struct sample_busy_process entries[] = {{10, 250000}, {11, 250000}};
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;

    (void)state;
    options.gpu.attribution = ATTRIBUTION_INTENSITY;
    pipeline = pipeline_with(options);
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 10, 11);
    feed(pipeline, (struct sample){.kind = SAMPLE_BUSY,
                                   .t_us = T0 + SECOND - 1,
                                   .busy = {SECOND, ARRAY_SIZE(entries), entries, true}});
    energy(pipeline, 0, T0 + SECOND, 100 * JOULE);
    pipeline_finish(pipeline);
    for (uint32_t pid = 10; pid <= 11; pid++) {
        assert_int_equal(process_on(pipeline, 0, pid).active_uj, 50 * JOULE);
        assert_int_equal(process_on(pipeline, 0, pid).uncertain_uj, 50 * JOULE);
    }
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_goes_by_counted_time),
        cmocka_unit_test(who_worked_pays_though_no_list_has_it),
        cmocka_unit_test(a_process_that_did_nothing_has_no_active_part),
        cmocka_unit_test(who_is_alone_is_measured),
        cmocka_unit_test(the_utilisation_of_a_process_is_what_was_counted_last),
        cmocka_unit_test(power_that_differs_is_learned_from_counted_time),
        cmocka_unit_test(energy_goes_by_what_is_counted_now),
        cmocka_unit_test(counts_beyond_reason_are_bounded),
        cmocka_unit_test(what_was_divided_by_presence_is_all_uncertain),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
