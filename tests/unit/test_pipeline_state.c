/* The state of a pipeline: what a restart keeps, and what it books as a gap. */
#include <errno.h>
#include <fcntl.h>

#include "core/fs.h"
#include "random.h"
#include "restart_fixture.h"
#include "simulation.h"

static const struct pipeline_resumption at_once = {.is_same_boot = true, .now_us = UINT64_MAX / 2};

/* Two processes of two units for ten seconds at 300 W, all settled. */
static struct pipeline *two_busy_units(uint64_t *ret_counter_uj)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t counter_uj = 7 * JOULE;

    identify(pipeline, 0, T0, 10, T0 - SECOND, "a.service", "trainer");
    identify(pipeline, 0, T0, 11, T0 - SECOND, "b.service", "server");
    energy(pipeline, 0, T0, counter_uj);
    for (uint64_t s = 0; s < 10; s++) {
        LIST(pipeline, T0 + s * SECOND + 1, 10, 11);
        utilisation(pipeline, 0, T0 + s * SECOND + 2, 100);
        label(pipeline, 0, T0 + s * SECOND + 3, 10, T0 + s * SECOND, 60);
        label(pipeline, 0, T0 + s * SECOND + 3, 11, T0 + s * SECOND + 1, 30);
        counter_uj = ticks(pipeline, 0, T0 + s * SECOND, T0 + (s + 1) * SECOND, counter_uj, 300);
    }
    assert_int_equal(pipeline_finish(pipeline), 0);
    *ret_counter_uj = counter_uj;
    return pipeline;
}

static void assert_same_accounts(const struct account *a, const struct account *b)
{
    assert_memory_equal(a->energy_uj, b->energy_uj, sizeof(a->energy_uj));
    assert_int_equal(a->known_uj, b->known_uj);
    assert_int_equal(a->uncertain_uj, b->uncertain_uj);
    assert_true(a->bill.emission == b->bill.emission && a->bill.cost == b->bill.cost &&
                a->bill.embodied == b->bill.embodied);
}

static void assert_same_books(const struct snapshot *a, const struct snapshot *b)
{
    assert_int_equal(a->meter_count, b->meter_count);
    for (size_t i = 0; i < a->meter_count; i++) {
        assert_int_equal(a->meters[i].energy_uj, b->meters[i].energy_uj);
        assert_true(a->meters[i].bill.embodied == b->meters[i].bill.embodied);
        assert_true(a->meters[i].bill.emission == b->meters[i].bill.emission);
        assert_string_equal(a->meters[i].meter_id, b->meters[i].meter_id);
        assert_memory_equal(a->meters[i].unowned_uj, b->meters[i].unowned_uj,
                            sizeof(a->meters[i].unowned_uj));
    }
    assert_int_equal(a->workload_count, b->workload_count);
    for (size_t i = 0; i < a->workload_count; i++) {
        assert_string_equal(a->workloads[i].id, b->workloads[i].id);
        assert_string_equal(a->workloads[i].names.pod, b->workloads[i].names.pod);
        assert_same_accounts(&a->workloads[i].account, &b->workloads[i].account);
    }
    assert_int_equal(a->process_count, b->process_count);
    for (size_t i = 0; i < a->process_count; i++) {
        assert_int_equal(a->processes[i].pid, b->processes[i].pid);
        assert_int_equal(a->processes[i].start_us, b->processes[i].start_us);
        assert_int_equal(a->processes[i].active_uj, b->processes[i].active_uj);
        assert_int_equal(a->processes[i].measured_uj, b->processes[i].measured_uj);
        assert_int_equal(a->processes[i].superseded, b->processes[i].superseded);
        assert_string_equal(a->processes[i].name, b->processes[i].name);
    }
}

static bool name_pod(void *context, const struct workload_owner *owner,
                     struct workload_names *ret_names)
{
    (void)context;
    *ret_names = (struct workload_names){.name = owner->id, .pod = "the-pod", .image = "an-image"};
    return true;
}

static void every_row_is_the_same_after_a_restart(void **state)
{
    uint64_t counter_uj;
    struct pipeline *pipeline = two_busy_units(&counter_uj);
    struct snapshot *before, *after;

    (void)state;
    pipeline_set_names(pipeline, name_pod, NULL);
    pipeline_fix_names(pipeline, T0 + 11 * SECOND);
    before = books(pipeline);
    assert_true(before->workload_count >= 2 && before->process_count == 2);
    pipeline = restart(pipeline, T0 + 60 * SECOND);
    after = books(pipeline);
    assert_same_books(before, after);
    close_books(before);
    close_books(after);
    pipeline_free(pipeline);
}

