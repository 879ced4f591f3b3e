/* Counter, windows, idle and samples: scenarios through the whole pipeline. */
#include "pipeline_fixture.h"

/* Samples of two processes at 5 Hz, four of five won by pid 1. */
static void labels_80_to_20(struct pipeline *pipeline, uint64_t from_us, uint64_t until_us)
{
    int i = 0;

    for (uint64_t t = from_us + TICK; t <= until_us; t += 2 * TICK, i++)
        label(pipeline, 0, t, i % 5 == 4 ? 2 : 1, t, 99);
}

static void seventy_watts_for_ten_seconds_at_80_to_20_are_560_and_140_joules(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    LIST(pipeline, T0, 1, 2);
    energy(pipeline, 0, T0, 5 * JOULE);
    for (uint64_t s = 0; s < 10; s++) {
        labels_80_to_20(pipeline, T0 + s * SECOND, T0 + (s + 1) * SECOND);
        LIST(pipeline, T0 + s * SECOND + TICK, 1, 2);
        ticks(pipeline, 0, T0 + s * SECOND, T0 + (s + 1) * SECOND, (5 + s * 70) * JOULE, 70);
    }
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), 560 * JOULE);
    assert_int_equal(process_uj(pipeline, 2), 140 * JOULE);
    assert_int_equal(meter_uj(pipeline, 0), 700 * JOULE);
    pipeline_free(pipeline);
}

static void a_process_that_is_alone_is_measured_and_one_that_shares_is_not(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 1);
    label(pipeline, 0, T0 + 2 * TICK, 1, T0 + TICK, 99);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 300);
    LIST(pipeline, T0 + SECOND + 1, 1, 2);
    label(pipeline, 0, T0 + SECOND + 2 * TICK, 1, T0 + SECOND + TICK, 99);
    ticks(pipeline, 0, T0 + SECOND, T0 + 2 * SECOND, 300 * JOULE, 300);
    pipeline_finish(pipeline);
    assert_int_equal(process_on(pipeline, 0, 1).measured_uj, 300 * JOULE);
    assert_int_equal(process_uj(pipeline, 1), 600 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 2).measured_uj, 0);
    pipeline_free(pipeline);
}

static void a_window_closes_on_a_tick_about_once_a_second(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    ticks(pipeline, 0, T0, T0 + 9 * TICK, 0, 100);
    assert_int_equal(pipeline->gpus[0]->window_count, 1);
    energy(pipeline, 0, T0 + SECOND - 10000, 90 * JOULE); /* the same value: no tick */
    assert_int_equal(pipeline->gpus[0]->window_count, 1);
    energy(pipeline, 0, T0 + SECOND, 100 * JOULE);
    assert_int_equal(pipeline->gpus[0]->window_count, 2);
    pipeline_free(pipeline);
}

static void what_is_read_is_pending_until_its_window_is_settled(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    ticks(pipeline, 0, T0, T0 + SECOND + 9 * TICK, 0, 100);
    assert_int_equal(gpu_pending_uj(pipeline->gpus[0]), 190 * JOULE);
    assert_int_equal(meter_uj(pipeline, 0), 0);
    ticks(pipeline, 0, T0 + SECOND + 9 * TICK, T0 + 2 * SECOND, 190 * JOULE, 100);
    assert_int_equal(meter_uj(pipeline, 0), 100 * JOULE);
    assert_int_equal(gpu_pending_uj(pipeline->gpus[0]), 100 * JOULE);
    pipeline_finish(pipeline);
    assert_int_equal(meter_uj(pipeline, 0), 200 * JOULE);
    assert_int_equal(gpu_pending_uj(pipeline->gpus[0]), 0);
    pipeline_free(pipeline);
}

static void after_a_reset_the_new_value_is_a_gap_and_the_window_before_is_kept(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 1000 * JOULE);
    ticks(pipeline, 0, T0, T0 + 5 * TICK, 1000 * JOULE, 100);
    energy(pipeline, 0, T0 + SECOND, 30 * JOULE); /* counted from 0 since the reset */
    ticks(pipeline, 0, T0 + SECOND, T0 + 2 * SECOND, 30 * JOULE, 100);
    pipeline_finish(pipeline);
    assert_int_equal(pipeline->gpus[0]->resets, 1);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), 30 * JOULE);
    assert_int_equal(meter_uj(pipeline, 0), (50 + 30 + 100) * JOULE);
    pipeline_free(pipeline);
}

