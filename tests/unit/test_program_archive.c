/* attribution/gpu/program_archive: what a board learned counts on the boards that come, in one
 * pipeline and from one to the next. */
#include "simulation.h"

static const struct load MATRICES = {500, {0.9, 0.3, 0.1, 0.8, 0.4, 0, 0.05, 0.3}};
static const struct load STREAMS = {200, {0.6, 0.9, 0.3, 0, 0.9, 0, 0.4, 0}};

static const struct sample_device BOARD = {
    .uuid = "GPU-A", .name = "NVIDIA H200", .driver = "580.65.06", .power_limit_mw = 700000};

static struct sample_device board_of(const char *uuid, const char *name, const char *driver,
                                     uint64_t power_limit_mw)
{
    return (struct sample_device){
        .uuid = uuid, .name = name, .driver = driver, .power_limit_mw = power_limit_mw};
}

static void put_board(struct pipeline *pipeline, uint32_t index, struct sample_device device)
{
    feed(pipeline, (struct sample){.kind = SAMPLE_DEVICE, .gpu = index, .device = device});
}

static struct pipeline *pipeline_on(struct sample_device device)
{
    const struct pipeline_options options = intensity_options();
    struct pipeline *pipeline;

    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    put_board(pipeline, 0, device);
    return pipeline;
}

static struct programs *programs_on(struct pipeline *pipeline, uint32_t index)
{
    return &pipeline->gpus[index]->programs->exact;
}

static void learn(struct pipeline *pipeline, uint32_t index, uint64_t key, size_t slots)
{
    const struct state slot = {.has_gpm = true, .weight = 1, .mean = {.power_w = 300}};

    for (size_t i = 0; i < slots; i++)
        programs_measure(programs_on(pipeline, index), key, &slot, T0);
}

/* What a board knows of a program; 0: nothing. */
static double slots_on(struct pipeline *pipeline, uint32_t index, uint64_t key)
{
    const struct program *program = programs_recall(programs_on(pipeline, index), key, T0);

    return program ? program->slots : 0;
}