static void what_a_gpu_counted_meanwhile_is_a_gap_and_its_processes_go_on(void **state)
{
    uint64_t counter_uj, energy_uj, process_before_uj;
    struct pipeline *pipeline = two_busy_units(&counter_uj);

    (void)state;
    energy_uj = meter_uj(pipeline, 0);
    process_before_uj = process_uj(pipeline, 10);
    pipeline = restart(pipeline, T0 + 13 * SECOND);
    add_gpu(pipeline, 0);
    /* Three seconds would be a window, not a gap, if nobody had been away. */
    energy(pipeline, 0, T0 + 13 * SECOND, counter_uj += 900 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), 900 * JOULE);
    identify(pipeline, 0, T0 + 13 * SECOND, 10, T0 - SECOND, "a.service", "trainer");
    LIST(pipeline, T0 + 13 * SECOND + 1, 10);
    utilisation(pipeline, 0, T0 + 13 * SECOND + 2, 100);
    label(pipeline, 0, T0 + 13 * SECOND + 3, 10, T0 + 13 * SECOND + 2, 60);
    ticks(pipeline, 0, T0 + 13 * SECOND, T0 + 15 * SECOND, counter_uj, 300);
    assert_int_equal(pipeline_finish(pipeline), 0);
    assert_int_equal(meter_uj(pipeline, 0), energy_uj + 900 * JOULE + 600 * JOULE);
    assert_int_equal(process_uj(pipeline, 10), process_before_uj + 600 * JOULE);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 0);
    pipeline_free(pipeline);
}

static unsigned __int128 cost_of(const struct pipeline *pipeline)
{
    struct snapshot *snapshot = books(pipeline);
    unsigned __int128 cost = snapshot->meters[0].bill.cost;

    close_books(snapshot);
    return cost;
}

static void costs_start_at_0_in_another_currency_and_only_then(void **state)
{
    static const struct pipeline_resumption resumption = {.is_same_boot = true,
                                                          .now_us = T0 + 60 * SECOND};
    struct pipeline_options dollars = default_options(), unknown = default_options();
    uint64_t counter_uj;
    struct pipeline *pipeline = two_busy_units(&counter_uj);
    unsigned __int128 euros = cost_of(pipeline);

    (void)state;
    assert_true(euros > 0);
    memcpy(dollars.price.cost.currency, "USD", 4);
    unknown.price.cost.known = false;
    pipeline = restart_with(pipeline, unknown, resumption);
    pipeline = restart_with(pipeline, default_options(), resumption);
    assert_true(cost_of(pipeline) == euros);
    pipeline = restart_with(pipeline, dollars, resumption);
    assert_true(cost_of(pipeline) == 0);
    assert_true(meter_uj(pipeline, 0) > 0);
    pipeline_free(pipeline);
}

static void what_was_pending_when_it_was_killed_is_a_gap(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t settled_uj;

    (void)state;
    energy(pipeline, 0, T0, 0);
    ticks(pipeline, 0, T0, T0 + 5 * SECOND + 3 * TICK, 0, 100);
    settled_uj = meter_uj(pipeline, 0);
    assert_true(settled_uj < 530 * JOULE);
    pipeline = restart(pipeline, T0 + 6 * SECOND);
    assert_int_equal(meter_uj(pipeline, 0), 530 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), 530 * JOULE - settled_uj);
    pipeline_free(pipeline);
}

static void a_meter_that_is_not_back_yet_waits_over_many_restarts(void **state)
{
    uint64_t counter_uj, energy_uj;
    struct pipeline *pipeline = two_busy_units(&counter_uj);

    (void)state;
    energy_uj = meter_uj(pipeline, 0);
    for (uint64_t i = 0; i < 5; i++)
        pipeline = restart(pipeline, T0 + (20 + i) * SECOND);
    add_gpu(pipeline, 0);
    pipeline = restart(pipeline, T0 + 30 * SECOND); /* with a board, but without a reading */
    add_gpu(pipeline, 0);
    energy(pipeline, 0, T0 + 60 * SECOND, counter_uj + 5000 * JOULE);
    assert_int_equal(meter_uj(pipeline, 0), energy_uj + 5000 * JOULE);
    assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), 5000 * JOULE);
    pipeline_free(pipeline);
}

