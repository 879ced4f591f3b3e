/* attribution/gpu/gpu_mig: a board in MIG mode. Its energy is divided among its instances, and in
 * each among the processes; the books balance whatever happens to the layout. */
#include "pipeline_fixture.h"

#include <math.h>

#include "random.h"

#define IDLE_W 70 /* of the whole board, with or without contexts */

enum { BIG = 1, SMALL = 5, TINY = 13, SLICES = 7, SECONDS_IDLE = 5 };

/* 4g, 2g and, if it is there, 1g; one or two slices are free otherwise. */
static const struct sample_instance instances[] = {
    {BIG, 0, 0, "MIG-big", "4g.40gb", 4, 4, 64, 0, {0}},
    {SMALL, 0, 1, "MIG-small", "2g.20gb", 2, 2, 32, 0, {0}},
    {TINY, 0, 2, "MIG-tiny", "1g.10gb", 1, 1, 16, 0, {0}},
};

static const uint32_t ids[] = {BIG, SMALL, TINY};

/* What the units of this board draw, fully active on all of it: not what the exporter begins with.
 */
static const double TRUE_WATTS[] = {[UNIT_SM] = 60, [UNIT_TENSOR] = 600, [UNIT_DRAM] = 400};

struct act {
    uint32_t pid; /* 0: nobody */
    double sm, tensor, dram;
};

struct mig_rig {
    struct pipeline *pipeline;
    struct act acts[3]; /* by instance */
    double eased[3];    /* the part of their watts that easy data saves; GPM does not show it */
    size_t instance_count;
    bool has_gpm;
    uint64_t now_us;
    double counter_j;
    double truth_j[3];
};

static struct pipeline_options mig_options(void)
{
    struct pipeline_options options = default_options();

    options.gpu.attribution = ATTRIBUTION_INTENSITY;
    options.gpu.patience_us = 20 * SECOND;
    return options;
}

static void set_layout(struct mig_rig *rig, const struct sample_instance *items, size_t count,
                       bool is_mig)
{
    feed(rig->pipeline,
         (struct sample){.kind = SAMPLE_LAYOUT,
                         .t_us = rig->now_us,
                         .layout = {is_mig ? LAYOUT_MIG : LAYOUT_WHOLE, is_mig ? SLICES : 0,
                                    is_mig ? 112 : 0, is_mig ? count : 0, items}});
    rig->instance_count = is_mig ? count : 0;
}

static struct mig_rig open_rig(struct pipeline_options options, size_t instance_count)
{
    struct mig_rig rig = {.pipeline = pipeline_with(options), .has_gpm = true, .now_us = T0};

    set_layout(&rig, instances, instance_count, true);
    energy(rig.pipeline, 0, rig.now_us, 0);
    return rig;
}

static void list_acts(const struct mig_rig *rig)
{
    struct sample_listed entries[3];
    size_t count = 0;

    for (size_t i = 0; i < 3; i++)
        if (rig->acts[i].pid > 0)
            entries[count++] = (struct sample_listed){rig->acts[i].pid, 1 << 20, ids[i], 0};
    feed(rig->pipeline, (struct sample){.kind = SAMPLE_LIST,
                                        .t_us = rig->now_us,
                                        .list = {SAMPLE_LIST_COMPUTE, count, entries}});
}

static void read_gpm(const struct mig_rig *rig, size_t i)
{
    const struct act *act = &rig->acts[i];
    bool is_busy = act->sm > 0;

    feed(rig->pipeline,
         (struct sample){.kind = SAMPLE_GPM,
                         .t_us = rig->now_us,
                         .gpm = {.valid = 0x3ff,
                                 .instance = ids[i],
                                 .millipercent = {is_busy ? 100000 : 0, (uint32_t)(act->sm * 1e5),
                                                  0, 0, (uint32_t)(act->tensor * 1e5), 0,
                                                  (uint32_t)(act->dram * 1e5)}}});
}

static double watts_of_act(size_t i, const struct act *act)
{
    double part = instances[i].sm_count / 112.0;

    return part * (TRUE_WATTS[UNIT_SM] * act->sm + TRUE_WATTS[UNIT_TENSOR] * act->tensor +
                   TRUE_WATTS[UNIT_DRAM] * act->dram);
}

/* As the source reads a board: lists and GPM five times a second, energy once. */
static void run_second(struct mig_rig *rig)
{
    for (int fifth = 0; fifth < 5; fifth++) {
        rig->counter_j += IDLE_W / 5.0;
        for (size_t i = 0; i < 3; i++) {
            double joules = (1 - rig->eased[i]) * watts_of_act(i, &rig->acts[i]) / 5;

            rig->counter_j += joules;
            rig->truth_j[i] += joules;
        }
        rig->now_us += SECOND / 5;
        list_acts(rig);
        for (size_t i = 0; i < rig->instance_count && rig->has_gpm; i++)
            if (rig->acts[i].pid > 0)
                read_gpm(rig, i);
    }
    energy(rig->pipeline, 0, rig->now_us, (uint64_t)(rig->counter_j * 1e6));
}

static void run(struct mig_rig *rig, size_t seconds)
{
    for (size_t i = 0; i < seconds; i++)
        run_second(rig);
}

/* A board without contexts first: it shows the floor. */
static void idle_first(struct mig_rig *rig)
{
    run(rig, SECONDS_IDLE);
}

static double active_j(const struct mig_rig *rig, uint32_t pid)
{
    return (double)process_on(rig->pipeline, 0, pid).active_uj / 1e6;
}

static void assert_near(double value, double expected, double relative)
{
    if (fabs(value - expected) > relative * fabs(expected))
        fail_msg("%f is not %f", value, expected);
}