static void a_value_after_a_reset_that_the_board_cannot_have_used_is_not_believed(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 9000 * JOULE);
    energy(pipeline, 0, T0 + SECOND, 8000 * JOULE);
    ticks(pipeline, 0, T0 + SECOND, T0 + 2 * SECOND, 8000 * JOULE, 100);
    pipeline_finish(pipeline);
    assert_int_equal(pipeline->gpus[0]->resets, 1);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), 0);
    assert_int_equal(meter_uj(pipeline, 0), 100 * JOULE);
    pipeline_free(pipeline);
}

static void a_jump_of_more_than_the_board_can_use_is_not_believed(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    energy(pipeline, 0, T0 + SECOND, 1000000 * JOULE);
    assert_int_equal(pipeline->gpus[0]->resets, 1);
    energy(pipeline, 0, T0 + 2 * SECOND,
           1000000 * JOULE + 1040 * JOULE); /* the limit is 700 W; 1.5 x 700: just believed */
    pipeline_finish(pipeline);
    assert_int_equal(pipeline->gpus[0]->resets, 1);
    assert_int_equal(meter_uj(pipeline, 0), 1040 * JOULE);
    pipeline_free(pipeline);
}

static void energy_used_while_nothing_was_read_is_a_gap(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    LIST(pipeline, T0, 1);
    energy(pipeline, 0, T0, 0);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    energy(pipeline, 0, T0 + 61 * SECOND, 6100 * JOULE);
    pipeline_finish(pipeline);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), 6000 * JOULE);
    assert_int_equal(meter_uj(pipeline, 0), 6100 * JOULE);
    assert_int_equal(pipeline->gpus[0]->resets, 0);
    pipeline_free(pipeline);
}

static void a_clock_that_is_set_back_loses_no_joule(void **state)
{
    static const uint64_t steps_us[] = {SECOND / 2, 5 * SECOND, 7200 * SECOND};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(steps_us); i++) {
        struct pipeline *pipeline = pipeline_with(default_options());
        uint64_t back_us = T0 + 60 * SECOND - steps_us[i], counter_uj;

        LIST(pipeline, T0, 1);
        energy(pipeline, 0, T0, 0);
        counter_uj = ticks(pipeline, 0, T0, T0 + 60 * SECOND, 0, 600);
        energy(pipeline, 0, back_us, counter_uj + 60 * JOULE);
        LIST(pipeline, back_us, 1);
        ticks(pipeline, 0, back_us, back_us + 60 * SECOND, counter_uj + 60 * JOULE, 600);
        pipeline_finish(pipeline);
        assert_int_equal(meter_uj(pipeline, 0), counter_uj + (60 + 36000) * JOULE);
        assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), 60 * JOULE);
        assert_int_equal(pipeline->gpus[0]->resets, 0);
        pipeline_free(pipeline);
    }
}

static void samples_after_the_clock_was_set_back_count(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t back_us = T0 - 3600 * SECOND;

    (void)state;
    LIST(pipeline, T0, 1, 2);
    energy(pipeline, 0, T0, 0);
    ticks(pipeline, 0, T0, T0 + 10 * SECOND, 0, 70);
    energy(pipeline, 0, back_us, 700 * JOULE);
    LIST(pipeline, back_us, 1, 2);
    labels_80_to_20(pipeline, back_us, back_us + 10 * SECOND);
    ticks(pipeline, 0, back_us, back_us + 10 * SECOND, 700 * JOULE, 70);
    pipeline_finish(pipeline);
    assert_int_equal(pipeline->gpus[0]->samples.late, 0);
    assert_true(process_uj(pipeline, 1) > process_uj(pipeline, 2));
    pipeline_free(pipeline);
}