static void a_counter_that_was_reset_meanwhile_counts_from_0_and_is_told(void **state)
{
    uint64_t counter_uj, energy_uj;
    struct pipeline *pipeline = two_busy_units(&counter_uj);

    (void)state;
    energy_uj = meter_uj(pipeline, 0);
    pipeline = restart(pipeline, T0 + 60 * SECOND);
    add_gpu(pipeline, 0);
    energy(pipeline, 0, T0 + 60 * SECOND, 4 * JOULE);
    assert_int_equal(meter_uj(pipeline, 0), energy_uj + 4 * JOULE);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 1);
    pipeline_free(pipeline);
}

static void more_than_a_board_can_draw_is_not_booked_but_told(void **state)
{
    uint64_t counter_uj, energy_uj;
    struct pipeline *pipeline = two_busy_units(&counter_uj);

    (void)state;
    energy_uj = meter_uj(pipeline, 0);
    pipeline = restart(pipeline, T0 + 20 * SECOND);
    add_gpu(pipeline, 0);
    energy(pipeline, 0, T0 + 20 * SECOND, counter_uj + 1000000 * JOULE);
    assert_int_equal(meter_uj(pipeline, 0), energy_uj);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 1);
    pipeline_free(pipeline);
}

/* Ten minutes pass, while the clock is set back by an hour: 180 kJ at 300 W are plausible. */
static void a_clock_that_was_set_meanwhile_loses_nothing(void **state)
{
    static const int64_t steps_us[] = {-3600000000, 0, 3600000000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(steps_us); i++) {
        uint64_t counter_uj, energy_uj, now_us;
        struct pipeline *pipeline = two_busy_units(&counter_uj);

        energy_uj = meter_uj(pipeline, 0);
        now_us = T0 + 610 * SECOND + (uint64_t)steps_us[i];
        pipeline =
            restart_with(pipeline, default_options(),
                         (struct pipeline_resumption){
                             .is_same_boot = true, .clock_step_us = steps_us[i], .now_us = now_us});
        add_gpu(pipeline, 0);
        energy(pipeline, 0, now_us, counter_uj + 180000 * JOULE);
        assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), 180000 * JOULE);
        ticks(pipeline, 0, now_us, now_us + 10 * SECOND, counter_uj + 180000 * JOULE, 100);
        assert_int_equal(pipeline_finish(pipeline), 0);
        assert_int_equal(meter_uj(pipeline, 0), energy_uj + 181000 * JOULE);
        pipeline_free(pipeline);
    }
}

static void integral(struct pipeline *pipeline, uint64_t t_us, uint64_t integral_uj)
{
    feed(pipeline,
         (struct sample){.kind = SAMPLE_INTEGRAL, .t_us = t_us, .counter_uj = integral_uj});
}

static uint64_t shown_counter_uj(const struct pipeline *pipeline)
{
    struct snapshot *snapshot = books(pipeline);
    uint64_t counter_uj = snapshot->meters[0].counter_uj;

    close_books(snapshot);
    return counter_uj;
}

static void energy_by_power_and_time_goes_on_without_what_was_missed(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t energy_uj;

    (void)state;
    for (uint64_t i = 0; i <= 50; i++)
        integral(pipeline, T0 + i * TICK, i * 10 * JOULE);
    assert_int_equal(pipeline_finish(pipeline), 0);
    energy_uj = meter_uj(pipeline, 0);
    assert_int_equal(energy_uj, 500 * JOULE);
    pipeline = restart(pipeline, T0 + 60 * SECOND);
    add_gpu(pipeline, 0);
    for (uint64_t i = 0; i <= 50; i++) /* from 0 again */
        integral(pipeline, T0 + 60 * SECOND + i * TICK, i * 10 * JOULE);
    assert_int_equal(pipeline_finish(pipeline), 0);
    assert_int_equal(meter_uj(pipeline, 0), energy_uj + 500 * JOULE);
    assert_int_equal(shown_counter_uj(pipeline), 1000 * JOULE);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 1);
    pipeline_free(pipeline);
}