static void end(struct mig_rig *rig)
{
    assert_int_equal(pipeline_finish(rig->pipeline), 0);
    close_books(books(rig->pipeline));
}

static void instances_are_charged_by_the_activity_of_their_units(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 3);
    struct random_source random = {3};

    (void)state;
    idle_first(&rig);
    for (int i = 0; i < 60; i++) {
        for (size_t k = 0; k < 3; k++)
            rig.acts[k] = (struct act){(uint32_t)(10 + k), random_part(&random),
                                       random_part(&random), random_part(&random)};
        run_second(&rig);
    }
    end(&rig);
    for (size_t k = 0; k < 3; k++) {
        assert_near(active_j(&rig, (uint32_t)(10 + k)), rig.truth_j[k], 0.1);
        assert_int_equal(process_on(rig.pipeline, 0, (uint32_t)(10 + k)).measured_uj, 0);
    }
    pipeline_free(rig.pipeline);
}

/* Activity that never varies teaches little: then it is what units draw on other boards. */
static void before_anything_is_learned_units_draw_what_they_do_on_other_boards(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);
    double share;

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.8, 0.1};
    rig.acts[1] = (struct act){11, 1, 0, 0.5};
    run(&rig, 3);
    end(&rig);
    share = active_j(&rig, 10) / (active_j(&rig, 10) + active_j(&rig, 11));
    /* 64 SMs x (10 + 0.8 x 880 + 0.1 x 610) against 32 x (10 + 0.5 x 610), in watts of an H200. */
    assert_near(share, 64 * 775.0 / (64 * 775 + 32 * 315), 0.06);
    assert_true(process_on(rig.pipeline, 0, 11).known_uj <
                process_on(rig.pipeline, 0, 11).active_uj / 2); /* and nobody is sure */
    pipeline_free(rig.pipeline);
}

/* Two instances whose units look the same; one works on data that takes half of the power. */
static void assert_covered(const struct mig_rig *rig)
{
    for (size_t k = 0; k < 2; k++) {
        struct snapshot_process process = process_on(rig->pipeline, 0, (uint32_t)(10 + k));
        double off_j = fabs((double)process.active_uj / 1e6 - rig->truth_j[k]);

        assert_true(off_j > 0.1 * rig->truth_j[k]);
        assert_true(off_j <= (double)process.uncertain_uj / 1e6);
    }
}

static void data_that_saves_power_in_a_mixture_that_never_varies_is_within_the_uncertainty(
    void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.6, 0.3};
    rig.acts[1] = (struct act){11, 1, 0.6, 0.3};
    rig.eased[1] = 0.5;
    run(&rig, 100);
    end(&rig);
    assert_covered(&rig);
    assert_true(process_on(rig.pipeline, 0, 10).known_uj <
                process_on(rig.pipeline, 0, 10).active_uj / 4);
    pipeline_free(rig.pipeline);
}

static void so_it_is_if_the_other_instance_had_worked_alone_before(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.6, 0.3};
    run(&rig, 60);
    rig.acts[1] = (struct act){11, 1, 0.6, 0.3};
    rig.eased[1] = 0.5;
    run(&rig, 180);
    end(&rig);
    assert_covered(&rig);
    assert_true(process_on(rig.pipeline, 0, 11).known_uj <
                process_on(rig.pipeline, 0, 11).active_uj / 4);
    pipeline_free(rig.pipeline);
}

static void the_floor_is_divided_by_slices_and_that_of_free_ones_is_idle(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2); /* 6 of 7 slices */
    uint64_t before;

    (void)state;
    idle_first(&rig);
    assert_int_equal(pipeline_finish(rig.pipeline), 0);
    before = unowned_uj(rig.pipeline, UNOWNED_IDLE);
    assert_int_equal(before, (SECONDS_IDLE)*IDLE_W * JOULE);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    run(&rig, 10);
    end(&rig);
    /* The process has the floor of its 4 slices; 2 are of an instance without a process, 1 is free.
     */
    assert_near((double)process_on(rig.pipeline, 0, 10).idle_uj / 1e6, 10 * IDLE_W * 4.0 / 7, 0.01);
    assert_near((double)(unowned_uj(rig.pipeline, UNOWNED_IDLE) - before) / 1e6,
                10 * IDLE_W * 3.0 / 7, 0.01);
    assert_int_equal(unowned_uj(rig.pipeline, UNOWNED_UNATTRIBUTED), 0);
    pipeline_free(rig.pipeline);
}

static void a_process_at_rest_is_charged_no_floor_and_nothing_active(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 3);

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    rig.acts[1] = (struct act){11, 0, 0, 0};
    run(&rig, 10);
    end(&rig);
    assert_near(active_j(&rig, 10), rig.truth_j[0], 0.01);
    assert_true(process_on(rig.pipeline, 0, 11).active_uj < JOULE);
    assert_true(process_on(rig.pipeline, 0, 11).idle_uj < JOULE);
    assert_true(process_on(rig.pipeline, 0, 10).known_uj >
                process_on(rig.pipeline, 0, 10).active_uj * 9 / 10); /* nobody else did anything */
    pipeline_free(rig.pipeline);
}

static void without_gpm_instances_with_processes_are_charged_by_slices_and_nobody_is_sure(
    void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 3);

    (void)state;
    rig.has_gpm = false;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    rig.acts[1] = (struct act){11, 1, 0, 0.5};
    run(&rig, 10);
    end(&rig);
    assert_near(active_j(&rig, 10), 2 * active_j(&rig, 11), 0.001);
    for (uint32_t pid = 10; pid < 12; pid++) {
        struct snapshot_process process = process_on(rig.pipeline, 0, pid);

        assert_true(process.known_uj <= process.idle_uj);
        assert_true(process.uncertain_uj + JOULE > process.active_uj);
    }
    pipeline_free(rig.pipeline);
}