static void another_pipeline_knows_what_it_is_worth_there(void **state)
{
    static const struct {
        struct sample_device device;
        double slots;
    } cases[] = {
        {{.uuid = "GPU-A", .name = "NVIDIA H200", .driver = "580.65.06", .power_limit_mw = 700000},
         100},
        /* The branch of the driver is its first number. */
        {{.uuid = "GPU-A", .name = "NVIDIA H200", .driver = "580.99", .power_limit_mw = 700000},
         100},
        {{.uuid = "GPU-A", .name = "NVIDIA H200", .driver = "580", .power_limit_mw = 700000}, 100},
        {{.uuid = "GPU-A", .name = "NVIDIA H200", .driver = "58.1", .power_limit_mw = 700000}, 2},
        {{.uuid = "GPU-A", .name = "NVIDIA H200", .driver = "590.65.06", .power_limit_mw = 700000},
         2},
        {{.uuid = "GPU-A", .name = "NVIDIA H200", .driver = "", .power_limit_mw = 700000}, 2},
        {{.uuid = "GPU-A", .name = "NVIDIA H200", .driver = "580", .power_limit_mw = 600000}, 2},
        {{.uuid = "GPU-A", .name = "NVIDIA H200", .driver = "580", .power_limit_mw = 0}, 100},
        {{.uuid = "GPU-A", .name = "", .driver = "580", .power_limit_mw = 700000}, 100},
        /* Another board of the model. */
        {{.uuid = "GPU-B", .name = "NVIDIA H200", .driver = "580.1", .power_limit_mw = 700000}, 3},
        {{.uuid = "GPU-B", .name = "NVIDIA H200", .driver = "590.1", .power_limit_mw = 700000}, 2},
        {{.uuid = "GPU-B", .name = "NVIDIA H200", .driver = "580.1", .power_limit_mw = 500000}, 2},
        /* Another model. */
        {{.uuid = "GPU-A", .name = "NVIDIA H100", .driver = "580.1", .power_limit_mw = 700000}, 0},
        {{.uuid = "GPU-B", .name = "NVIDIA H100", .driver = "580.1", .power_limit_mw = 700000}, 0},
        {{.uuid = "GPU-B", .name = "", .driver = "580.1", .power_limit_mw = 700000}, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pipeline *first = pipeline_on(BOARD), *second;
        const struct pipeline_options options = intensity_options();

        learn(first, 0, 1, 100);
        assert_int_equal(pipeline_new(&options, &second), 0);
        pipeline_hand_over_programs(first, second);
        pipeline_free(first);
        put_board(second, 0, cases[i].device);
        if (slots_on(second, 0, 1) != cases[i].slots)
            fail_msg("case %zu: %f", i, slots_on(second, 0, 1));
        pipeline_free(second);
    }
}

static void boards_without_a_name_are_not_of_one_model(void **state)
{
    const struct pipeline_options options = intensity_options();
    struct pipeline *first = pipeline_on(board_of("GPU-A", "", "580", 0)), *second;

    (void)state;
    learn(first, 0, 1, 100);
    assert_int_equal(pipeline_new(&options, &second), 0);
    pipeline_hand_over_programs(first, second);
    put_board(second, 0, board_of("GPU-B", "", "580", 0));
    assert_true(slots_on(second, 0, 1) == 0);
    pipeline_free(first);
    pipeline_free(second);
}

/* The third knows what the first saw, though the second had no such board. */
static void memory_passes_through_pipelines_with_other_boards(void **state)
{
    const struct pipeline_options options = intensity_options();
    struct pipeline *first = pipeline_on(BOARD), *second, *third;

    (void)state;
    learn(first, 0, 1, 100);
    assert_int_equal(pipeline_new(&options, &second), 0);
    pipeline_hand_over_programs(first, second);
    put_board(second, 0, board_of("GPU-C", "Tesla T4", "580", 70000));
    learn(second, 0, 2, 50);
    assert_int_equal(pipeline_new(&options, &third), 0);
    pipeline_hand_over_programs(second, third);
    put_board(third, 0, BOARD);
    put_board(third, 1, board_of("GPU-C", "Tesla T4", "580", 70000));
    assert_true(slots_on(third, 0, 1) == 100);
    assert_true(slots_on(third, 0, 2) == 0);
    assert_true(slots_on(third, 1, 2) == 50);
    pipeline_free(first);
    pipeline_free(second);
    pipeline_free(third);
}

static void of_several_boards_the_best_memory_counts(void **state)
{
    const struct pipeline_options options = intensity_options();
    struct pipeline *first = pipeline_on(BOARD), *second;

    (void)state;
    put_board(first, 1, board_of("GPU-B", "NVIDIA H200", "580", 700000));
    learn(first, 0, 1, 1);
    learn(first, 1, 1, 100);
    learn(first, 1, 2, 100);
    assert_int_equal(pipeline_new(&options, &second), 0);
    pipeline_hand_over_programs(first, second);
    put_board(second, 0, board_of("GPU-B", "NVIDIA H200", "580", 700000));
    put_board(second, 1, BOARD);
    assert_true(slots_on(second, 0, 1) == 100 && slots_on(second, 0, 2) == 100);
    assert_true(slots_on(second, 1, 1) == 3 && slots_on(second, 1, 2) == 3);
    pipeline_free(first);
    pipeline_free(second);
}

static void a_board_with_another_index_keeps_its_memory(void **state)
{
    struct pipeline *pipeline = pipeline_on(BOARD);

    (void)state;
    learn(pipeline, 0, 1, 100);
    put_board(pipeline, 3, BOARD);
    assert_null(pipeline->gpus[0]);
    assert_true(slots_on(pipeline, 3, 1) == 100);
    put_board(pipeline, 3, board_of("GPU-B", "NVIDIA H200", "580", 700000)); /* exchanged */
    assert_true(slots_on(pipeline, 3, 1) == 3);
    put_board(pipeline, 3, BOARD); /* and back */
    assert_true(slots_on(pipeline, 3, 1) == 100);
    pipeline_free(pipeline);
}

static void a_board_that_comes_back_with_another_driver_knows_less(void **state)
{
    struct pipeline *pipeline = pipeline_on(BOARD);

    (void)state;
    learn(pipeline, 0, 1, 100);
    put_board(pipeline, 0, BOARD);
    put_board(pipeline, 0, board_of("GPU-A", "NVIDIA H200", "580.99.01", 0));
    assert_true(slots_on(pipeline, 0, 1) == 100);
    assert_string_equal(pipeline->gpus[0]->driver, "580.99.01");
    assert_int_equal(pipeline->gpus[0]->power_limit_mw, 700000);
    put_board(pipeline, 0, board_of("GPU-A", "NVIDIA H200", "590.10", 700000));
    assert_true(slots_on(pipeline, 0, 1) == 2);
    assert_string_equal(pipeline->gpus[0]->driver, "590.10");
    learn(pipeline, 0, 1, 10);
    put_board(pipeline, 0, board_of("GPU-A", "NVIDIA H200", "590.10", 700000));
    assert_true(slots_on(pipeline, 0, 1) == 12);
    pipeline_free(pipeline);
}

static void set_limit(struct pipeline *pipeline, uint64_t power_limit_mw)
{
    feed(pipeline,
         (struct sample){.kind = SAMPLE_GAUGE,
                         .t_us = T0,
                         .gauge = {GPU_GAUGE_POWER_LIMIT_MW, power_limit_mw, SAMPLE_NO_INSTANCE}});
}

static void a_board_with_another_power_limit_knows_less(void **state)
{
    struct pipeline *pipeline = pipeline_on(BOARD);

    (void)state;
    learn(pipeline, 0, 1, 100);
    set_limit(pipeline, 700000);
    assert_true(slots_on(pipeline, 0, 1) == 100);
    set_limit(pipeline, 500000);
    assert_true(slots_on(pipeline, 0, 1) == 2);
    assert_int_equal(pipeline->gpus[0]->power_limit_mw, 500000);
    learn(pipeline, 0, 1, 10);
    put_board(pipeline, 0, board_of("GPU-A", "NVIDIA H200", "580", 600000));
    assert_true(slots_on(pipeline, 0, 1) == 2);
    pipeline_free(pipeline);
}

static void no_more_boards_are_kept_than_there_is_room_for(void **state)
{
    struct pipeline *pipeline = pipeline_on(BOARD);
    char uuid[16];

    (void)state;
    learn(pipeline, 0, 1, 100);
    for (int i = 0; i < PROGRAM_ARCHIVE_MAX; i++) {
        snprintf(uuid, sizeof(uuid), "GPU-%d", i);
        put_board(pipeline, 0, board_of(uuid, "Tesla T4", "580", 0));
        learn(pipeline, 0, 2, 1);
    }
    assert_int_equal(pipeline->archive.count, PROGRAM_ARCHIVE_MAX);
    put_board(pipeline, 0, BOARD); /* it went first */
    assert_int_equal(pipeline->archive.count, PROGRAM_ARCHIVE_MAX);
    assert_true(slots_on(pipeline, 0, 1) == 0);
    pipeline_free(pipeline);
}

static void by_time_share_nothing_is_remembered(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *first, *second;

    (void)state;
    options.gpu.attribution = ATTRIBUTION_TIMESHARE;
    assert_int_equal(pipeline_new(&options, &first), 0);
    put_board(first, 0, BOARD);
    put_board(first, 0, board_of("GPU-B", "NVIDIA H200", "580", 0));
    assert_int_equal(first->archive.count, 0);
    assert_int_equal(pipeline_new(&options, &second), 0);
    pipeline_hand_over_programs(first, second);
    put_board(second, 0, BOARD);
    pipeline_free(first);
    pipeline_free(second);
}

static void identify_program(const struct simulation *simulation, uint32_t pid, uint64_t key)
{
    feed(simulation->pipeline, (struct sample){.kind = SAMPLE_PROCESS,
                                               .t_us = simulation->now_us,
                                               .process = {.pid = pid,
                                                           .uid = 1000,
                                                           .start_us = simulation->now_us,
                                                           .cgroup = "/user.slice",
                                                           .name = "python3",
                                                           .program = {key, key + 100}}});
}

/* Each program alone, in one trace. */
static struct pipeline *run_alone(void)
{
    struct simulation simulation = {
        .gpu = {.idle_watts = 100, .count = 2, .loads = {MATRICES, STREAMS}}};
    struct pipeline *pipeline = pipeline_on(BOARD);

    simulation_begin(&simulation, pipeline);
    for (uint32_t i = 0; i < 2; i++) {
        simulation.pids[i] = 11 + i;
        identify_program(&simulation, 11 + i, 1 + i);
        for (size_t s = 0; s < 50; s++)
            simulation_run(&simulation, (const double[2]){i == 0, i == 1});
        simulation.pids[i] = 0;
        for (size_t s = 0; s < 15; s++)
            simulation_run(&simulation, (const double[2]){0});
    }
    pipeline_finish(pipeline);
    return pipeline;
}

/* Both together in equal parts, on another board. The part of the matrices; in truth it is 5/7. */
static double run_together(struct pipeline *before)
{
    struct simulation simulation = {
        .gpu = {.idle_watts = 100, .count = 2, .loads = {MATRICES, STREAMS}}};
    const struct pipeline_options options = intensity_options();
    struct pipeline *pipeline;
    uint64_t matrices_uj, streams_uj;

    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    if (before)
        pipeline_hand_over_programs(before, pipeline);
    put_board(pipeline, 0, board_of("GPU-B", "NVIDIA H200", "580", 700000));
    simulation_begin(&simulation, pipeline);
    for (size_t s = 0; s < 50; s++)
        simulation_run(&simulation, (const double[2]){0});
    for (uint32_t i = 0; i < 2; i++) {
        simulation.pids[i] = 21 + i;
        identify_program(&simulation, 21 + i, 1 + i);
    }
    for (size_t s = 0; s < 450; s++)
        simulation_run(&simulation, (const double[2]){0.5, 0.5});
    pipeline_finish(pipeline);
    matrices_uj = process_on(pipeline, 0, 21).active_uj;
    streams_uj = process_on(pipeline, 0, 22).active_uj;
    pipeline_free(pipeline);
    return (double)matrices_uj / (double)(matrices_uj + streams_uj);
}

static void a_program_known_from_another_board_is_charged_what_it_draws(void **state)
{
    struct pipeline *alone = run_alone();

    (void)state;
    assert_true(fabs(run_together(alone) - 500.0 / 700) < 0.05);
    assert_true(fabs(run_together(NULL) - 0.5) < 0.03);
    pipeline_free(alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_pipeline_knows_what_it_is_worth_there),
        cmocka_unit_test(boards_without_a_name_are_not_of_one_model),
        cmocka_unit_test(memory_passes_through_pipelines_with_other_boards),
        cmocka_unit_test(of_several_boards_the_best_memory_counts),
        cmocka_unit_test(a_board_with_another_index_keeps_its_memory),
        cmocka_unit_test(a_board_that_comes_back_with_another_driver_knows_less),
        cmocka_unit_test(a_board_with_another_power_limit_knows_less),
        cmocka_unit_test(no_more_boards_are_kept_than_there_is_room_for),
        cmocka_unit_test(by_time_share_nothing_is_remembered),
        cmocka_unit_test(a_program_known_from_another_board_is_charged_what_it_draws),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
