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

/* A second in which 11 wins three samples of four, and then another. */
static void run_shared_second(struct pipeline *pipeline)
{
    static const uint32_t winners[] = {11, 12, 11, 11};
    uint64_t counter_uj;

    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 11, 12);
    for (uint64_t i = 0; i < ARRAY_SIZE(winners); i++)
        label(pipeline, 0, T0 + (2 * i + 2) * TICK, winners[i], T0 + (2 * i + 1) * TICK, 99);
    counter_uj = ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    ticks(pipeline, 0, T0 + SECOND, T0 + 4 * SECOND, counter_uj, 0);
}

static void before_anything_is_known_a_share_is_as_uncertain_as_time_shares_are(void **state)
{
    struct pipeline_options options = intensity_options();
    struct pipeline *pipeline;

    (void)state;
    options.gpu.patience_us = 0;
    pipeline = pipeline_with(options);
    run_shared_second(pipeline);
    assert_int_equal(active_uj(pipeline, 11), 75 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 11).uncertain_uj, 75 * JOULE / 2 / 4);
    assert_int_equal(process_on(pipeline, 0, 12).uncertain_uj, 25 * JOULE / 2 * 3 / 4);
    pipeline_free(pipeline);
}

static void samples_of_unknown_processes_make_the_shares_of_others_uncertain(void **state)
{
    struct pipeline_options options = intensity_options();
    struct pipeline *pipeline;

    (void)state;
    options.gpu.patience_us = 0;
    pipeline = pipeline_with(options);
    LIST(pipeline, T0, 11, 13);
    energy(pipeline, 0, T0, 0);
    label(pipeline, 0, T0 + 2 * TICK, 11, T0 + TICK, 99);
    label(pipeline, 0, T0 + 4 * TICK, 99, T0 + 3 * TICK, 99);
    energy(pipeline, 0, T0 + SECOND, 100 * JOULE);
    energy(pipeline, 0, T0 + 4 * SECOND, 100 * JOULE);
    assert_int_equal(active_uj(pipeline, 11), 50 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 11).uncertain_uj, 50 * JOULE / 2 / 2);
    pipeline_free(pipeline);
}

static void what_a_process_used_alone_is_not_uncertain(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());

    (void)state;
    simulation.pids[1] = 0;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 20, FIRST);
    pipeline_finish(pipeline);
    assert_true(process_on(pipeline, 0, 11).measured_uj > 9000 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 11).uncertain_uj, 0);
    pipeline_free(pipeline);
}

/* The confidence tells the relative standard error e, 1 / (1 + (e / 0.08)^2). */
static void the_uncertainty_of_a_learned_share_is_a_bound_of_its_error(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    const struct claimants *settled = &pipeline->gpus[0]->held;

    (void)state;
    simulation_begin(&simulation, pipeline);
    teach(&simulation);
    for (int turn = 0; turn < 3; turn++) { /* often enough to be sure that none has changed */
        run_seconds(&simulation, 3, FIRST);
        run_seconds(&simulation, 3, SECOND_ONE);
    }
    run_seconds(&simulation, 20, BOTH);
    pipeline_finish(pipeline);
    assert_int_equal(settled->count, 2);
    for (size_t i = 0; i < settled->count; i++) {
        double standard = 0.08 * sqrt(CONFIDENCE_ONE / (double)settled->items[i].confidence - 1);

        assert_true(settled->items[i].error > 1000);
        assert_true(fabs(settled->items[i].error / (double)CONFIDENCE_ONE / standard - 1.3) <
                    0.001);
    }
    assert_true(process_on(pipeline, 0, 11).uncertain_uj > 0);
    pipeline_free(pipeline);
}