static void a_pid_that_is_another_process_by_now_has_another_account(void **state)
{
    uint64_t counter_uj, process_before_uj;
    struct pipeline *pipeline = two_busy_units(&counter_uj);

    (void)state;
    process_before_uj = process_uj(pipeline, 10);
    assert_true(process_before_uj > 0);
    pipeline = restart(pipeline, T0 + 60 * SECOND);
    add_gpu(pipeline, 0);
    identify(pipeline, 0, T0 + 60 * SECOND, 10, T0 + 50 * SECOND, "c.service", "other");
    assert_int_equal(process_uj(pipeline, 10), 0);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "a.service"), process_before_uj);
    pipeline_free(pipeline);
}

/* RAPL's register, of 1000 J, and what the source makes of it since it was opened. */
static void package(struct pipeline *pipeline, uint64_t t_us, uint64_t counter_uj,
                    uint64_t register_uj, bool has_register)
{
    struct counter hardware = {.last = register_uj};

    counter_limit(&hardware, 1000 * JOULE, 10 * JOULE); /* at most 10 W: half of it in 50 s */
    feed(pipeline, (struct sample){.kind = SAMPLE_METER,
                                   .t_us = t_us,
                                   .meter = {.source = "rapl",
                                             .kind = METER_PACKAGE,
                                             .id = "0",
                                             .counter_uj = counter_uj,
                                             .integrated = !has_register,
                                             .hardware = has_register ? &hardware : NULL}});
}

static void usage_report(struct pipeline *pipeline, uint64_t t_us, bool is_first, uint64_t cpu_us)
{
    struct usage did = {.valid = USAGE_BIT(USAGE_CPU_US), .values[USAGE_CPU_US] = cpu_us};
    const struct sample_workload workload = {.kind = WORKLOAD_UNIT,
                                             .id = "a.service",
                                             .container_id = "",
                                             .pod_uid = "",
                                             .cpu_us = is_first ? 0 : cpu_us,
                                             .did = &did};

    feed(pipeline, (struct sample){.kind = SAMPLE_USAGE,
                                   .t_us = t_us,
                                   .usage = {.is_first = is_first,
                                             .busy_us = SECOND,
                                             .capacity_us = 4 * SECOND,
                                             .count = 1,
                                             .workloads = &workload}});
}

/* A run of a package at 5 W until T0 + 20 s, with 90 J in the books and 10 J pending. */
static struct pipeline *busy_package(bool has_register)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;

    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    package(pipeline, T0, 0, 950 * JOULE, has_register);
    usage_report(pipeline, T0, true, SECOND);
    package(pipeline, T0 + 18 * SECOND, 90 * JOULE, 40 * JOULE, has_register);
    usage_report(pipeline, T0 + 18 * SECOND, false, SECOND);
    package(pipeline, T0 + 20 * SECOND, 100 * JOULE, 50 * JOULE, has_register);
    assert_int_equal(meter_uj(pipeline, 0), 90 * JOULE);
    return pipeline;
}

static void a_register_tells_what_was_used_meanwhile_unless_it_may_have_wrapped(void **state)
{
    static const struct {
        uint64_t away_s, register_j, gap_j;
        bool has_register, is_unknown;
    } cases[] = {
        {30, 200, 150, true, false},  {30, 50, 0, true, false},
        {30, 350, 300, true, false},  {30, 500, 0, true, true}, /* more than 10 W */
        {60, 200, 0, true, true},                               /* it may have wrapped unseen */
        {1 << 20, 50, 0, true, true}, {30, 0, 0, false, true},  /* power x time */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pipeline *pipeline = busy_package(cases[i].has_register);
        uint64_t now_us = T0 + (20 + cases[i].away_s) * SECOND;

        pipeline = restart(pipeline, now_us);
        assert_int_equal(meter_uj(pipeline, 0), 100 * JOULE); /* the pending part is a gap */
        package(pipeline, now_us, 0, cases[i].register_j * JOULE, cases[i].has_register);
        assert_int_equal(meter_uj(pipeline, 0), (100 + cases[i].gap_j) * JOULE);
        assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), (10 + cases[i].gap_j) * JOULE);
        assert_int_equal(pipeline_unknown_gaps(pipeline), cases[i].is_unknown);
        /* Until the first report nothing can be divided, but nothing is lost, either. */
        package(pipeline, now_us + SECOND, 5 * JOULE, (cases[i].register_j + 5) * JOULE,
                cases[i].has_register);
        usage_report(pipeline, now_us + SECOND, true, 2 * SECOND);
        assert_int_equal(unowned_uj(pipeline, UNOWNED_GAP), (15 + cases[i].gap_j) * JOULE);
        package(pipeline, now_us + 2 * SECOND, 12 * JOULE, (cases[i].register_j + 12) * JOULE,
                cases[i].has_register);
        usage_report(pipeline, now_us + 2 * SECOND, false, SECOND);
        assert_int_equal(meter_uj(pipeline, 0), (112 + cases[i].gap_j) * JOULE);
        assert_int_equal(shown_counter_uj(pipeline), (112 + cases[i].gap_j) * JOULE);
        pipeline_free(pipeline);
    }
}