/* However much larger its instance is: its context may be idle. */
static void without_gpm_a_large_instance_is_no_surer_than_a_small_one(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 3);

    (void)state;
    rig.has_gpm = false;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 0, 0, 0};
    rig.acts[2] = (struct act){12, 1, 0.5, 0};
    run(&rig, 10);
    end(&rig);
    for (uint32_t pid = 10; pid < 13; pid += 2) {
        struct snapshot_process process = process_on(rig.pipeline, 0, pid);

        assert_true(process.active_uj > 10 * JOULE);
        assert_true(process.known_uj <= process.idle_uj);
        assert_true(process.uncertain_uj + JOULE > process.active_uj);
    }
    pipeline_free(rig.pipeline);
}

static void without_gpm_an_instance_that_has_the_only_process_is_certain(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 3);
    struct snapshot_process process;

    (void)state;
    rig.has_gpm = false;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    run(&rig, 10);
    end(&rig);
    process = process_on(rig.pipeline, 0, 10);
    assert_true(process.known_uj + JOULE > process.active_uj);
    assert_int_equal(process.uncertain_uj, 0);
    pipeline_free(rig.pipeline);
}

static void so_it_is_with_the_time_share(void **state)
{
    struct mig_rig rig = open_rig(default_options(), 2);

    (void)state;
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    rig.acts[1] = (struct act){11, 1, 0, 0.5};
    run(&rig, 10);
    end(&rig);
    assert_near((double)process_uj(rig.pipeline, 10), 2.0 * (double)process_uj(rig.pipeline, 11),
                0.001);
    pipeline_free(rig.pipeline);
}

/* Two in one instance, as compute instances of 1 and 3 slices. */
static const struct sample_instance split[] = {
    {BIG, 0, 0, "MIG-a", "1c.4g.40gb", 4, 1, 16, 0, {0}},
    {BIG, 1, 1, "MIG-b", "3c.4g.40gb", 4, 3, 48, 0, {0}}};

static void compute_instances_of_unknown_programs_are_charged_by_their_slices(void **state)
{
    static const struct sample_listed entries[] = {{10, 1 << 20, BIG, 0}, {11, 1 << 20, BIG, 1}};
    struct mig_rig rig = open_rig(mig_options(), 1);
    struct snapshot *snapshot;

    (void)state;
    set_layout(&rig, split, 2, true);
    for (int i = 0; i < 10; i++) {
        rig.now_us += SECOND;
        feed(rig.pipeline, (struct sample){.kind = SAMPLE_LIST,
                                           .t_us = rig.now_us - SECOND / 2,
                                           .list = {SAMPLE_LIST_COMPUTE, 2, entries}});
        energy(rig.pipeline, 0, rig.now_us, (uint64_t)(i + 1) * 100 * JOULE);
    }
    end(&rig);
    assert_near((double)process_uj(rig.pipeline, 11), 3.0 * (double)process_uj(rig.pipeline, 10),
                0.001);
    snapshot = books(rig.pipeline);
    assert_int_equal(snapshot->gpus[0].instance_count, 1);
    assert_string_equal(snapshot->gpus[0].instances[0].profile, "4g.40gb");
    assert_int_equal(snapshot->gpus[0].mig_device_count, 2);
    assert_string_equal(snapshot->gpus[0].mig_devices[1].profile, "3c.4g.40gb");
    assert_string_equal(snapshot->gpus[0].mig_devices[1].uuid, "MIG-b");
    assert_int_equal(snapshot->gpus[0].sharing, GPU_SHARING_MIG);
    close_books(snapshot);
    pipeline_free(rig.pipeline);
}

/* Three processes, two of them in the smaller compute instance. GPM shows the instance as a whole.
 */
static void also_where_gpm_shows_what_the_instance_did(void **state)
{
    static const struct sample_listed entries[] = {
        {10, 1 << 20, BIG, 0}, {11, 1 << 20, BIG, 0}, {12, 1 << 20, BIG, 1}};
    struct mig_rig rig = open_rig(mig_options(), 1);

    (void)state;
    set_layout(&rig, split, 2, true);
    rig.acts[0] = (struct act){10, 0.8, 0.3, 0.2};
    for (int i = 0; i < 50; i++) {
        rig.now_us += SECOND / 5;
        feed(rig.pipeline, (struct sample){.kind = SAMPLE_LIST,
                                           .t_us = rig.now_us,
                                           .list = {SAMPLE_LIST_COMPUTE, 3, entries}});
        read_gpm(&rig, 0);
        energy(rig.pipeline, 0, rig.now_us, (uint64_t)(i + 1) * 20 * JOULE);
    }
    end(&rig);
    assert_near((double)process_uj(rig.pipeline, 11), (double)process_uj(rig.pipeline, 10), 0.001);
    assert_near((double)process_uj(rig.pipeline, 12), 6.0 * (double)process_uj(rig.pipeline, 10),
                0.01);
    pipeline_free(rig.pipeline);
}

static void identify_program(struct mig_rig *rig, uint32_t pid, uint64_t key)
{
    feed(rig->pipeline, (struct sample){.kind = SAMPLE_PROCESS,
                                        .t_us = rig->now_us,
                                        .process = {.pid = pid,
                                                    .uid = 1000,
                                                    .start_us = T0 + pid,
                                                    .cgroup = "train.service",
                                                    .name = "python3",
                                                    .program = {key, key + 1000}}});
}