static void without_context_and_utilisation_everything_is_idle(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    LIST(pipeline, T0, 0);
    energy(pipeline, 0, T0, 0);
    utilisation(pipeline, 0, T0 + 1, 0);
    ticks(pipeline, 0, T0, T0 + 2 * SECOND, 0, 77);
    ticks(pipeline, 0, T0 + 2 * SECOND, T0 + 4 * SECOND, 154 * JOULE, 123); /* after work */
    pipeline_finish(pipeline);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_IDLE), 400 * JOULE);
    pipeline_free(pipeline);
}

/* 77 W without a context, 122 W with one; the counter stands at 398 J at T0 + 4 s. */
static void learn_levels(struct pipeline *pipeline, const uint32_t pids[4])
{
    uint64_t counter_uj = 0;

    LIST(pipeline, T0, 0);
    energy(pipeline, 0, T0, 0);
    for (uint64_t s = 0; s < 4; s++) {
        uint64_t from_us = T0 + s * SECOND;

        if (s == 2)
            list(pipeline, 0, from_us, SAMPLE_LIST_COMPUTE, pids); /* in the third window */
        utilisation(pipeline, 0, from_us + 1, 0);
        counter_uj = ticks(pipeline, 0, from_us, from_us + SECOND, counter_uj, s < 2 ? 77 : 122);
    }
}

static void the_context_step_is_shared_equally_over_workloads_and_not_over_pids(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    identify(pipeline, 0, T0, 1, 0, "/job", "a");
    identify(pipeline, 0, T0, 2, 0, "/job", "b");
    identify(pipeline, 0, T0, 3, 0, "/other", "c");
    learn_levels(pipeline, (const uint32_t[4]){1, 2, 3});
    pipeline_finish(pipeline);
    /* The window in which the contexts came teaches nothing: one window with a step of 45 W. */
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/job"),
                     workload_uj(pipeline, WORKLOAD_UNIT, "/other"));
    assert_int_equal(process_on(pipeline, 0, 1).idle_uj, process_on(pipeline, 0, 2).idle_uj);
    assert_int_equal(process_on(pipeline, 0, 3).idle_uj, 22500000);
    pipeline_free(pipeline);
}

static void what_lies_above_the_learned_level_is_active(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    learn_levels(pipeline, (const uint32_t[4]){1});
    LIST(pipeline, T0 + 4 * SECOND + 1, 1);
    label(pipeline, 0, T0 + 5 * SECOND, 1, T0 + 4 * SECOND + TICK, 99);
    ticks(pipeline, 0, T0 + 4 * SECOND, T0 + 5 * SECOND, 398 * JOULE, 400);
    pipeline_finish(pipeline);
    /* Before the level was known, the context's own 45 W were active too, for one window. */
    assert_int_equal(process_on(pipeline, 0, 1).active_uj, (45 + 400 - 122) * JOULE);
    pipeline_free(pipeline);
}

/* The driver has neither samples nor a utilisation. */
static void without_utilisation_the_only_process_is_charged_or_several_equally(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct pipeline *two = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    energy(two, 0, T0, 0);
    for (uint64_t s = 0; s < 4; s++) {
        LIST(pipeline, T0 + s * SECOND + 1, 1);
        ticks(pipeline, 0, T0 + s * SECOND, T0 + (s + 1) * SECOND, s * 100 * JOULE, 100);
        LIST(two, T0 + s * SECOND + 1, 1, 2);
        ticks(two, 0, T0 + s * SECOND, T0 + (s + 1) * SECOND, s * 100 * JOULE, 100);
    }
    pipeline_finish(pipeline);
    pipeline_finish(two);
    assert_int_equal(process_uj(pipeline, 1), 400 * JOULE);
    assert_int_equal(unowned_uj(two, UNOWNED_IDLE), 0);
    assert_int_equal(unowned_uj(two, UNOWNED_UNATTRIBUTED), 0);
    assert_int_equal(process_uj(two, 1), 200 * JOULE);
    assert_int_equal(process_uj(two, 2), 200 * JOULE);
    pipeline_free(pipeline);
    pipeline_free(two);
}