static void only_what_the_estimator_divides_has_an_uncertainty(void **state)
{
    (void)state;
    for (int is_estimated = 0; is_estimated < 2; is_estimated++) {
        struct pipeline *pipeline =
            pipeline_with(is_estimated ? intensity_options() : default_options());
        struct snapshot *snapshot;
        uint32_t package;

        run_shared_second(pipeline);
        assert_int_equal(ledger_add_meter(pipeline->ledger, METER_PACKAGE, "0", 0, &package), 0);
        snapshot = books(pipeline);
        assert_int_equal(snapshot->meters[0].has_uncertainty, is_estimated);
        assert_false(snapshot->meters[package].has_uncertainty);
        assert_int_equal(snapshot->processes[0].valid & SNAPSHOT_PROCESS_UNCERTAINTY,
                         is_estimated ? SNAPSHOT_PROCESS_UNCERTAINTY : 0);
        close_books(snapshot);
        pipeline_free(pipeline);
    }
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

struct identity {
    uint32_t pid, uid;
    struct program_key program;
};

/* Every program is python3: only its key tells which. */
static void identify_program(const struct simulation *simulation, struct identity identity)
{
    feed(simulation->pipeline, (struct sample){.kind = SAMPLE_PROCESS,
                                               .t_us = simulation->now_us,
                                               .process = {.pid = identity.pid,
                                                           .uid = identity.uid,
                                                           .start_us = simulation->now_us,
                                                           .cgroup = "/user.slice",
                                                           .name = "python3",
                                                           .program = identity.program}});
}

/* Runs matrices and streams alone on the board, then as two other processes in a steady mixture. */
static void run_pair(struct simulation *simulation, struct pipeline *pipeline,
                     const struct identity alone[2], const struct identity pair[2],
                     const double *parts)
{
    simulation->pids[0] = simulation->pids[1] = 0;
    simulation_begin(simulation, pipeline);
    run_seconds(simulation, 25, (const double[3]){0});
    for (size_t i = 0; i < 2; i++) {
        simulation->pids[i] = alone[i].pid;
        identify_program(simulation, alone[i]);
        run_seconds(simulation, 10, i == 0 ? FIRST : SECOND_ONE);
        simulation->pids[i] = 0;
        run_seconds(simulation, 3, (const double[3]){0});
    }
    for (size_t i = 0; i < 2; i++) {
        simulation->pids[i] = pair[i].pid;
        identify_program(simulation, pair[i]);
    }
    run_seconds(simulation, 90, parts);
}

/* The part of the pair's energy that goes to the matrices. */
static double share_in_mixture(const struct identity alone[2], const struct identity pair[2],
                               const double *parts)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    uint64_t matrices_uj, streams_uj;

    run_pair(&simulation, pipeline, alone, pair, parts);
    pipeline_finish(pipeline);
    matrices_uj = active_uj(pipeline, pair[0].pid);
    streams_uj = active_uj(pipeline, pair[1].pid);
    pipeline_free(pipeline);
    return (double)matrices_uj / (double)(matrices_uj + streams_uj);
}

/* The same for half of the time each; in truth it is 5/7. */
static double share_in_pair(const struct identity alone[2], const struct identity pair[2])
{
    return share_in_mixture(alone, pair, BOTH);
}

static const struct program_key A = {101, 201}, B = {102, 202}, C = {103, 203};

static void a_program_that_ran_alone_is_known_when_it_comes_back(void **state)
{
    (void)state;
    assert_true(fabs(share_in_pair((const struct identity[]){{11, 1000, A}, {12, 1000, B}},
                                   (const struct identity[]){{21, 1000, A}, {22, 1000, B}}) -
                     500.0 / 700) < 0.02);
}

static void with_other_values_it_is_known_by_its_coarse_key(void **state)
{
    const struct program_key other_a = {301, A.coarse}, other_b = {302, B.coarse};

    (void)state;
    assert_true(
        fabs(share_in_pair((const struct identity[]){{11, 1000, A}, {12, 1000, B}},
                           (const struct identity[]){{21, 1000, other_a}, {22, 1000, other_b}}) -
             500.0 / 700) < 0.05);
}