static void list_two(struct mig_rig *rig, uint32_t first, uint32_t second)
{
    const struct sample_listed entries[] = {{first, 1 << 20, BIG, 0}, {second, 1 << 20, BIG, 0}};

    feed(rig->pipeline, (struct sample){.kind = SAMPLE_LIST,
                                        .t_us = rig->now_us,
                                        .list = {SAMPLE_LIST_COMPUTE, 2, entries}});
}

static void list_two_in(struct mig_rig *rig, uint32_t a, size_t in_a, uint32_t b, size_t in_b)
{
    const struct sample_listed entries[] = {{a, 1 << 30, ids[in_a], 0}, {b, 1 << 30, ids[in_b], 0}};

    feed(rig->pipeline, (struct sample){.kind = SAMPLE_LIST,
                                        .t_us = rig->now_us,
                                        .list = {SAMPLE_LIST_COMPUTE, 2, entries}});
}

/* Two programs run in an instance, one after the other; then they are 20 and 21. */
static void show_alone(struct mig_rig *rig, size_t instance)
{
    static const struct act acts[] = {{10, 0.8, 0.7, 0.1}, {11, 0.6, 0, 0.8}};

    for (uint32_t k = 0; k < ARRAY_SIZE(acts); k++) {
        identify_program(rig, acts[k].pid, 77 + k);
        rig->acts[instance] = acts[k];
        run(rig, 8);
        rig->acts[instance] = (struct act){0};
        run(rig, 3);
        identify_program(rig, 20 + k, 77 + k);
    }
}

/* Both run there at once. */
static void processes_of_one_instance_are_unmixed_by_what_their_programs_showed_alone(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 1);
    double first_j, second_j;

    (void)state;
    idle_first(&rig);
    show_alone(&rig, 0);
    for (int second = 0; second < 30; second++) {
        double a = second % 2 == 0 ? 0.8 : 0.3, b = second % 3 == 0 ? 0.1 : 0.5;

        for (int fifth = 0; fifth < 5; fifth++) {
            rig.acts[0] = (struct act){20, 0.8 * a + 0.6 * b, 0.7 * a, 0.1 * a + 0.8 * b};
            rig.counter_j += (IDLE_W + watts_of_act(0, &rig.acts[0])) / 5;
            rig.now_us += SECOND / 5;
            list_two(&rig, 20, 21);
            read_gpm(&rig, 0);
        }
        rig.truth_j[1] += watts_of_act(0, &(struct act){20, 0.8 * a, 0.7 * a, 0.1 * a});
        rig.truth_j[2] += watts_of_act(0, &(struct act){21, 0.6 * b, 0, 0.8 * b});
        energy(rig.pipeline, 0, rig.now_us, (uint64_t)(rig.counter_j * 1e6));
    }
    end(&rig);
    first_j = active_j(&rig, 20);
    second_j = active_j(&rig, 21);
    assert_near(first_j / (first_j + second_j), rig.truth_j[1] / (rig.truth_j[1] + rig.truth_j[2]),
                0.06);
    pipeline_free(rig.pipeline);
}

static void what_a_program_showed_in_another_profile_says_nothing(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 3);
    double first_j, second_j;

    (void)state;
    idle_first(&rig);
    show_alone(&rig, 1);
    for (int second = 0; second < 10; second++) {
        rig.acts[0] = (struct act){20, 0.8, 0.5, 0.2};
        rig.counter_j += IDLE_W + watts_of_act(0, &rig.acts[0]);
        for (int fifth = 0; fifth < 5; fifth++) {
            rig.now_us += SECOND / 5;
            list_two(&rig, 20, 21);
            read_gpm(&rig, 0);
        }
        energy(rig.pipeline, 0, rig.now_us, (uint64_t)(rig.counter_j * 1e6));
    }
    end(&rig);
    first_j = active_j(&rig, 20);
    second_j = active_j(&rig, 21);
    assert_near(first_j, second_j, 0.001);
    pipeline_free(rig.pipeline);
}

static void work_in_an_instance_without_a_visible_process_is_unattributed(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    for (int i = 0; i < 10; i++) {
        rig.acts[1] = (struct act){0, 1, 0, 0.5};
        run_second(&rig);
        read_gpm(&rig, 1);
    }
    end(&rig);
    assert_true((double)unowned_uj(rig.pipeline, UNOWNED_UNATTRIBUTED) / 1e6 >
                0.5 * rig.truth_j[1]);
    pipeline_free(rig.pipeline);
}

/* It has the instance, so it is charged for what is done there, and not in the others. */
static void or_it_is_of_the_container_that_has_the_instance(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);
    struct attached *attached = calloc(1, sizeof(*attached));

    (void)state;
    assert_non_null(attached);
    *attached = (struct attached){.owner = {.kind = WORKLOAD_CONTAINER, .id = "box"},
                                  .units = 1,
                                  .is_candidate = true,
                                  .is_of_instance = true,
                                  .gpu_instance = SMALL};
    gpu_set_attached(rig.pipeline->gpus[0], attached, 1);
    idle_first(&rig);
    for (int i = 0; i < 10; i++) {
        rig.acts[0] = (struct act){0, 1, 0.5, 0};
        rig.acts[1] = (struct act){0, 1, 0, 0.5};
        run_second(&rig);
        read_gpm(&rig, 0);
        read_gpm(&rig, 1);
    }
    end(&rig);
    assert_true((double)workload_uj(rig.pipeline, WORKLOAD_CONTAINER, "box") / 1e6 >
                0.5 * rig.truth_j[1]);
    assert_true((double)unowned_uj(rig.pipeline, UNOWNED_UNATTRIBUTED) / 1e6 >
                0.5 * rig.truth_j[0]);
    pipeline_free(rig.pipeline);
}