static void in_a_busy_window_without_samples_the_last_shares_hold_for_five_seconds(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t counter = 0;

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 1, 2);
    label(pipeline, 0, T0 + 3 * TICK, 1, T0 + TICK, 75);
    label(pipeline, 0, T0 + 3 * TICK, 2, T0 + 2 * TICK, 25);
    for (uint64_t s = 0; s < 8; s++) {
        utilisation(pipeline, 0, T0 + s * SECOND + 1, 50);
        counter = ticks(pipeline, 0, T0 + s * SECOND, T0 + (s + 1) * SECOND, counter, 100);
    }
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), 6 * 75 * JOULE);
    assert_int_equal(process_uj(pipeline, 2), 6 * 25 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED), 2 * 100 * JOULE);
    pipeline_free(pipeline);
}

static void a_sample_counts_in_the_window_of_its_own_time_even_if_it_comes_after_it_closed(
    void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    LIST(pipeline, T0, 1, 2);
    energy(pipeline, 0, T0, 0);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    label(pipeline, 0, T0 + SECOND + TICK, 1, T0 + SECOND, 99); /* at its very end */
    label(pipeline, 0, T0 + SECOND + 2 * TICK, 2, T0 + SECOND + 1, 99);
    ticks(pipeline, 0, T0 + SECOND, T0 + 2 * SECOND, 100 * JOULE, 300);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), 100 * JOULE);
    assert_int_equal(process_uj(pipeline, 2), 300 * JOULE);
    pipeline_free(pipeline);
}

static void a_sample_of_an_unknown_pid_is_unattributed(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    LIST(pipeline, T0, 1);
    energy(pipeline, 0, T0, 0);
    label(pipeline, 0, T0 + 3 * TICK, 1, T0 + TICK, 50);
    label(pipeline, 0, T0 + 3 * TICK, 99, T0 + 2 * TICK, 50);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), 50 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED), 50 * JOULE);
    pipeline_free(pipeline);
}

static void a_pid_is_believed_if_a_list_names_it_within_two_seconds_or_proc_has_it(void **state)
{
    static const struct {
        uint64_t listed_us; /* 0: never */
        bool in_proc, believed;
    } cases[] = {
        {T0 + 3 * SECOND - 1, false, true},        /* listed before the sample */
        {T0 + 5 * SECOND + 2 * TICK, false, true}, /* after it, before settlement */
        {T0 + SECOND, false, false},
        {0, false, false},
        {0, true, true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pipeline *pipeline = pipeline_with(default_options());
        uint64_t counter = 0;

        energy(pipeline, 0, T0, 0);
        for (uint64_t t = T0; t < T0 + 6 * SECOND; t += TICK) {
            if (cases[i].listed_us > t && cases[i].listed_us <= t + TICK) {
                LIST(pipeline, cases[i].listed_us, 7);
                LIST(pipeline, cases[i].listed_us, 0); /* and gone again */
            }
            if (t == T0 + 4 * SECOND + 5 * TICK)
                feed(pipeline, (struct sample){.kind = SAMPLE_LABEL,
                                               .t_us = t,
                                               .label = {.pid = 7,
                                                         .at_us = t,
                                                         .sm_percent = 99,
                                                         .in_proc = cases[i].in_proc}});
            counter = ticks(pipeline, 0, t, t + TICK, counter, 100);
        }
        pipeline_finish(pipeline);
        assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED) == 0, cases[i].believed);
        if (cases[i].believed)
            assert_true(process_uj(pipeline, 7) > 0);
        pipeline_free(pipeline);
    }
}

static void a_process_that_ends_late_in_a_window_without_samples_is_still_charged(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 1);
    label(pipeline, 0, T0 + 2 * TICK, 1, T0 + TICK, 99);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    /* It is gone at 0.8 s of the next window, and the driver shows no sample of it any more. */
    utilisation(pipeline, 0, T0 + SECOND + TICK, 90);
    LIST(pipeline, T0 + SECOND + 8 * TICK, 0);
    ticks(pipeline, 0, T0 + SECOND, T0 + 2 * SECOND, 100 * JOULE, 100);
    /* In the window after that no process is listed from the start, but the board was busy. */
    utilisation(pipeline, 0, T0 + 2 * SECOND + TICK, 10);
    LIST(pipeline, T0 + 2 * SECOND + TICK, 0);
    ticks(pipeline, 0, T0 + 2 * SECOND, T0 + 3 * SECOND, 200 * JOULE, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), 200 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED), 100 * JOULE);
    pipeline_free(pipeline);
}