/* Without memory a steady mixture is divided by time. */
static void what_was_learned_is_not_for_other_programs_or_tenants(void **state)
{
    static const struct identity alone[] = {{11, 1000, {101, 201}}, {12, 1000, {102, 202}}};
    static const struct identity pairs[][2] = {
        {{21, 1000, {103, 203}}, {22, 1000, {104, 204}}}, /* another command line */
        {{21, 1001, {101, 201}}, {22, 1001, {102, 202}}}, /* another user */
        {{21, 1000, {0, 0}}, {22, 1000, {0, 0}}},         /* unknown */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
        assert_true(fabs(share_in_pair(alone, pairs[i]) - 0.5) < 0.03);
}

/* A wrong memory in a steady mixture with a stranger could not be told from a right one. */
static void a_memory_that_nothing_could_contradict_does_not_count(void **state)
{
    (void)state;
    assert_true(fabs(share_in_pair((const struct identity[]){{11, 1000, A}, {12, 1000, B}},
                                   (const struct identity[]){{21, 1000, A}, {22, 1000, C}}) -
                     0.5) < 0.03);
}

/* Each came back as the other. With equal parts, nothing would show it. */
static void a_memory_that_the_board_contradicts_does_not_count(void **state)
{
    static const double more_matrices[] = {0.7, 0.3, 0};

    (void)state;
    assert_true(fabs(share_in_mixture((const struct identity[]){{11, 1000, A}, {12, 1000, B}},
                                      (const struct identity[]){{21, 1000, B}, {22, 1000, A}},
                                      more_matrices) -
                     0.7) < 0.04);
}

/* Programs that work and rest in turns, then again as two other processes that never rest. */
static void programs_that_were_never_alone_are_known_by_what_was_learned_in_company(void **state)
{
    static const struct identity first[] = {{11, 1000, {101, 201}}, {12, 1000, {102, 202}}};
    static const struct identity second[] = {{21, 1000, {101, 201}}, {22, 1000, {102, 202}}};
    static const double mostly_first[] = {0.8, 0.2, 0}, mostly_second[] = {0.2, 0.8, 0};
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    uint64_t matrices_uj, streams_uj;

    (void)state;
    simulation.pids[0] = simulation.pids[1] = 0;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[3]){0});
    for (size_t i = 0; i < 2; i++) {
        simulation.pids[i] = first[i].pid;
        identify_program(&simulation, first[i]);
    }
    for (int i = 0; i < 30; i++)
        run_seconds(&simulation, 3, i % 2 ? mostly_first : mostly_second);
    simulation.pids[0] = simulation.pids[1] = 0;
    run_seconds(&simulation, 90, (const double[3]){0});
    for (size_t i = 0; i < 2; i++) {
        simulation.pids[i] = second[i].pid;
        identify_program(&simulation, second[i]);
    }
    run_seconds(&simulation, 90, BOTH);
    pipeline_finish(pipeline);
    matrices_uj = active_uj(pipeline, 21);
    streams_uj = active_uj(pipeline, 22);
    assert_true(fabs((double)matrices_uj / (double)(matrices_uj + streams_uj) - 500.0 / 700) <
                0.05);
    /* Nobody measured it. */
    assert_true(confidence(pipeline, 21) < 0.8);
    pipeline_free(pipeline);
}

struct disguise {
    struct load alone;         /* the program that is remembered */
    struct program_key victim; /* the other tenant's program, which ran alone as {102, 202} */
    bool varies;
};

/* A tenant runs one program alone, then matrices under the same command line beside another tenant:
 * it is not charged less than by time, and if it is charged too little, nobody is sure of it. */
static void assert_nothing_is_gained(const struct disguise *disguise)
{
    static const double mostly_first[] = {0.7, 0.3, 0}, mostly_second[] = {0.3, 0.7, 0};
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    uint64_t heavy_uj, victim_uj;
    double share;

    simulation.gpu.loads[2] = disguise->alone;
    simulation.pids[0] = simulation.pids[1] = 0;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[3]){0});
    simulation.pids[2] = 11;
    identify_program(&simulation, (struct identity){11, 1000, {101, 201}});
    run_seconds(&simulation, 20, (const double[3]){0, 0, 1});
    simulation.pids[2] = 0;
    simulation.pids[1] = 12;
    identify_program(&simulation, (struct identity){12, 1001, {102, 202}});
    run_seconds(&simulation, 20, SECOND_ONE);
    simulation.pids[1] = 0;
    run_seconds(&simulation, 5, (const double[3]){0});
    simulation.pids[0] = 21;
    simulation.pids[1] = 22;
    identify_program(&simulation, (struct identity){21, 1000, {101, 201}});
    identify_program(&simulation, (struct identity){22, 1001, disguise->victim});
    for (int i = 0; i < 30; i++)
        run_seconds(&simulation, 3,
                    !disguise->varies ? BOTH
                    : i % 2           ? mostly_first
                                      : mostly_second);
    pipeline_finish(pipeline);
    heavy_uj = active_uj(pipeline, 21);
    victim_uj = active_uj(pipeline, 22);
    share = (double)heavy_uj / (double)(heavy_uj + victim_uj);
    assert_true(share > 0.47);
    assert_true(share > 0.95 * 500 / 700 ||
                (confidence(pipeline, 21) < 0.5 && confidence(pipeline, 22) < 0.5));
    pipeline_free(pipeline);
}