static void use_memory(struct mig_rig *rig, uint32_t instance, uint64_t bytes)
{
    feed(rig->pipeline, (struct sample){.kind = SAMPLE_GAUGE,
                                        .t_us = rig->now_us,
                                        .gauge = {GPU_GAUGE_MEMORY_USED_BYTES, bytes, instance}});
}

/* Nothing shows what it does, but its memory shows that somebody is there. */
static void without_gpm_it_is_charged_by_slices_while_its_memory_is_in_use(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 3);
    struct attached *attached = calloc(2, sizeof(*attached));
    double box_j, active_total_j;

    (void)state;
    assert_non_null(attached);
    attached[0] = (struct attached){.owner = {.kind = WORKLOAD_CONTAINER, .id = "box"},
                                    .units = 1,
                                    .is_candidate = true,
                                    .is_of_instance = true,
                                    .gpu_instance = SMALL};
    attached[1] = attached[0]; /* its instance is empty: nothing was done there */
    attached[1].gpu_instance = TINY;
    snprintf(attached[1].owner.id, sizeof(attached[1].owner.id), "empty");
    gpu_set_attached(rig.pipeline->gpus[0], attached, 2);
    rig.has_gpm = false;
    idle_first(&rig);
    for (int i = 0; i < 10; i++) {
        use_memory(&rig, SMALL, 2ULL << 30);
        use_memory(&rig, TINY, 11 << 20);
        rig.acts[0] = (struct act){10, 1, 0.5, 0};
        rig.acts[1] = (struct act){0, 1, 0, 0.5};
        run_second(&rig);
    }
    end(&rig);
    active_total_j = rig.truth_j[0] + rig.truth_j[1];
    box_j = (double)workload_uj(rig.pipeline, WORKLOAD_CONTAINER, "box") / 1e6;
    /* Of the active energy 2 of the 6 slices in use, and of the floor 2 of 7. */
    assert_near(box_j, active_total_j * 2 / 6 + IDLE_W * 10 * 2.0 / SLICES, 0.01);
    assert_near(active_j(&rig, 10), active_total_j * 4 / 6, 0.01);
    assert_int_equal(workload_uj(rig.pipeline, WORKLOAD_CONTAINER, "empty"), 0);
    pipeline_free(rig.pipeline);
}

static void an_instance_with_memory_in_use_and_nobody_visible_is_not_idle(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);

    (void)state;
    rig.has_gpm = false;
    idle_first(&rig);
    for (int i = 0; i < 20; i++) {
        use_memory(&rig, SMALL, 2ULL << 30);
        rig.acts[1] = (struct act){0, 1, 0, 0.5};
        run_second(&rig);
    }
    end(&rig);
    assert_near((double)unowned_uj(rig.pipeline, UNOWNED_UNATTRIBUTED) / 1e6, rig.truth_j[1], 0.1);
    pipeline_free(rig.pipeline);
}

static struct attached box_in(const char *container_id, uint32_t instance)
{
    struct attached attached = {.owner = {.kind = WORKLOAD_POD},
                                .units = 1,
                                .is_candidate = true,
                                .is_allocated = true,
                                .is_named = true,
                                .is_of_instance = true,
                                .gpu_instance = instance};

    snprintf(attached.owner.id, sizeof(attached.owner.id), "%s", container_id);
    snprintf(attached.owner.container_id, sizeof(attached.owner.container_id), "%s", container_id);
    return attached;
}

/* Memory that no process has is of those in whose instances it is. */
static void unknown_memory_goes_to_the_instance_that_it_is_in(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 3);
    struct attached *attached = calloc(3, sizeof(*attached));
    struct snapshot *snapshot;

    (void)state;
    assert_non_null(attached);
    attached[0] = box_in("both", BIG);
    attached[1] = box_in("both", SMALL);
    attached[2] = box_in("empty", TINY);
    gpu_set_attached(rig.pipeline->gpus[0], attached, 3);
    for (int i = 0; i < 4; i++) {
        run_second(&rig);
        use_memory(&rig, SAMPLE_NO_INSTANCE, 3ULL << 30);
        use_memory(&rig, BIG, 2ULL << 30);
        use_memory(&rig, SMALL, 1ULL << 30);
        use_memory(&rig, TINY, 11 << 20);
    }
    snapshot = books(rig.pipeline);
    assert_int_equal(snapshot->container_count, 2); /* one for each container and GPU */
    assert_string_equal(snapshot->containers[0].container_id, "both");
    assert_true(snapshot->containers[0].has_bytes);
    assert_int_equal(snapshot->containers[0].bytes, 3ULL << 30);
    assert_string_equal(snapshot->containers[1].container_id, "empty");
    assert_false(snapshot->containers[1].has_bytes);
    close_books(snapshot);
    end(&rig);
    pipeline_free(rig.pipeline);
}

static void a_change_of_the_layout_is_followed_within_a_window(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    rig.acts[1] = (struct act){11, 1, 0, 0.5};
    run(&rig, 5);
    rig.acts[1] = (struct act){0};
    set_layout(&rig, instances, 1, true); /* the second one is destroyed */
    run(&rig, 5);
    set_layout(&rig, instances, 3, true);
    rig.acts[2] = (struct act){12, 1, 0, 1};
    run(&rig, 5);
    rig.acts[0] = rig.acts[2] = (struct act){0};
    set_layout(&rig, NULL, 0, false); /* MIG is off: a board like any other */
    run(&rig, 5);
    end(&rig);
    assert_near(active_j(&rig, 10) + active_j(&rig, 11) + active_j(&rig, 12),
                rig.truth_j[0] + rig.truth_j[1] + rig.truth_j[2], 0.02);
    assert_int_equal(unowned_uj(rig.pipeline, UNOWNED_UNATTRIBUTED), 0);
    assert_true(active_j(&rig, 12) > 0 && active_j(&rig, 11) > 0);
    assert_null(rig.pipeline->gpus[0]->mig);
    pipeline_free(rig.pipeline);
}