static void a_process_that_left_right_after_a_busy_window_began_is_charged_if_no_other_can_be(
    void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    LIST(pipeline, T0, 0);
    energy(pipeline, 0, T0, 0);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 77); /* idle: the floor */
    LIST(pipeline, T0 + SECOND + 1, 1);
    label(pipeline, 0, T0 + SECOND + 2 * TICK, 1, T0 + SECOND + TICK, 99);
    ticks(pipeline, 0, T0 + SECOND, T0 + 2 * SECOND, 77 * JOULE, 300);
    utilisation(pipeline, 0, T0 + 2 * SECOND + TICK, 20);
    LIST(pipeline, T0 + 2 * SECOND + 2 * TICK, 0);
    ticks(pipeline, 0, T0 + 2 * SECOND, T0 + 3 * SECOND, 377 * JOULE, 120);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), (300 + 120) * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED), 0);
    pipeline_free(pipeline);
}

static void under_mps_the_samples_of_the_server_belong_to_its_clients(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 900, 1, 2);
    list(pipeline, 0, T0 + 1, SAMPLE_LIST_MPS, (const uint32_t[4]){1, 2});
    label(pipeline, 0, T0 + 2 * TICK, 900, T0 + TICK, 99);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), 50 * JOULE);
    assert_int_equal(process_uj(pipeline, 2), 50 * JOULE);
    assert_int_equal(process_uj(pipeline, 900), 0);
    assert_int_equal(process_on(pipeline, 0, 1).measured_uj, 0);
    assert_int_equal(process_on(pipeline, 0, 1).valid & SNAPSHOT_PROCESS_UTILISATION, 0);
    pipeline_free(pipeline);
}

/* Between its clients a server is still listed, and the board draws as little as without it. */
static void an_mps_server_alone_is_no_context(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    identify(pipeline, 0, T0, 900, 0, "/mps", "nvidia-cuda-mps-server");
    LIST(pipeline, T0, 900, 1);
    list(pipeline, 0, T0, SAMPLE_LIST_MPS, (const uint32_t[4]){1});
    energy(pipeline, 0, T0, 0);
    utilisation(pipeline, 0, T0 + TICK, 0);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 120); /* the client's context, at rest */
    list(pipeline, 0, T0 + SECOND + 1, SAMPLE_LIST_MPS, (const uint32_t[4]){0});
    LIST(pipeline, T0 + SECOND + 1, 900);
    for (uint64_t t = T0 + SECOND; t < T0 + 4 * SECOND; t += SECOND) {
        utilisation(pipeline, 0, t + TICK, 0);
        ticks(pipeline, 0, t, t + SECOND, 120 * JOULE + (t - T0 - SECOND) * 77, 77);
    }
    pipeline_finish(pipeline);
    assert_int_equal(pipeline->gpus[0]->idle.with_context.level_mw, 120000);
    assert_int_equal(pipeline->gpus[0]->idle.without_context.level_mw, 77000);
    assert_int_equal(process_uj(pipeline, 900), 0);
    pipeline_free(pipeline);
}

/* It is a mean over up to a second. */
static void utilisation_that_outlasts_the_last_process_does_not_lower_the_level_with_a_context(
    void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    LIST(pipeline, T0, 1);
    energy(pipeline, 0, T0, 0);
    utilisation(pipeline, 0, T0 + TICK, 0);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 120); /* at rest */
    LIST(pipeline, T0 + SECOND + 1, 0);
    utilisation(pipeline, 0, T0 + SECOND + TICK, 20);
    ticks(pipeline, 0, T0 + SECOND, T0 + 2 * SECOND, 120 * JOULE, 77);
    LIST(pipeline, T0 + 2 * SECOND, 0);
    utilisation(pipeline, 0, T0 + 2 * SECOND + TICK, 20);
    ticks(pipeline, 0, T0 + 2 * SECOND, T0 + 3 * SECOND, 197 * JOULE, 77);
    pipeline_finish(pipeline);
    assert_int_equal(pipeline->gpus[0]->idle.with_context.level_mw, 120000);
    pipeline_free(pipeline);
}

