/* gpu_intensity: what a GPU learns of its processes, scenarios through the whole pipeline. */
#include "simulation.h"

static const struct load MATRICES = {500, {0.9, 0.3, 0.1, 0.8, 0.4, 0, 0.05, 0.3}};
static const struct load STREAMS = {200, {0.6, 0.9, 0.3, 0, 0.9, 0, 0.4, 0}};

static const double FIRST[] = {1, 0, 0}, SECOND_ONE[] = {0, 1, 0}, BOTH[] = {0.5, 0.5, 0};

/* Two loads with the pids 11 and 12, and room for one more. */
static struct simulation two_loads(void)
{
    return (struct simulation){
        .gpu = {.idle_watts = 100, .count = 3, .loads = {MATRICES, STREAMS, MATRICES}},
        .pids = {11, 12},
    };
}

static void run_seconds(struct simulation *simulation, size_t seconds, const double *parts)
{
    for (size_t i = 0; i < 5 * seconds; i++)
        simulation_run(simulation, parts);
}

/* Nothing for ten seconds, each alone for twenty, both for twenty. */
static void teach(struct simulation *simulation)
{
    run_seconds(simulation, 10, (const double[3]){0});
    run_seconds(simulation, 20, FIRST);
    run_seconds(simulation, 20, SECOND_ONE);
    run_seconds(simulation, 20, BOTH);
}

static uint64_t active_uj(const struct pipeline *pipeline, uint32_t pid)
{
    return process_on(pipeline, 0, pid).active_uj;
}

static double confidence(const struct pipeline *pipeline, uint32_t pid)
{
    struct snapshot_process process = process_on(pipeline, 0, pid);

    return (double)process.known_uj / (double)(process.active_uj + process.idle_uj);
}

static void what_was_learned_divides_the_time_together(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    double share;

    (void)state;
    simulation_begin(&simulation, pipeline);
    teach(&simulation);
    pipeline_finish(pipeline);
    share = (double)active_uj(pipeline, 11) /
            (double)(active_uj(pipeline, 11) + active_uj(pipeline, 12));
    assert_true(fabs(share - 500.0 / 700) < 0.02);
    assert_true(confidence(pipeline, 11) > 0.5);
    pipeline_free(pipeline);
}

static void parts_that_never_change_are_the_time_share_without_confidence(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    double won = 0, share;

    (void)state;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[3]){0});
    for (size_t i = 0; i < 1500; i++)
        won += simulation_run(&simulation, BOTH).winner == 0;
    pipeline_finish(pipeline);
    share = (double)active_uj(pipeline, 11) /
            (double)(active_uj(pipeline, 11) + active_uj(pipeline, 12));
    assert_true(fabs(share - won / 1500) < 0.03);
    assert_true(confidence(pipeline, 11) < 0.2);
    assert_true(confidence(pipeline, 12) < 0.2);
    pipeline_free(pipeline);
}

static void a_new_process_is_charged_by_its_samples_until_more_is_known(void **state)
{
    struct pipeline_options options = intensity_options();
    struct simulation simulation = two_loads();
    struct pipeline *pipeline;
    uint64_t before_uj;

    (void)state;
    options.gpu.patience_us = 0;
    pipeline = pipeline_with(options);
    simulation_begin(&simulation, pipeline);
    teach(&simulation);
    run_seconds(&simulation, 2, BOTH); /* to the middle between two refinements */
    simulation.pids[2] = 13;
    before_uj = active_uj(pipeline, 11);
    run_seconds(&simulation, 4, (const double[]){0.5, 0, 0.5});
    assert_true(active_uj(pipeline, 13) > 100 * JOULE);
    assert_true(active_uj(pipeline, 11) > before_uj + 100 * JOULE);
    pipeline_free(pipeline);
}

static void samples_of_an_unknown_pid_are_not_charged_to_known_processes(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());

    (void)state;
    simulation.pids[2] = 99;
    simulation.is_hidden[2] = true;
    simulation_begin(&simulation, pipeline);
    teach(&simulation);
    run_seconds(&simulation, 10, (const double[]){0, 0, 1}); /* 5,000 J above idle */
    pipeline_finish(pipeline);
    assert_true(unowned_uj(pipeline, UNOWNED_UNATTRIBUTED) > 4900 * JOULE);
    pipeline_free(pipeline);
}