static void nobody_gains_by_a_light_program_under_the_name_of_a_heavy_one(void **state)
{
    struct load half = MATRICES; /* as on zeros: the same units at half of the power */

    (void)state;
    half.watts /= 2;
    for (size_t i = 0; i < 8; i++)
        assert_nothing_is_gained(&(struct disguise){
            .alone = i & 1 ? half : (struct load){80, {0.3, 0.2, 0.2, 0, 0.1, 0, 0.1, 0}},
            .victim = i & 2 ? B : C,
            .varies = i & 4,
        });
}

/* Matrices for 10 s, nothing for 10 s, then both. It may do something else by now, which nothing
 * would show beside an unknown process: the time share. */
static void a_process_that_was_alone_is_not_lost_beside_an_unknown_one(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    uint64_t alone_uj, matrices_uj, streams_uj;

    (void)state;
    simulation.pids[1] = 0;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[3]){0});
    run_seconds(&simulation, 10, FIRST);
    run_seconds(&simulation, 10, (const double[3]){0});
    alone_uj = active_uj(pipeline, 11);
    simulation.pids[1] = 12;
    run_seconds(&simulation, 90, BOTH);
    pipeline_finish(pipeline);
    matrices_uj = active_uj(pipeline, 11) - alone_uj;
    streams_uj = active_uj(pipeline, 12);
    assert_true(fabs((double)matrices_uj / (double)(matrices_uj + streams_uj) - 0.5) < 0.03);
    pipeline_free(pipeline);
}

/* Nothing changes but that streams begin: matrices may have, too. */
static void nobody_is_sure_of_a_mixture_that_began_once(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());

    (void)state;
    simulation.gpu.loads[2] = (struct load){80, {0.3, 0.2, 0.2, 0, 0.1, 0, 0.1, 0}};
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[3]){0});
    simulation.pids[2] = simulation.pids[0]; /* the first process does something light at first */
    simulation.pids[0] = 0;
    run_seconds(&simulation, 20, (const double[3]){0, 0, 1});
    simulation.pids[0] = simulation.pids[2];
    simulation.pids[2] = 0;
    run_seconds(&simulation, 90, BOTH);
    pipeline_finish(pipeline);
    assert_true(confidence(pipeline, 12) < 0.5);
    pipeline_free(pipeline);
}

/* The time of a process that lives for two seconds is hardly known. */
static void nobody_is_sure_of_a_process_that_lived_for_two_seconds(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());

    (void)state;
    simulation_begin(&simulation, pipeline);
    teach(&simulation);
    simulation.pids[1] = 0;
    run_seconds(&simulation, 3, FIRST);
    simulation.pids[1] = 13;
    run_seconds(&simulation, 2, BOTH);
    simulation.pids[1] = 0;
    run_seconds(&simulation, 70, FIRST);
    pipeline_finish(pipeline);
    assert_true(confidence(pipeline, 11) > 0.8);
    assert_true(confidence(pipeline, 13) < 0.3);
    pipeline_free(pipeline);
}

struct memory {
    bool is_shown;
    uint64_t known, used, suspended;
};

static void assert_memory(const struct pipeline *pipeline, struct memory expected)
{
    struct snapshot *snapshot = books(pipeline);

    assert_int_equal(snapshot->gpus[0].has_program_memory, expected.is_shown);
    assert_int_equal(snapshot->gpus[0].programs_known, expected.known);
    assert_int_equal(snapshot->gpus[0].processes_recalled, expected.used);
    assert_int_equal(snapshot->gpus[0].processes_suspended, expected.suspended);
    close_books(snapshot);
}