static void the_same_layout_again_changes_nothing(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);
    const struct gpu_mig *before = rig.pipeline->gpus[0]->mig;

    (void)state;
    set_layout(&rig, instances, 2, true);
    assert_ptr_equal(rig.pipeline->gpus[0]->mig, before);
    pipeline_free(rig.pipeline);
}

static const struct gpu_learning *learning_of(const struct mig_rig *rig, uint32_t instance)
{
    return gpu_mig_find(rig->pipeline->gpus[0]->mig, instance)->learning;
}

static void what_was_learned_of_an_instance_stays_when_its_index_changes(void **state)
{
    struct sample_instance second = instances[1];
    struct mig_rig rig = open_rig(mig_options(), 2);
    const struct gpu_learning *before = learning_of(&rig, second.gpu_instance);

    (void)state;
    assert_non_null(before);
    second.index = 0; /* the first one is destroyed */
    set_layout(&rig, &second, 1, true);
    assert_ptr_equal(learning_of(&rig, second.gpu_instance), before);
    assert_int_equal(
        gpu_mig_find(rig.pipeline->gpus[0]->mig, second.gpu_instance)->computes[0].index, 0);
    pipeline_free(rig.pipeline);
}

/* Old drivers do not say in which instance a process is. */
static void processes_of_no_known_instance_are_charged_together(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);

    (void)state;
    for (int i = 0; i < 5; i++) {
        rig.now_us += SECOND;
        LIST(rig.pipeline, rig.now_us - SECOND / 2, 10, 11);
        energy(rig.pipeline, 0, rig.now_us, (uint64_t)(i + 1) * 200 * JOULE);
    }
    end(&rig);
    assert_int_equal(process_uj(rig.pipeline, 10) + process_uj(rig.pipeline, 11) +
                         unowned_uj(rig.pipeline, UNOWNED_IDLE) +
                         unowned_uj(rig.pipeline, UNOWNED_UNATTRIBUTED),
                     1000 * JOULE);
    assert_true(process_uj(rig.pipeline, 10) > 300 * JOULE);
    pipeline_free(rig.pipeline);
}

static void a_board_without_instances_is_idle_or_unattributed(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 0);

    (void)state;
    run(&rig, 5);
    end(&rig);
    assert_int_equal(unowned_uj(rig.pipeline, UNOWNED_IDLE), 5 * IDLE_W * JOULE);
    pipeline_free(rig.pipeline);
}

static void hostile_layouts_keep_the_books_balanced(void **state)
{
    struct sample_instance many[SAMPLE_INSTANCES_MAX];
    struct mig_rig rig = open_rig(mig_options(), 3);

    (void)state;
    for (uint32_t i = 0; i < SAMPLE_INSTANCES_MAX; i++)
        many[i] = (struct sample_instance){.gpu_instance = i / 2 * UINT32_C(0x1234567),
                                           .compute_instance = i,
                                           .uuid = "",
                                           .profile = i % 3 == 0 ? "." : "c.",
                                           .slices = i % 5 == 0 ? 0 : 255};
    rig.acts[0] = (struct act){10, 1, 1, 1};
    run(&rig, 3);
    set_layout(&rig, many, SAMPLE_INSTANCES_MAX, true);
    rig.instance_count = 0;
    run(&rig, 3);
    set_layout(&rig, many, 1, true);
    rig.instance_count = 3;
    run(&rig, 3);
    end(&rig);
    pipeline_free(rig.pipeline);
}

static void an_instance_shows_its_power_and_utilisation(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);
    const struct gpu_instance *big;
    double watts;

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    run(&rig, 10);
    big = gpu_mig_find(rig.pipeline->gpus[0]->mig, BIG);
    assert_int_equal(big->gauges[GPU_GAUGE_UTILISATION_PERCENT].value, 100);
    watts = (double)big->gauges[GPU_GAUGE_POWER_MW].value / 1e3;
    assert_near(watts, watts_of_act(0, &rig.acts[0]) + IDLE_W * 4.0 / 7, 0.03);
    pipeline_free(rig.pipeline);
}

/* A board that worked from the start has not shown its idle level. */
static void an_instance_at_rest_shows_no_power_before_the_idle_level_is_known(void **state)
{
    const uint64_t power = 1ULL << GPU_GAUGE_POWER_MW;
    struct mig_rig rig = open_rig(mig_options(), 2);
    struct snapshot *snapshot;

    (void)state;
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    run(&rig, 5);
    snapshot = books(rig.pipeline);
    assert_true(snapshot->gpus[0].instances[0].valid & power);
    assert_false(snapshot->gpus[0].instances[1].valid & power);
    close_books(snapshot);
    pipeline_free(rig.pipeline);
}

static void an_instance_whose_last_process_left_shows_no_utilisation(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);
    struct snapshot *snapshot;

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    rig.acts[1] = (struct act){11, 1, 0, 0.5};
    run(&rig, 5);
    rig.acts[1] = (struct act){0};
    run(&rig, 1);
    snapshot = books(rig.pipeline);
    assert_int_equal(snapshot->gpus[0].instances[0].gpu_instance, BIG);
    assert_true(snapshot->gpus[0].instances[0].valid & 1ULL << GPU_GAUGE_UTILISATION_PERCENT);
    assert_false(snapshot->gpus[0].instances[1].valid & 1ULL << GPU_GAUGE_UTILISATION_PERCENT);
    close_books(snapshot);
    pipeline_free(rig.pipeline);
}