static const struct tenant *tenant_of(const struct pipeline *pipeline, uint32_t pid)
{
    uint32_t process;

    assert_true(ledger_find_process(pipeline->ledger, 0, pid, &process));
    assert_true(gpu_sighting(pipeline->gpus[0], process)->tenant > 0);
    return &pipeline->gpus[0]
                ->learning->tenants.all[gpu_sighting(pipeline->gpus[0], process)->tenant - 1];
}

static void on_a_board_that_was_away_a_process_has_a_place_anew(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());

    (void)state;
    simulation.pids[1] = 0;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 5, FIRST);
    feed(pipeline, (struct sample){.kind = SAMPLE_DEVICE,
                                   .device = {.uuid = "GPU-9", .name = "", .driver = ""}});
    add_gpu(pipeline, 0);
    run_seconds(&simulation, 5, FIRST);
    assert_true(tenant_of(pipeline, 11)->used);
    assert_int_equal(ledger_process(pipeline->ledger, tenant_of(pipeline, 11)->process)->pid, 11);
    assert_int_equal(pipeline->gpus[0]->learning->slots.listed, 1);
    pipeline_free(pipeline);
}

/* Identifies a pid: a user's python. */
static void introduce(const struct simulation *simulation, uint32_t pid, const char *name)
{
    feed(simulation->pipeline, (struct sample){.kind = SAMPLE_PROCESS,
                                               .t_us = simulation->now_us,
                                               .process = {.pid = pid,
                                                           .uid = 1000,
                                                           .start_us = simulation->now_us,
                                                           .cgroup = "/user.slice",
                                                           .name = name}});
}

static void the_next_of_a_kind_is_known_when_it_comes(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    const struct tenant *place;
    double watts;

    (void)state;
    simulation_begin(&simulation, pipeline);
    introduce(&simulation, 11, "matrices");
    introduce(&simulation, 12, "streams");
    teach(&simulation);
    place = tenant_of(pipeline, 11);
    simulation.pids[0] = 0;
    run_seconds(&simulation, 90, SECOND_ONE);
    assert_true(place->ended);
    simulation.pids[0] = 21;
    run_seconds(&simulation, 1, BOTH);
    introduce(&simulation, 21, "matrices"); /* a second late, as it is in truth */
    run_seconds(&simulation, 90, BOTH);
    assert_ptr_equal(tenant_of(pipeline, 21), place);
    watts = pipeline->gpus[0]
                ->learning->intensity.watts[place - pipeline->gpus[0]->learning->tenants.all];
    assert_true(fabs(watts - 500) < 50);
    pipeline_free(pipeline);
}

/* A list of clients beside the server, which wins all samples. */
static void list_clients(const struct simulation *simulation, const uint32_t pids[4])
{
    list(simulation->pipeline, 0, simulation->now_us, SAMPLE_LIST_MPS, pids);
}

static void mps_clients_are_charged_what_they_drew_alone(void **state)
{
    struct simulation simulation = {.gpu = {.idle_watts = 100, .count = 1, .loads = {{100, {0.5}}}},
                                    .pids = {10}};
    struct pipeline *pipeline = pipeline_with(intensity_options());
    double share;

    (void)state;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[]){0});
    for (int phase = 0; phase < 9; phase++) {
        static const double watts[] = {100, 30, 130};
        static const uint32_t clients[][4] = {{11}, {12}, {11, 12}};

        simulation.gpu.loads[0].watts = watts[phase % 3];
        for (int second = 0; second < 20; second++) {
            list_clients(&simulation, clients[phase % 3]);
            run_seconds(&simulation, 1, (const double[]){1});
        }
    }
    pipeline_finish(pipeline);
    share = (double)active_uj(pipeline, 11) /
            (double)(active_uj(pipeline, 11) + active_uj(pipeline, 12));
    assert_true(fabs(share - 10.0 / 13) < 0.03);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_learned_divides_the_time_together),
        cmocka_unit_test(parts_that_never_change_are_the_time_share_without_confidence),
        cmocka_unit_test(a_new_process_is_charged_by_its_samples_until_more_is_known),
        cmocka_unit_test(samples_of_an_unknown_pid_are_not_charged_to_known_processes),
        cmocka_unit_test(on_a_board_that_was_away_a_process_has_a_place_anew),
        cmocka_unit_test(the_next_of_a_kind_is_known_when_it_comes),
        cmocka_unit_test(mps_clients_are_charged_what_they_drew_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