static void read_idle_gpm(struct pipeline *pipeline, uint64_t t_us)
{
    feed(pipeline, (struct sample){.kind = SAMPLE_GPM,
                                   .t_us = t_us,
                                   .gpm = {.valid = 0x3ff, .instance = SAMPLE_NO_INSTANCE}});
}

static void a_second_in_which_a_process_came_shows_no_idle_level(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;

    (void)state;
    options.gpu.attribution = ATTRIBUTION_INTENSITY;
    pipeline = pipeline_with(options);
    energy(pipeline, 0, T0, 0);
    for (uint64_t s = 0; s < 6; s++) {
        uint64_t end_us = T0 + (s + 1) * SECOND;

        if (s < 2) /* the process is listed, for the first time, at the end of the third second */
            LIST(pipeline, end_us, 0);
        else
            LIST(pipeline, end_us, 1);
        utilisation(pipeline, 0, end_us, 0);
        read_idle_gpm(pipeline, end_us);
        energy(pipeline, 0, end_us, (s < 3 ? (s + 1) * 77 : 3 * 77 + (s - 2) * 120) * JOULE);
    }
    pipeline_finish(pipeline);
    assert_int_equal(pipeline->gpus[0]->idle.without_context.level_mw, 77000);
    assert_int_equal(pipeline->gpus[0]->idle.with_context.level_mw, 120000);
    pipeline_free(pipeline);
}

static void processes_that_no_sample_tells_apart_share_equally_and_nobody_is_sure(void **state)
{
    struct pipeline_options options = default_options();

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pipeline *pipeline;

        options.gpu.attribution = i == 0 ? ATTRIBUTION_TIMESHARE : ATTRIBUTION_INTENSITY;
        pipeline = pipeline_with(options);
        energy(pipeline, 0, T0, 0);
        LIST(pipeline, T0 + 1, 1, 2);
        utilisation(pipeline, 0, T0 + TICK, 99);
        ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
        pipeline_finish(pipeline);
        for (uint32_t pid = 1; pid <= 2; pid++) {
            struct snapshot_process process = process_on(pipeline, 0, pid);

            assert_int_equal(process.active_uj, 50 * JOULE);
            assert_int_equal(process.measured_uj, 0);
            assert_int_equal(process.known_uj, 0);
            if (i == 1)
                assert_int_equal(process.uncertain_uj, 50 * JOULE);
            /* Not 0: unknown. */
            assert_int_equal(process.valid & SNAPSHOT_PROCESS_UTILISATION, 0);
        }
        pipeline_free(pipeline);
    }
}

static void beside_an_mps_server_another_process_keeps_its_own_samples(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    identify(pipeline, 0, T0, 900, 0, "/mps", "nvidia-cuda-mps-server");
    LIST(pipeline, T0 + 1, 900, 1, 5);
    list(pipeline, 0, T0 + 1, SAMPLE_LIST_MPS, (const uint32_t[4]){1});
    label(pipeline, 0, T0 + 3 * TICK, 900, T0 + TICK, 60);
    label(pipeline, 0, T0 + 3 * TICK, 5, T0 + 2 * TICK, 40);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), 60 * JOULE);
    assert_int_equal(process_uj(pipeline, 5), 40 * JOULE);
    assert_int_equal(process_uj(pipeline, 900), 0);
    pipeline_free(pipeline);
}

static void identify_user(struct pipeline *pipeline, uint32_t pid, uint32_t uid, const char *name)
{
    feed(pipeline,
         (struct sample){
             .kind = SAMPLE_PROCESS,
             .t_us = T0,
             .process = {.pid = pid, .uid = uid, .start_us = 1, .cgroup = "/a", .name = name}});
}

static void a_name_makes_no_mps_server_of_a_process_without_clients(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    identify_user(pipeline, 900, 0, "nvidia-cuda-mps-server");
    identify_user(pipeline, 5, 1000, "python3");
    LIST(pipeline, T0 + 1, 900, 5);
    label(pipeline, 0, T0 + 3 * TICK, 900, T0 + TICK, 60);
    label(pipeline, 0, T0 + 3 * TICK, 5, T0 + 2 * TICK, 40);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 900), 60 * JOULE);
    assert_int_equal(process_uj(pipeline, 5), 40 * JOULE);
    pipeline_free(pipeline);
}