/* GPM is not read of an instance without a process, while windows of the board may wait. */
static void a_process_that_comes_to_an_instance_is_charged_for_its_own_time_only(void **state)
{
    struct pipeline_options options = mig_options();
    struct mig_rig rig;

    (void)state;
    options.gpu.patience_us = 60 * SECOND;
    rig = open_rig(options, 2);
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    rig.acts[1] = (struct act){11, 1, 0, 0.5};
    run(&rig, 4);
    rig.acts[1] = (struct act){0};
    run(&rig, 8);
    rig.truth_j[1] = 0;
    rig.acts[1] = (struct act){12, 1, 0, 0.5};
    run(&rig, 4);
    end(&rig);
    assert_int_equal(unowned_uj(rig.pipeline, UNOWNED_UNATTRIBUTED), 0);
    assert_near(active_j(&rig, 12), rig.truth_j[1], 0.2);
    pipeline_free(rig.pipeline);
}

/* Its windows wait for up to a minute; those before it moved are of the instance that it was in. */
static void a_process_that_moves_leaves_what_it_did_to_where_it_was(void **state)
{
    struct pipeline_options options = mig_options();
    struct mig_rig rig;

    (void)state;
    options.gpu.patience_us = 60 * SECOND;
    rig = open_rig(options, 3);
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 1, 0.5, 0};
    rig.acts[1] = (struct act){11, 1, 0, 0.1};
    run(&rig, 20);
    rig.acts[0] = (struct act){0};
    rig.acts[2] = (struct act){10, 0, 0, 0};
    run(&rig, 10);
    end(&rig);
    assert_true((double)unowned_uj(rig.pipeline, UNOWNED_UNATTRIBUTED) / 1e6 <
                0.1 * rig.truth_j[0]);
    assert_near(active_j(&rig, 10), rig.truth_j[0], 0.15);
    pipeline_free(rig.pipeline);
}

static void idle_energy_goes_by_its_policy_within_an_instance(void **state)
{
    static const struct {
        enum idle_policy policy;
        double idle_slices; /* of 7, without an owner; the rest is of the processes that hold
                               contexts */
    } cases[] = {{IDLE_POLICY_NONE, 7}, {IDLE_POLICY_EQUAL, 1}, {IDLE_POLICY_PROPORTIONAL, 3}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pipeline_options options = mig_options();
        struct mig_rig rig;
        uint64_t before;

        options.gpu.idle_policy = cases[i].policy;
        rig = open_rig(options, 2);
        idle_first(&rig);
        assert_int_equal(pipeline_finish(rig.pipeline), 0);
        before = unowned_uj(rig.pipeline, UNOWNED_IDLE);
        rig.acts[0] = (struct act){10, 1, 0.5, 0};
        rig.acts[1] = (struct act){11, 0, 0, 0};
        run(&rig, 10);
        end(&rig);
        assert_near((double)(unowned_uj(rig.pipeline, UNOWNED_IDLE) - before) / 1e6,
                    10 * IDLE_W * cases[i].idle_slices / 7, 0.01);
        pipeline_free(rig.pipeline);
    }
}

/* Watts above idle for a while, whatever units show. */
static void run_unseen(struct mig_rig *rig, size_t seconds, double watts)
{
    for (size_t i = 0; i < seconds; i++) {
        rig->counter_j += watts;
        run_second(rig);
    }
}

static void energy_that_no_unit_explains_is_uncertain_and_never_becomes_idle(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);
    struct snapshot_process process;

    (void)state;
    idle_first(&rig);
    rig.acts[0] = (struct act){.pid = 10}; /* decodes video, which GPM does not show */
    rig.acts[1] = (struct act){.pid = 11}; /* waits */
    run(&rig, 10);
    run_unseen(&rig, 200, 150);
    end(&rig);
    assert_near(active_j(&rig, 10) + active_j(&rig, 11), 200 * 150, 0.02);
    for (uint32_t pid = 10; pid <= 11; pid++) {
        process = process_on(rig.pipeline, 0, pid);
        assert_true(process.known_uj < process.active_uj / 10 + process.idle_uj);
        assert_true(process.uncertain_uj >= process.active_uj);
    }
    pipeline_free(rig.pipeline);
}

static void an_instance_without_gpm_does_not_move_the_idle_level(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);

    (void)state;
    idle_first(&rig);
    rig.acts[1] = (struct act){.pid = 11};
    run(&rig, 10);
    for (int i = 0; i < 100; i++) { /* a process whose instance has no GPM draws 200 W */
        rig.counter_j += IDLE_W + 200;
        rig.now_us += SECOND;
        list_two_in(&rig, 10, 0, 11, 1);
        read_gpm(&rig, 1);
        energy(rig.pipeline, 0, rig.now_us, (uint64_t)(rig.counter_j * 1e6));
    }
    end(&rig);
    assert_near(active_j(&rig, 10) + active_j(&rig, 11), 200 * 100, 0.02);
    pipeline_free(rig.pipeline);
}

static void an_mps_server_without_clients_is_no_context_of_its_instance(void **state)
{
    struct mig_rig rig = open_rig(mig_options(), 2);

    (void)state;
    rig.has_gpm = false;
    idle_first(&rig);
    identify(rig.pipeline, 0, rig.now_us, 10, 1, "mps", "nvidia-cuda-mps-server");
    rig.acts[0] = (struct act){.pid = 10};
    rig.acts[1] = (struct act){11, 1, 0.5, 0.5};
    run(&rig, 20);
    end(&rig);
    assert_int_equal(process_on(rig.pipeline, 0, 10).active_uj, 0);
    assert_near(active_j(&rig, 11), rig.truth_j[1], 0.01);
    pipeline_free(rig.pipeline);
}