static void a_wrapped_register_is_unwrapped(void **state)
{
    struct pipeline *pipeline = busy_package(true);

    (void)state;
    pipeline = restart(pipeline, T0 + 21 * SECOND);
    package(pipeline, T0 + 40 * SECOND, 0, 250 * JOULE, true);
    pipeline = restart(pipeline, T0 + 41 * SECOND);
    package(pipeline, T0 + 75 * SECOND, 0, 590 * JOULE, true);
    pipeline = restart(pipeline, T0 + 76 * SECOND);
    package(pipeline, T0 + 115 * SECOND, 0, 990 * JOULE, true);
    pipeline = restart(pipeline, T0 + 116 * SECOND);
    package(pipeline, T0 + 117 * SECOND, 0, 5 * JOULE, true); /* 1000 is 0 */
    assert_int_equal(meter_uj(pipeline, 0), (100 + 200 + 340 + 400 + 15) * JOULE);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 0);
    pipeline_free(pipeline);
}

static uint64_t cpu_us(const struct pipeline *pipeline)
{
    struct snapshot *snapshot = books(pipeline);
    uint64_t value_us = 0;

    for (size_t i = 0; i < snapshot->usage_count; i++)
        if (strcmp(snapshot->usages[i].id, "a.service") == 0)
            value_us = snapshot->usages[i].usage.values[USAGE_CPU_US];
    close_books(snapshot);
    return value_us;
}

static void usage_goes_on_from_the_kernels_counters_and_never_goes_back(void **state)
{
    struct pipeline *pipeline = busy_package(true);

    (void)state;
    assert_int_equal(cpu_us(pipeline), 2 * SECOND);
    pipeline = restart(pipeline, T0 + 30 * SECOND);
    assert_int_equal(cpu_us(pipeline), 2 * SECOND);
    usage_report(pipeline, T0 + 31 * SECOND, true, 5 * SECOND); /* all that the cgroup ever used */
    assert_int_equal(cpu_us(pipeline), 5 * SECOND);
    usage_report(pipeline, T0 + 32 * SECOND, false, SECOND);
    assert_int_equal(cpu_us(pipeline), 6 * SECOND);
    pipeline = restart(pipeline, T0 + 40 * SECOND);
    usage_report(pipeline, T0 + 41 * SECOND, true, SECOND); /* another cgroup of the same unit */
    assert_int_equal(cpu_us(pipeline), 6 * SECOND);
    usage_report(pipeline, T0 + 42 * SECOND, false, SECOND);
    assert_int_equal(cpu_us(pipeline), 7 * SECOND);
    pipeline_free(pipeline);
}

static void after_a_boot_only_what_was_learned_is_kept(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    for (uint64_t s = 0; s < 10; s++) {
        list(pipeline, 0, T0 + s * SECOND + 1, SAMPLE_LIST_COMPUTE, (const uint32_t[4]){0});
        utilisation(pipeline, 0, T0 + s * SECOND + 2, 0);
        ticks(pipeline, 0, T0 + s * SECOND, T0 + (s + 1) * SECOND, s * 76 * JOULE, 76);
    }
    assert_int_equal(pipeline_finish(pipeline), 0);
    assert_int_equal(pipeline->gpus[0]->idle.without_context.level_mw, 76000);
    pipeline = restart_with(
        pipeline, default_options(),
        (struct pipeline_resumption){.is_same_boot = false, .now_us = T0 + 60 * SECOND});
    assert_int_equal(ledger_meter_count(pipeline->ledger), 0);
    add_gpu(pipeline, 0);
    assert_int_equal(pipeline->gpus[0]->idle.without_context.level_mw, 76000);
    energy(pipeline, 0, T0 + 60 * SECOND, 3 * JOULE);
    assert_int_equal(meter_uj(pipeline, 0), 0);
    assert_int_equal(pipeline_unknown_gaps(pipeline), 0);
    pipeline_free(pipeline);
}