static void the_memory_counts_programs_and_the_processes_that_are_there(void **state)
{
    static const struct identity alone[] = {{11, 1000, {101, 201}}, {12, 1000, {102, 202}}};
    static const struct identity pair[] = {{21, 1000, {101, 201}}, {22, 1000, {102, 202}}};
    static const struct identity swapped[] = {{21, 1000, {103, 203}}, {22, 1000, {101, 201}}};
    struct simulation simulation = two_loads(), other = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());

    (void)state;
    assert_memory(pipeline, (struct memory){.is_shown = true});
    run_pair(&simulation, pipeline, alone, pair, BOTH);
    assert_memory(pipeline, (struct memory){true, .known = 2, .used = 2});
    simulation.pids[0] = simulation.pids[1] = 0;
    run_seconds(&simulation, 90, (const double[3]){0}); /* until their windows are settled */
    assert_memory(pipeline, (struct memory){true, .known = 2});
    pipeline_free(pipeline);

    pipeline = pipeline_with(intensity_options());
    run_pair(&other, pipeline, alone, swapped, BOTH);
    for (int i = 0; i < 4; i++) /* the mixture changes, and shows who draws what */
        run_seconds(&other, 15, i % 2 == 0 ? FIRST : SECOND_ONE);
    /* The unknown program was learned in company by now. */
    assert_memory(pipeline, (struct memory){true, .known = 3, .suspended = 1});
    pipeline_free(pipeline);
}

static void a_board_without_the_estimator_shows_no_memory_of_programs(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    run_shared_second(pipeline);
    assert_memory(pipeline, (struct memory){0});
    pipeline_free(pipeline);
}

/* A list of clients beside the server, which wins all samples. */
static void list_clients(const struct simulation *simulation, const uint32_t pids[4])
{
    list(simulation->pipeline, 0, simulation->now_us, SAMPLE_LIST_MPS, pids);
}

/* A client of 100 W and one of 30 W, each alone and both together, three times. */
static void run_client_phases(struct simulation *simulation, const double *parts)
{
    static const double watts[] = {100, 30, 130};
    static const uint32_t clients[][4] = {{11}, {12}, {11, 12}};

    for (int phase = 0; phase < 9; phase++) {
        simulation->gpu.loads[0].watts = watts[phase % 3];
        for (int second = 0; second < 20; second++) {
            list_clients(simulation, clients[phase % 3]);
            run_seconds(simulation, 1, parts);
        }
    }
}

static void clients_are_charged_what_they_drew_alone(void **state)
{
    struct simulation simulation = {.gpu = {.idle_watts = 100, .count = 1, .loads = {{100, {0.5}}}},
                                    .pids = {10}};
    struct pipeline *pipeline = pipeline_with(intensity_options());
    double share;

    (void)state;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[]){0});
    run_client_phases(&simulation, (const double[]){1});
    pipeline_finish(pipeline);
    share = (double)active_uj(pipeline, 11) /
            (double)(active_uj(pipeline, 11) + active_uj(pipeline, 12));
    assert_true(fabs(share - 10.0 / 13) < 0.03);
    pipeline_free(pipeline);
}

enum { MANY_CLIENTS = 40 };

/* So many clients, from pid 101 on, beside the server. */
static void run_many_clients(struct simulation *simulation, size_t count, size_t seconds)
{
    struct sample_listed entries[MANY_CLIENTS];

    for (size_t i = 0; i < count; i++)
        entries[i] = (struct sample_listed){(uint32_t)(101 + i), 1 << 20, SAMPLE_NO_INSTANCE,
                                            SAMPLE_NO_INSTANCE};
    for (size_t second = 0; second < seconds; second++) {
        feed(
            simulation->pipeline,
            (struct sample){.kind = SAMPLE_LIST,
                            .t_us = simulation->now_us,
                            .list = {.kind = SAMPLE_LIST_MPS, .count = count, .entries = entries}});
        run_seconds(simulation, 1, (const double[]){1});
    }
}

/* The last of them get places when others leave, while windows of before are not settled yet. */
static void clients_beyond_the_places_of_a_board_pay_as_those_with_one(void **state)
{
    struct simulation simulation = {.gpu = {.idle_watts = 100, .count = 1, .loads = {{400, {0.5}}}},
                                    .pids = {10}};
    struct pipeline *pipeline = pipeline_with(intensity_options());
    double equal_uj = 400e6 * 30 / MANY_CLIENTS;
    size_t stay = MANY_CLIENTS / 2;

    (void)state;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[]){0});
    run_many_clients(&simulation, MANY_CLIENTS, 30);
    simulation.gpu.loads[0].watts = 200;
    run_many_clients(&simulation, stay, 10);
    pipeline_finish(pipeline);
    for (uint32_t pid = 101; pid < 101 + MANY_CLIENTS; pid++) {
        struct snapshot_process process = process_on(pipeline, 0, pid);
        double later_uj = pid < 101 + stay ? 200e6 * 10 / (double)stay : 0;

        assert_true(fabs((double)process.active_uj / (equal_uj + later_uj) - 1) < 0.1);
        assert_true((double)process.uncertain_uj > 0.9 * (double)process.active_uj);
        assert_true(confidence(pipeline, pid) < 0.05);
    }
    pipeline_free(pipeline);
}