/* The driver tells the SMs of compute instances, and GPM's percentages are of the GPU instance. */
static void an_instance_that_its_compute_instances_do_not_fill_is_as_large_as_its_slices(
    void **state)
{
    static const struct sample_instance unfilled[] = {
        {BIG, 0, 0, "MIG-a", "1c.4g.40gb", 4, 1, 16, 0, {0}},
        {SMALL, 0, 1, "MIG-small", "2g.20gb", 2, 2, 32, 0, {0}}};
    struct mig_rig rig = open_rig(mig_options(), 0);

    (void)state;
    set_layout(&rig, unfilled, 2, true);
    idle_first(&rig);
    rig.acts[0] = (struct act){10, 0.8, 0.3, 0.2};
    rig.acts[1] = (struct act){11, 0.8, 0.3, 0.2};
    run(&rig, 20);
    end(&rig);
    assert_near(active_j(&rig, 10), 2 * active_j(&rig, 11), 0.02);
    pipeline_free(rig.pipeline);
}

static void energy_beyond_what_a_light_neighbour_shows_is_uncertain_if_another_can_have_used_it(
    void **state)
{
    (void)state;
    for (uint32_t other = 0; other <= 10; other += 10) { /* 0: there is none */
        struct mig_rig rig = open_rig(mig_options(), 2);
        struct snapshot_process process;

        idle_first(&rig);
        rig.acts[0] = (struct act){.pid = other}; /* decodes video, which GPM does not show */
        rig.acts[1] = (struct act){11, 0.1, 0.01, 0.02};
        run(&rig, 10);
        run_unseen(&rig, 60, 150);
        end(&rig);
        process = process_on(rig.pipeline, 0, 11);
        assert_true(process.active_uj > 60 * 140 * JOULE);
        if (other) {
            assert_true(process.known_uj < process.active_uj / 5);
            assert_true(process.uncertain_uj > process.active_uj * 4 / 5);
        } else {
            assert_true(process.known_uj > process.active_uj * 9 / 10);
            assert_true(process.uncertain_uj < process.active_uj / 10);
        }
        pipeline_free(rig.pipeline);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instances_are_charged_by_the_activity_of_their_units),
        cmocka_unit_test(before_anything_is_learned_units_draw_what_they_do_on_other_boards),
        cmocka_unit_test(
            data_that_saves_power_in_a_mixture_that_never_varies_is_within_the_uncertainty),
        cmocka_unit_test(so_it_is_if_the_other_instance_had_worked_alone_before),
        cmocka_unit_test(the_floor_is_divided_by_slices_and_that_of_free_ones_is_idle),
        cmocka_unit_test(a_process_at_rest_is_charged_no_floor_and_nothing_active),
        cmocka_unit_test(
            without_gpm_instances_with_processes_are_charged_by_slices_and_nobody_is_sure),
        cmocka_unit_test(without_gpm_a_large_instance_is_no_surer_than_a_small_one),
        cmocka_unit_test(without_gpm_an_instance_that_has_the_only_process_is_certain),
        cmocka_unit_test(so_it_is_with_the_time_share),
        cmocka_unit_test(compute_instances_of_unknown_programs_are_charged_by_their_slices),
        cmocka_unit_test(also_where_gpm_shows_what_the_instance_did),
        cmocka_unit_test(an_instance_at_rest_shows_no_power_before_the_idle_level_is_known),
        cmocka_unit_test(an_instance_whose_last_process_left_shows_no_utilisation),
        cmocka_unit_test(a_process_that_comes_to_an_instance_is_charged_for_its_own_time_only),
        cmocka_unit_test(a_process_that_moves_leaves_what_it_did_to_where_it_was),
        cmocka_unit_test(processes_of_one_instance_are_unmixed_by_what_their_programs_showed_alone),
        cmocka_unit_test(what_a_program_showed_in_another_profile_says_nothing),
        cmocka_unit_test(work_in_an_instance_without_a_visible_process_is_unattributed),
        cmocka_unit_test(or_it_is_of_the_container_that_has_the_instance),
        cmocka_unit_test(without_gpm_it_is_charged_by_slices_while_its_memory_is_in_use),
        cmocka_unit_test(an_instance_with_memory_in_use_and_nobody_visible_is_not_idle),
        cmocka_unit_test(unknown_memory_goes_to_the_instance_that_it_is_in),
        cmocka_unit_test(a_change_of_the_layout_is_followed_within_a_window),
        cmocka_unit_test(the_same_layout_again_changes_nothing),
        cmocka_unit_test(what_was_learned_of_an_instance_stays_when_its_index_changes),
        cmocka_unit_test(processes_of_no_known_instance_are_charged_together),
        cmocka_unit_test(a_board_without_instances_is_idle_or_unattributed),
        cmocka_unit_test(hostile_layouts_keep_the_books_balanced),
        cmocka_unit_test(an_instance_shows_its_power_and_utilisation),
        cmocka_unit_test(idle_energy_goes_by_its_policy_within_an_instance),
        cmocka_unit_test(energy_that_no_unit_explains_is_uncertain_and_never_becomes_idle),
        cmocka_unit_test(an_instance_without_gpm_does_not_move_the_idle_level),
        cmocka_unit_test(an_mps_server_without_clients_is_no_context_of_its_instance),
        cmocka_unit_test(
            an_instance_that_its_compute_instances_do_not_fill_is_as_large_as_its_slices),
        cmocka_unit_test(
            energy_beyond_what_a_light_neighbour_shows_is_uncertain_if_another_can_have_used_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