static struct simulation learn_a_program(void)
{
    static const double alone[] = {0.8};
    struct simulation simulation = {
        .gpu = {.idle_watts = 76, .count = 1, .loads = {{.watts = 400, .units = {0.5, 0.2}}}},
        .pids = {10},
    };
    struct pipeline *pipeline = pipeline_with(intensity_options());

    feed(pipeline, (struct sample){.kind = SAMPLE_PROCESS,
                                   .t_us = T0,
                                   .process = {.pid = 10,
                                               .uid = 1000,
                                               .start_us = T0 - SECOND,
                                               .cgroup = "a.service",
                                               .name = "trainer",
                                               .program = {17, 18}}});
    simulation_begin(&simulation, pipeline);
    for (int i = 0; i < 300; i++)
        (void)simulation_run(&simulation, alone);
    return simulation;
}

static void what_is_remembered_of_programs_survives_a_boot_and_a_restart(void **state)
{
    (void)state;
    for (int is_same_boot = 0; is_same_boot < 2; is_same_boot++) {
        struct simulation simulation = learn_a_program();
        struct intensity_memory before = gpu_program_memory(simulation.pipeline->gpus[0]), after;
        struct pipeline *pipeline;

        assert_int_equal(before.programs, 1);
        pipeline = restart_with(simulation.pipeline, intensity_options(),
                                (struct pipeline_resumption){.is_same_boot = is_same_boot,
                                                             .now_us = simulation.now_us});
        pipeline = restart_with(pipeline, intensity_options(),
                                (struct pipeline_resumption){.is_same_boot = is_same_boot,
                                                             .now_us = simulation.now_us});
        add_gpu(pipeline, 0);
        after = gpu_program_memory(pipeline->gpus[0]);
        assert_int_equal(after.programs, 1);
        pipeline_free(pipeline);
    }
}

/* Truncated at every byte, and with every byte changed: either it is rejected, or its books
 * balance.
 */
static void a_damaged_state_is_rejected_or_balances(void **unused)
{
    struct pipeline_options options = default_options();
    uint64_t counter_uj;
    struct pipeline *pipeline = two_busy_units(&counter_uj);
    struct buffer state = pack(pipeline);
    size_t rejected = 0;

    (void)unused;
    pipeline_free(pipeline);
    for (size_t len = 0; len < state.len; len++) {
        assert_int_equal(pipeline_new(&options, &pipeline), 0);
        assert_int_equal(unpack(pipeline, &state, len, &at_once), -EBADMSG);
        pipeline_free(pipeline);
    }
    for (size_t i = 0; i < state.len; i++) {
        char byte = state.data[i];

        state.data[i] = (char)(byte ^ 0x15);
        assert_int_equal(pipeline_new(&options, &pipeline), 0);
        if (unpack(pipeline, &state, state.len, &at_once) == 0)
            for (uint32_t m = 0; m < ledger_meter_count(pipeline->ledger); m++)
                assert_true(ledger_is_balanced(pipeline->ledger, m));
        else
            rejected++;
        pipeline_free(pipeline);
        state.data[i] = byte;
    }
    assert_true(rejected > state.len / 4);
    buffer_done(&state);
}

/* The seed of the fuzzer was packed by the first program of this version. */
static void a_state_that_an_earlier_program_of_this_version_packed_is_read(void **unused)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    char *data;
    size_t len;

    (void)unused;
    assert_int_equal(
        fs_read_all_at(AT_FDCWD, SOURCE_DIR "/fuzz/corpus/state/two_units", 1 << 20, &data, &len),
        0);
    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    /* Before the state is a byte for the fuzzer. */
    assert_int_equal(
        pipeline_unpack_state(pipeline, &(struct unpack){.rest = {data + 1, len - 1}}, &at_once),
        0);
    assert_int_equal(meter_uj(pipeline, 0), 3000 * JOULE);
    assert_true(workload_uj(pipeline, WORKLOAD_UNIT, "a.service") > 0);
    assert_true(cost_of(pipeline) > 0);
    pipeline_free(pipeline);
    free(data);
}