/* 900 is root's, and was first; 901 is root's, too; 902 is of a user without clients. */
static void an_mps_server_of_a_user_serves_only_this_user_and_of_several_the_first_serves(
    void **state)
{
    static const struct {
        uint32_t pid, uid;
    } named[] = {{901, 0}, {902, 1002}};
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    identify_user(pipeline, 900, 0, "nvidia-cuda-mps-server");
    identify_user(pipeline, 1, 1001, "python3");
    LIST(pipeline, T0 + 1, 900, 1);
    for (size_t i = 0; i < ARRAY_SIZE(named); i++)
        identify_user(pipeline, named[i].pid, named[i].uid, "nvidia-cuda-mps-server");
    LIST(pipeline, T0 + 2, 900, 1, 901, 902);
    list(pipeline, 0, T0 + 2, SAMPLE_LIST_MPS, (const uint32_t[4]){1});
    label(pipeline, 0, T0 + 4 * TICK, 900, T0 + TICK, 50);
    label(pipeline, 0, T0 + 4 * TICK, 901, T0 + 2 * TICK, 30);
    label(pipeline, 0, T0 + 4 * TICK, 902, T0 + 3 * TICK, 20);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 900), 0);
    assert_int_equal(process_uj(pipeline, 1), 50 * JOULE);
    assert_int_equal(process_uj(pipeline, 901), 30 * JOULE);
    assert_int_equal(process_uj(pipeline, 902), 20 * JOULE);
    pipeline_free(pipeline);
}

static void a_process_with_another_name_is_not_taken_for_the_mps_server(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    identify_user(pipeline, 5, 1000, "python3");
    LIST(pipeline, T0 + 1, 1, 5);
    list(pipeline, 0, T0 + 1, SAMPLE_LIST_MPS, (const uint32_t[4]){1});
    label(pipeline, 0, T0 + 3 * TICK, 5, T0 + 2 * TICK, 40);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 5), 100 * JOULE);
    pipeline_free(pipeline);
}

static void utilisation_ratios_cover_the_last_ten_seconds(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot_process process;
    uint64_t counter = 0;

    (void)state;
    LIST(pipeline, T0, 1, 2);
    energy(pipeline, 0, T0, 0);
    for (uint64_t t = T0 + TICK; t <= T0 + 20 * SECOND; t += TICK) {
        energy(pipeline, 0, t, counter += 100 * TICK);
        /* Pid 2 wins everything in the first half, then every fourth sample at half load. */
        if (t / TICK % 2 == 0)
            label(pipeline, 0, t, t <= T0 + 10 * SECOND || t / TICK % 8 == 0 ? 2 : 1, t, 50);
    }
    process = process_on(pipeline, 0, 2);
    assert_in_range(process.samples, 50, 51);
    assert_in_range(process.sm_won_percent, 12 * 50, 13 * 50);
    assert_in_range(process_on(pipeline, 0, 1).sm_won_percent, 37 * 50, 38 * 50);
    pipeline_free(pipeline);
}

static void the_ledger_does_not_depend_on_how_samples_are_batched(void **state)
{
    struct sample samples[600];
    struct pipeline *apart, *together;
    size_t count = 0;

    (void)state;
    for (uint64_t t = T0; t < T0 + 20 * SECOND; t += TICK) {
        samples[count++] = (struct sample){
            .kind = SAMPLE_ENERGY, .t_us = t, .counter_uj = (t - T0) * (200 + t % 7)};
        samples[count++] = (struct sample){
            .kind = SAMPLE_LABEL,
            .t_us = t,
            .label = {.pid = 1 + t / TICK % 3, .at_us = t, .sm_percent = 60, .in_proc = true}};
    }
    apart = pipeline_with(default_options());
    together = pipeline_with(default_options());
    for (size_t i = 0; i < count; i++)
        feed(apart, samples[i]);
    assert_int_equal(pipeline_ingest(together, samples, count), 0);
    pipeline_finish(apart);
    pipeline_finish(together);
    assert_true(meter_uj(apart, 0) > 0);
    for (uint32_t pid = 1; pid <= 3; pid++)
        assert_int_equal(process_uj(apart, pid), process_uj(together, pid));
    pipeline_free(apart);
    pipeline_free(together);
}