/* From here on: pid 13 is listed and does nothing, as an X server on a board for compute. */

static bool is_resting(const struct pipeline *pipeline, uint32_t pid)
{
    const struct gpu_learning *learning = pipeline->gpus[0]->learning;

    return learning->slots.resting & 1U << (tenant_of(pipeline, pid) - learning->tenants.all);
}

static void who_had_no_sample_for_20_seconds_rests_until_the_next(void **state)
{
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());

    (void)state;
    simulation.pids[2] = 13;
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 20, BOTH); /* the last list is a second old */
    assert_false(is_resting(pipeline, 13));
    run_seconds(&simulation, 1, BOTH);
    assert_true(is_resting(pipeline, 13));
    assert_false(is_resting(pipeline, 11) || is_resting(pipeline, 12));
    run_seconds(&simulation, 1, (const double[]){0, 0, 1});
    assert_false(is_resting(pipeline, 13));
    run_seconds(&simulation, 20, BOTH); /* not since it came, but since it worked */
    assert_false(is_resting(pipeline, 13));
    run_seconds(&simulation, 1, BOTH);
    assert_true(is_resting(pipeline, 13));
    pipeline_free(pipeline);
}

static void who_rests_keeps_nobody_from_being_alone_and_pays_nothing(void **state)
{
    static const struct identity alone[] = {{11, 1000, {101, 201}}, {12, 1000, {102, 202}}};
    static const struct identity pair[] = {{21, 1000, {101, 201}}, {22, 1000, {102, 202}}};
    struct simulation simulation = two_loads();
    struct pipeline *pipeline = pipeline_with(intensity_options());
    double matrices_j, streams_j;

    (void)state;
    simulation.pids[2] = 13;
    run_pair(&simulation, pipeline, alone, pair, BOTH);
    pipeline_finish(pipeline);
    matrices_j = (double)active_uj(pipeline, 21);
    streams_j = (double)active_uj(pipeline, 22);
    assert_true(fabs(matrices_j / (matrices_j + streams_j) - 500.0 / 700) < 0.02);
    assert_int_equal(active_uj(pipeline, 13), 0);
    pipeline_free(pipeline);
}

/* Its load is its neighbour's, or another. */
static void who_wakes_is_charged_from_then_on(void **state)
{
    const struct load loads[] = {MATRICES, STREAMS};

    (void)state;
    for (size_t l = 0; l < ARRAY_SIZE(loads); l++) {
        struct simulation simulation = two_loads();
        struct pipeline *pipeline = pipeline_with(intensity_options());
        double used_j = 0;

        simulation.gpu.loads[2] = loads[l];
        simulation.pids[2] = 13;
        simulation_begin(&simulation, pipeline);
        run_seconds(&simulation, 25, (const double[3]){0});
        run_seconds(&simulation, 5, FIRST);
        for (size_t i = 0; i < 100; i++) {
            static const double turns[][3] = {{0, 0, 1}, {0.5, 0, 0.5}};

            used_j += simulation_run(&simulation, turns[i / 10 % 2]).used[2];
        }
        pipeline_finish(pipeline);
        assert_true(fabs((double)active_uj(pipeline, 13) / 1e6 / used_j - 1) < 0.03);
        pipeline_free(pipeline);
    }
}

/* Two clients of MPS, beside it. The server wins all samples. */
static void who_rests_beside_clients_of_mps_changes_nothing_for_them(void **state)
{
    struct simulation simulation = {
        .gpu = {.idle_watts = 100, .count = 2, .loads = {{100, {0.5}}, MATRICES}},
        .pids = {10, 13}};
    struct pipeline *pipeline = pipeline_with(intensity_options());
    double share;

    (void)state;
    identify(pipeline, 0, T0, 10, T0, "mps", "nvidia-cuda-mps-server");
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 25, (const double[2]){0});
    run_client_phases(&simulation, (const double[]){1, 0});
    pipeline_finish(pipeline);
    share = (double)active_uj(pipeline, 11) /
            (double)(active_uj(pipeline, 11) + active_uj(pipeline, 12));
    assert_true(fabs(share - 10.0 / 13) < 0.03);
    assert_int_equal(active_uj(pipeline, 13), 0);
    pipeline_free(pipeline);
}