/* Run after run: each ends settled or killed, at a random time after its state was packed, and what
 * happened in between is lost with it. */
static void a_thousand_restarts_book_what_the_counter_moved(void **state)
{
    enum { RESTARTS = 1000 };
    struct random_source random = {.state = 42};
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t t_us = T0, counter_uj = 123456789, first_uj = counter_uj, shown_uj = 0;

    (void)state;
    energy(pipeline, 0, t_us, counter_uj);
    for (size_t i = 0; i < RESTARTS; i++) {
        unsigned ticks_before = (unsigned)(random_part(&random) * 40);
        unsigned ticks_lost = (unsigned)(random_part(&random) * 10);
        struct buffer saved;
        struct pipeline_options options = default_options();

        identify(pipeline, 0, t_us, 10 + i % 3, T0, i % 3 ? "a.service" : "b.service", "p");
        LIST(pipeline, t_us + 1, 10 + i % 3);
        for (unsigned tick = 0; tick < ticks_before; tick++) {
            t_us += TICK;
            label(pipeline, 0, t_us, 10 + i % 3, t_us - 1, 50);
            energy(pipeline, 0, t_us, counter_uj += 1 + (uint64_t)(random_part(&random) * 6e7));
        }
        if (i % 3 > 0)
            assert_int_equal(pipeline_finish(pipeline), 0);
        saved = pack(pipeline);
        assert_true(meter_uj(pipeline, 0) >= shown_uj);
        shown_uj = meter_uj(pipeline, 0);
        for (unsigned tick = 0; tick < ticks_lost && i % 3 == 0; tick++)
            energy(pipeline, 0, t_us += TICK, counter_uj += 5 * JOULE);
        pipeline_free(pipeline);
        t_us += (uint64_t)(random_part(&random) * 30e6) + 1;
        counter_uj += JOULE;
        assert_int_equal(pipeline_new(&options, &pipeline), 0);
        assert_int_equal(
            unpack(pipeline, &saved, saved.len,
                   &(struct pipeline_resumption){.is_same_boot = true, .now_us = t_us}),
            0);
        buffer_done(&saved);
        add_gpu(pipeline, 0);
        energy(pipeline, 0, t_us, counter_uj);
        assert_int_equal(meter_uj(pipeline, 0) + gpu_pending_uj(pipeline->gpus[0]),
                         counter_uj - first_uj);
    }
    assert_int_equal(pipeline_unknown_gaps(pipeline), 0);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_the_same_after_a_restart),
        cmocka_unit_test(what_a_gpu_counted_meanwhile_is_a_gap_and_its_processes_go_on),
        cmocka_unit_test(costs_start_at_0_in_another_currency_and_only_then),
        cmocka_unit_test(what_was_pending_when_it_was_killed_is_a_gap),
        cmocka_unit_test(a_meter_that_is_not_back_yet_waits_over_many_restarts),
        cmocka_unit_test(a_counter_that_was_reset_meanwhile_counts_from_0_and_is_told),
        cmocka_unit_test(more_than_a_board_can_draw_is_not_booked_but_told),
        cmocka_unit_test(a_clock_that_was_set_meanwhile_loses_nothing),
        cmocka_unit_test(energy_by_power_and_time_goes_on_without_what_was_missed),
        cmocka_unit_test(a_pid_that_is_another_process_by_now_has_another_account),
        cmocka_unit_test(a_register_tells_what_was_used_meanwhile_unless_it_may_have_wrapped),
        cmocka_unit_test(a_wrapped_register_is_unwrapped),
        cmocka_unit_test(usage_goes_on_from_the_kernels_counters_and_never_goes_back),
        cmocka_unit_test(after_a_boot_only_what_was_learned_is_kept),
        cmocka_unit_test(what_is_remembered_of_programs_survives_a_boot_and_a_restart),
        cmocka_unit_test(a_damaged_state_is_rejected_or_balances),
        cmocka_unit_test(a_state_that_an_earlier_program_of_this_version_packed_is_read),
        cmocka_unit_test(a_thousand_restarts_book_what_the_counter_moved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