static void on_a_board_that_was_away_no_process_is_listed_until_the_next_list(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint32_t process;

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0, 1, 2, 3, 4);
    feed(pipeline, (struct sample){.kind = SAMPLE_DEVICE,
                                   .device = {.uuid = "GPU-9", .name = "", .driver = ""}});
    add_gpu(pipeline, 0);
    LIST(pipeline, T0 + SECOND, 4); /* as many lists as before */
    assert_true(ledger_find_process(pipeline->ledger, 0, 1, &process));
    assert_int_equal(gpu_lists_of(pipeline->gpus[0], process), 0);
    assert_true(ledger_find_process(pipeline->ledger, 0, 4, &process));
    assert_int_not_equal(gpu_lists_of(pipeline->gpus[0], process), 0);
    assert_int_equal(pipeline->gpus[0]->windows[0].presence_count, 1);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seventy_watts_for_ten_seconds_at_80_to_20_are_560_and_140_joules),
        cmocka_unit_test(a_process_that_is_alone_is_measured_and_one_that_shares_is_not),
        cmocka_unit_test(a_window_closes_on_a_tick_about_once_a_second),
        cmocka_unit_test(what_is_read_is_pending_until_its_window_is_settled),
        cmocka_unit_test(after_a_reset_the_new_value_is_a_gap_and_the_window_before_is_kept),
        cmocka_unit_test(a_value_after_a_reset_that_the_board_cannot_have_used_is_not_believed),
        cmocka_unit_test(a_jump_of_more_than_the_board_can_use_is_not_believed),
        cmocka_unit_test(energy_used_while_nothing_was_read_is_a_gap),
        cmocka_unit_test(a_clock_that_is_set_back_loses_no_joule),
        cmocka_unit_test(samples_after_the_clock_was_set_back_count),
        cmocka_unit_test(without_context_and_utilisation_everything_is_idle),
        cmocka_unit_test(the_context_step_is_shared_equally_over_workloads_and_not_over_pids),
        cmocka_unit_test(what_lies_above_the_learned_level_is_active),
        cmocka_unit_test(without_utilisation_the_only_process_is_charged_or_several_equally),
        cmocka_unit_test(in_a_busy_window_without_samples_the_last_shares_hold_for_five_seconds),
        cmocka_unit_test(
            a_sample_counts_in_the_window_of_its_own_time_even_if_it_comes_after_it_closed),
        cmocka_unit_test(a_sample_of_an_unknown_pid_is_unattributed),
        cmocka_unit_test(a_pid_is_believed_if_a_list_names_it_within_two_seconds_or_proc_has_it),
        cmocka_unit_test(a_process_that_ends_late_in_a_window_without_samples_is_still_charged),
        cmocka_unit_test(
            a_process_that_left_right_after_a_busy_window_began_is_charged_if_no_other_can_be),
        cmocka_unit_test(under_mps_the_samples_of_the_server_belong_to_its_clients),
        cmocka_unit_test(an_mps_server_alone_is_no_context),
        cmocka_unit_test(
            utilisation_that_outlasts_the_last_process_does_not_lower_the_level_with_a_context),
        cmocka_unit_test(a_second_in_which_a_process_came_shows_no_idle_level),
        cmocka_unit_test(processes_that_no_sample_tells_apart_share_equally_and_nobody_is_sure),
        cmocka_unit_test(beside_an_mps_server_another_process_keeps_its_own_samples),
        cmocka_unit_test(a_name_makes_no_mps_server_of_a_process_without_clients),
        cmocka_unit_test(
            an_mps_server_of_a_user_serves_only_this_user_and_of_several_the_first_serves),
        cmocka_unit_test(a_process_with_another_name_is_not_taken_for_the_mps_server),
        cmocka_unit_test(utilisation_ratios_cover_the_last_ten_seconds),
        cmocka_unit_test(the_ledger_does_not_depend_on_how_samples_are_batched),
        cmocka_unit_test(on_a_board_that_was_away_no_process_is_listed_until_the_next_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