/* 11 and 12 are clients of 10, and 13, which draws less, takes turns with them. Nobody was seen
 * without the others: samples tell 13 from MPS, and nobody tells the clients apart. */
static void clients_beside_an_unknown_process_may_have_used_all_or_nothing(void **state)
{
    struct simulation simulation = {
        .gpu = {.idle_watts = 100, .count = 2, .loads = {{400, {0.5}}, {200, {0.2}}}},
        .pids = {10, 13}};
    struct pipeline *pipeline = pipeline_with(intensity_options());

    (void)state;
    identify(pipeline, 0, T0, 10, T0, "mps", "nvidia-cuda-mps-server");
    simulation_begin(&simulation, pipeline);
    run_seconds(&simulation, 10, (const double[2]){0});
    for (int second = 0; second < 60; second++) {
        list_clients(&simulation, (const uint32_t[4]){11, 12});
        run_seconds(&simulation, 1, (const double[2]){0.5, 0.5});
    }
    pipeline_finish(pipeline);
    for (uint32_t pid = 11; pid <= 13; pid++) {
        struct snapshot_process process = process_on(pipeline, 0, pid);

        assert_true(process.active_uj > 1000 * JOULE);
        assert_true((double)process.uncertain_uj >
                    (pid == 13 ? 0.6 : 0.9) * (double)process.active_uj);
        assert_true(confidence(pipeline, pid) < 0.05);
    }
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_learned_divides_the_time_together),
        cmocka_unit_test(parts_that_never_change_are_the_time_share_without_confidence),
        cmocka_unit_test(before_anything_is_known_a_share_is_as_uncertain_as_time_shares_are),
        cmocka_unit_test(samples_of_unknown_processes_make_the_shares_of_others_uncertain),
        cmocka_unit_test(what_a_process_used_alone_is_not_uncertain),
        cmocka_unit_test(the_uncertainty_of_a_learned_share_is_a_bound_of_its_error),
        cmocka_unit_test(only_what_the_estimator_divides_has_an_uncertainty),
        cmocka_unit_test(a_new_process_is_charged_by_its_samples_until_more_is_known),
        cmocka_unit_test(samples_of_an_unknown_pid_are_not_charged_to_known_processes),
        cmocka_unit_test(on_a_board_that_was_away_a_process_has_a_place_anew),
        cmocka_unit_test(a_program_that_ran_alone_is_known_when_it_comes_back),
        cmocka_unit_test(with_other_values_it_is_known_by_its_coarse_key),
        cmocka_unit_test(what_was_learned_is_not_for_other_programs_or_tenants),
        cmocka_unit_test(a_memory_that_nothing_could_contradict_does_not_count),
        cmocka_unit_test(a_memory_that_the_board_contradicts_does_not_count),
        cmocka_unit_test(programs_that_were_never_alone_are_known_by_what_was_learned_in_company),
        cmocka_unit_test(nobody_gains_by_a_light_program_under_the_name_of_a_heavy_one),
        cmocka_unit_test(a_process_that_was_alone_is_not_lost_beside_an_unknown_one),
        cmocka_unit_test(nobody_is_sure_of_a_mixture_that_began_once),
        cmocka_unit_test(nobody_is_sure_of_a_process_that_lived_for_two_seconds),
        cmocka_unit_test(the_memory_counts_programs_and_the_processes_that_are_there),
        cmocka_unit_test(a_board_without_the_estimator_shows_no_memory_of_programs),
        cmocka_unit_test(clients_are_charged_what_they_drew_alone),
        cmocka_unit_test(clients_beyond_the_places_of_a_board_pay_as_those_with_one),
        cmocka_unit_test(who_had_no_sample_for_20_seconds_rests_until_the_next),
        cmocka_unit_test(who_rests_keeps_nobody_from_being_alone_and_pays_nothing),
        cmocka_unit_test(who_wakes_is_charged_from_then_on),
        cmocka_unit_test(who_rests_beside_clients_of_mps_changes_nothing_for_them),
        cmocka_unit_test(clients_beside_an_unknown_process_may_have_used_all_or_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
