/* Processes and workloads in the books: identity, reuse, caps, retention. */
#include "pipeline_fixture.h"

#include <math.h>

/* A second in which `pid` alone is listed and uses 100 J; returns the end of it. */
static uint64_t second_of(struct pipeline *pipeline, uint32_t pid, uint64_t t_us)
{
    struct gpu *gpu = pipeline->gpus[0];

    if (!gpu->counter_seen)
        energy(pipeline, 0, t_us, 0);
    LIST(pipeline, t_us + 1, pid);
    label(pipeline, 0, t_us + 2 * TICK, pid, t_us + TICK, 99);
    ticks(pipeline, 0, t_us, t_us + SECOND, gpu->counter_uj, 100);
    return t_us + SECOND;
}

/* A second in which both share the GPU and use 100 J. */
static uint64_t second_of_both(struct pipeline *pipeline, uint32_t one, uint32_t other,
                               uint64_t t_us)
{
    struct gpu *gpu = pipeline->gpus[0];

    if (!gpu->counter_seen)
        energy(pipeline, 0, t_us, 0);
    LIST(pipeline, t_us + 1, one, other);
    label(pipeline, 0, t_us + 4 * TICK, one, t_us + 3 * TICK, 99);
    label(pipeline, 0, t_us + 8 * TICK, other, t_us + 7 * TICK, 99);
    ticks(pipeline, 0, t_us, t_us + SECOND, gpu->counter_uj, 100);
    return t_us + SECOND;
}

/* Shared energy waits for a minute. */
static struct pipeline_options patient_options(void)
{
    struct pipeline_options options = default_options();

    options.gpu.attribution = ATTRIBUTION_INTENSITY;
    options.gpu.patience_us = 60 * SECOND;
    return options;
}

/* A second without listed processes. */
static uint64_t empty_second(struct pipeline *pipeline, uint64_t t_us)
{
    LIST(pipeline, t_us + 1, 0);
    ticks(pipeline, 0, t_us, t_us + SECOND, pipeline->gpus[0]->counter_uj, 100);
    return t_us + SECOND;
}

static size_t row_count(const struct pipeline *pipeline, enum workload_kind kind)
{
    struct snapshot *snapshot = books(pipeline);
    size_t count = 0;

    for (size_t i = 0; i < snapshot->workload_count; i++)
        count += snapshot->workloads[i].kind == kind;
    close_books(snapshot);
    return count;
}

static void a_reused_pid_is_another_process(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot *snapshot;
    uint64_t t = T0;

    (void)state;
    identify(pipeline, 0, t, 5, T0 - 10 * SECOND, "/a", "old");
    t = second_of(pipeline, 5, t);
    identify(pipeline, 0, t, 5, T0 + SECOND, "/b", "new");
    t = second_of(pipeline, 5, t);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/a"), 100 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/b"), 100 * JOULE);
    assert_int_equal(process_on(pipeline, 0, 5).start_us, T0 + SECOND);
    assert_int_equal(process_uj(pipeline, 5), 100 * JOULE);
    /* The old one is kept for the sums, but it is not shown, and goes at the next sweep. */
    snapshot = books(pipeline);
    assert_int_equal(snapshot->process_count, 2);
    close_books(snapshot);
    pipeline_sweep(pipeline, t + 10 * SECOND);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->process_count, 1);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void a_sample_belongs_to_the_process_that_had_the_pid_at_that_time(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    energy(pipeline, 0, T0, 0);
    identify(pipeline, 0, T0, 5, T0 - SECOND, "/a", "old");
    LIST(pipeline, T0 + 1, 5);
    label(pipeline, 0, T0 + 2 * TICK, 5, T0 + TICK, 99);
    identify(pipeline, 0, T0 + 3 * TICK, 5, T0 + 3 * TICK, "/b", "new"); /* before settlement */
    LIST(pipeline, T0 + 3 * TICK, 5);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/a"), 100 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/b"), 0);
    pipeline_free(pipeline);
}

static void without_a_name_the_workload_is_the_pid_and_with_a_cgroup_the_cgroup(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t t = second_of(pipeline, 5, T0);

    (void)state;
    identify(pipeline, 0, t, 6, 0, "/job", "worker");
    second_of(pipeline, 6, t);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_PROCESS, "5"), 100 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/job"), 100 * JOULE);
    pipeline_free(pipeline);
}

static void a_name_that_comes_late_moves_no_joule(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t t = empty_second(pipeline, second_of(pipeline, 5, T0));

    (void)state;
    t = empty_second(pipeline, t);
    identify(pipeline, 0, t, 5, 0, "/job", "worker");
    second_of(pipeline, 5, t);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_PROCESS, "5"), 100 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/job"), 100 * JOULE);
    assert_int_equal(process_uj(pipeline, 5), 200 * JOULE);
    pipeline_free(pipeline);
}

static void a_pid_on_two_gpus_has_two_accounts_and_one_workload(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot *snapshot;

    (void)state;
    add_gpu(pipeline, 1);
    for (uint32_t gpu = 0; gpu < 2; gpu++) {
        identify(pipeline, gpu, T0, 5, T0 - SECOND, "/job", "worker");
        list(pipeline, gpu, T0, SAMPLE_LIST_COMPUTE, (const uint32_t[4]){5});
        energy(pipeline, gpu, T0, 0);
        label(pipeline, gpu, T0 + 2 * TICK, 5, T0 + TICK, 99);
        ticks(pipeline, gpu, T0, T0 + SECOND, 0, 100 + 50 * gpu);
    }
    pipeline_finish(pipeline);
    assert_int_equal(process_on(pipeline, 0, 5).active_uj, 100 * JOULE);
    assert_int_equal(process_on(pipeline, 1, 5).active_uj, 150 * JOULE);
    snapshot = books(pipeline);
    assert_int_equal(ledger_counts(pipeline->ledger)->workloads, 1);
    assert_int_equal(snapshot->workload_count, 2); /* a row for each meter */
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void a_board_that_comes_back_goes_on_with_its_books(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    const struct sample other = {.kind = SAMPLE_DEVICE,
                                 .device = {.uuid = "GPU-X", .name = "", .driver = ""}};
    struct snapshot *snapshot;

    (void)state;
    second_of(pipeline, 5, T0);
    feed(pipeline, other); /* another board at the same index; the old one is settled */
    assert_int_equal(meter_uj(pipeline, 0), 100 * JOULE);
    /* Its rows would have the labels of the new board's: they are not shown meanwhile. */
    snapshot = books(pipeline);
    assert_true(snapshot->meters[0].replaced && !snapshot->meters[1].replaced);
    assert_true(snapshot->processes[0].superseded);
    close_books(snapshot);
    add_gpu(pipeline, 0);
    second_of(pipeline, 5, T0 + 20 * SECOND);
    pipeline_finish(pipeline);
    assert_int_equal(ledger_meter_count(pipeline->ledger), 2);
    assert_int_equal(meter_uj(pipeline, 0), 200 * JOULE);
    pipeline_free(pipeline);
}

static void a_board_that_moves_to_another_index_keeps_its_meter(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct sample moved = {
        .kind = SAMPLE_DEVICE, .gpu = 3, .device = {.uuid = "GPU-0", .name = "", .driver = ""}};

    (void)state;
    second_of(pipeline, 5, T0);
    feed(pipeline, moved);
    assert_null(pipeline->gpus[0]);
    assert_int_equal(ledger_meter_count(pipeline->ledger), 1);
    assert_int_equal(ledger_meter(pipeline->ledger, 0)->gpu, 3);
    assert_int_equal(meter_uj(pipeline, 0), 100 * JOULE);
    pipeline_free(pipeline);
}

static void beyond_max_processes_the_live_are_booked_together(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    struct snapshot *snapshot;

    (void)state;
    options.max_processes = 2;
    pipeline = pipeline_with(options);
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0 + 1, 1, 2, 3, 4);
    for (uint32_t pid = 1; pid <= 4; pid++)
        label(pipeline, 0, T0 + 5 * TICK, pid, T0 + pid * TICK, 50);
    ticks(pipeline, 0, T0, T0 + SECOND, 0, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 1), 25 * JOULE);
    assert_int_equal(process_uj(pipeline, 0), 50 * JOULE); /* pids 3 and 4 */
    assert_int_equal(workload_uj(pipeline, WORKLOAD_OTHER, "other"), 50 * JOULE);
    snapshot = books(pipeline);
    assert_true(snapshot->processes_dropped >= 2);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void at_max_processes_the_one_that_ended_first_makes_room(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    uint64_t t = T0;

    (void)state;
    options.max_processes = 2;
    pipeline = pipeline_with(options);
    for (uint32_t pid = 1; pid <= 20; pid++)
        t = empty_second(pipeline, empty_second(pipeline, second_of(pipeline, pid, t)));
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 20), 100 * JOULE);
    assert_int_equal(process_uj(pipeline, 19), 100 * JOULE);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes, 2);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes_dropped, 0);
    /* What the others used stays with their workloads. */
    assert_int_equal(workload_uj(pipeline, WORKLOAD_PROCESS, "3"), 100 * JOULE);
    pipeline_free(pipeline);
}

static void beyond_max_workloads_the_ended_retire_and_the_live_are_booked_to_other(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    uint64_t t = T0;

    (void)state;
    options.max_workloads = 2;
    options.retention_us = 0;
    pipeline = pipeline_with(options);
    for (uint32_t pid = 1; pid <= 4; pid++) { /* each ends before the next */
        t = empty_second(pipeline, empty_second(pipeline, second_of(pipeline, pid, t)));
        t = empty_second(pipeline, t);
        pipeline_sweep(pipeline, t + SECOND);
    }
    assert_int_equal(ledger_counts(pipeline->ledger)->workloads_dropped, 0);
    LIST(pipeline, t + 1, 11, 12, 13);
    label(pipeline, 0, t + 2 * TICK, 13, t + TICK, 99);
    t += SECOND;
    ticks(pipeline, 0, t - SECOND, t, pipeline->gpus[0]->counter_uj, 100);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_RETIRED, NULL), 4 * 100 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_OTHER, "other"), 100 * JOULE);
    assert_int_equal(ledger_counts(pipeline->ledger)->workloads_dropped, 1);
    pipeline_free(pipeline);
}

/* Of all rows; 7.5 J of each 50 J, as the estimator knows nothing of the two. */
static uint64_t uncertain_uj(const struct pipeline *pipeline, enum workload_kind kind)
{
    struct snapshot *snapshot = books(pipeline);
    uint64_t sum_uj = 0;

    for (size_t i = 0; i < snapshot->workload_count; i++)
        if (snapshot->workloads[i].kind == kind)
            sum_uj += snapshot->workloads[i].account.uncertain_uj;
    close_books(snapshot);
    return sum_uj;
}

static void the_uncertainty_of_a_process_is_also_its_workloads_and_outlives_both(void **state)
{
    struct pipeline_options options = patient_options();
    struct pipeline *pipeline;
    uint64_t t;

    (void)state;
    options.gpu.patience_us = 0;
    options.retention_us = 0;
    pipeline = pipeline_with(options);
    t = second_of_both(pipeline, 5, 6, T0);
    for (int i = 0; i < 3; i++)
        t = empty_second(pipeline, t);
    assert_int_equal(process_on(pipeline, 0, 5).uncertain_uj, 125 * JOULE / 10);
    assert_int_equal(process_on(pipeline, 0, 6).uncertain_uj, 125 * JOULE / 10);
    assert_int_equal(uncertain_uj(pipeline, WORKLOAD_PROCESS), 25 * JOULE);
    pipeline_sweep(pipeline, t + SECOND);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes, 0);
    assert_int_equal(uncertain_uj(pipeline, WORKLOAD_PROCESS), 0);
    assert_int_equal(uncertain_uj(pipeline, WORKLOAD_RETIRED), 25 * JOULE);
    assert_int_equal(ledger_owned(pipeline->ledger, 0).uncertain_uj, 25 * JOULE);
    pipeline_free(pipeline);
}

static void an_ended_process_keeps_its_account_for_the_retention(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t t = empty_second(pipeline, empty_second(pipeline, second_of(pipeline, 5, T0)));

    (void)state;
    t = empty_second(pipeline, t);
    pipeline_sweep(pipeline, T0 + 2 * SECOND + 300 * SECOND); /* a second after it ended */
    assert_int_equal(process_on(pipeline, 0, 5).active, false);
    assert_int_equal(process_uj(pipeline, 5), 100 * JOULE);
    pipeline_sweep(pipeline, T0 + 2 * SECOND + 301 * SECOND);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes, 0);
    assert_int_equal(row_count(pipeline, WORKLOAD_PROCESS), 0);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_RETIRED, NULL), 100 * JOULE);
    pipeline_free(pipeline);
}

static void the_retention_begins_when_the_last_joule_is_booked_however_late(void **state)
{
    struct pipeline_options options = patient_options();
    struct pipeline *pipeline;
    uint64_t t = T0;

    (void)state;
    options.retention_us = 10 * SECOND;
    pipeline = pipeline_with(options);
    for (int s = 0; s < 20; s++)
        t = second_of_both(pipeline, 5, 6, t);
    while (t < T0 + 79 * SECOND) { /* the last shared second ended at 20 s */
        t = second_of(pipeline, 5, t);
        pipeline_sweep(pipeline, t);
    }
    assert_true(meter_uj(pipeline, 0) < 20 * 100 * JOULE);
    while (t < T0 + 90 * SECOND) {
        t = second_of(pipeline, 5, t);
        pipeline_sweep(pipeline, t);
        assert_int_equal(process_on(pipeline, 0, 6).active, false);
    }
    assert_true(process_uj(pipeline, 6) > 0);
    for (int s = 0; s < 2; s++)
        t = second_of(pipeline, 5, t);
    pipeline_sweep(pipeline, t);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes, 1);
    pipeline_free(pipeline);
}

static void on_a_board_without_a_counter_the_ended_are_forgotten_too(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;

    (void)state;
    options.retention_us = SECOND;
    pipeline = pipeline_with(options);
    LIST(pipeline, T0, 5, 6);
    LIST(pipeline, T0 + SECOND, 6);
    for (uint64_t s = 2; s < 30; s++) {
        utilisation(pipeline, 0, T0 + s * SECOND, 50);
        label(pipeline, 0, T0 + s * SECOND, 6, T0 + s * SECOND, 50);
    }
    pipeline_sweep(pipeline, T0 + 30 * SECOND);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes, 1);
    assert_int_equal(process_on(pipeline, 0, 6).active, true);
    /* When the counter comes to life, processes still listed are charged. */
    energy(pipeline, 0, T0 + 30 * SECOND, 0);
    LIST(pipeline, T0 + 30 * SECOND + 1, 6);
    label(pipeline, 0, T0 + 31 * SECOND, 6, T0 + 30 * SECOND + TICK, 50);
    energy(pipeline, 0, T0 + 31 * SECOND, 100 * JOULE);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 6), 100 * JOULE);
    pipeline_free(pipeline);
}

static void a_process_that_a_list_names_is_never_forgotten(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());

    (void)state;
    second_of(pipeline, 5, T0);
    pipeline_sweep(pipeline, T0 + 86400 * SECOND);
    assert_int_equal(process_on(pipeline, 0, 5).active, true);
    pipeline_free(pipeline);
}

static void each_retirement_has_an_id_of_its_own_so_that_no_increase_counts_twice(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    char first[64] = "", second[64] = "";
    uint64_t t = T0;

    (void)state;
    options.retention_us = 0;
    pipeline = pipeline_with(options);
    for (int round = 0; round < 2; round++) {
        struct snapshot *snapshot;

        t = second_of(pipeline, 5 + (uint32_t)round, t);
        for (int i = 0; i < 3; i++)
            t = empty_second(pipeline, t);
        pipeline_sweep(pipeline, t + (uint64_t)round * 61 * SECOND);
        snapshot = books(pipeline);
        assert_int_equal(snapshot->workload_count, 1);
        assert_int_equal(snapshot->workloads[0].kind, WORKLOAD_RETIRED);
        assert_true(snapshot->workloads[0].power_mw < 0);
        snprintf(round ? second : first, sizeof(first), "%s", snapshot->workloads[0].id);
        close_books(snapshot);
    }
    assert_string_not_equal(first, second);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_RETIRED, second), 200 * JOULE);
    pipeline_free(pipeline);
}

static void workloads_also_retire_after_the_clock_was_set_back(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    uint64_t t = T0;

    (void)state;
    options.retention_us = 0;
    pipeline = pipeline_with(options);
    for (uint32_t round = 0; round < 2; round++) {
        struct snapshot *snapshot;

        t = second_of(pipeline, 5 + round, t);
        for (int i = 0; i < 3; i++)
            t = empty_second(pipeline, t);
        pipeline_sweep(pipeline, t);
        snapshot = books(pipeline);
        assert_int_equal(snapshot->workload_count, 1);
        assert_int_equal(snapshot->workloads[0].kind, WORKLOAD_RETIRED);
        close_books(snapshot);
        t -= 3600 * SECOND;
    }
    pipeline_free(pipeline);
}

static struct pipeline *forgetful_pipeline(void)
{
    struct pipeline_options options = default_options();

    options.retention_us = SECOND;
    return pipeline_with(options);
}

static void replace_board(struct pipeline *pipeline)
{
    feed(pipeline, (struct sample){.kind = SAMPLE_DEVICE,
                                   .device = {.uuid = "GPU-X", .name = "", .driver = ""}});
}

static void the_processes_of_a_board_that_is_gone_are_forgotten(void **state)
{
    struct pipeline *pipeline = forgetful_pipeline();

    (void)state;
    second_of(pipeline, 5, T0);
    replace_board(pipeline);
    pipeline_sweep(pipeline, T0 + 100 * SECOND);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes, 0);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_RETIRED, NULL), 100 * JOULE);
    pipeline_free(pipeline);
}

/* There is room for one. */
static void a_listed_process_of_a_board_that_came_back_makes_no_room(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    uint32_t process;

    (void)state;
    options.max_processes = 1;
    pipeline = pipeline_with(options);
    second_of(pipeline, 5, T0);
    replace_board(pipeline);
    add_gpu(pipeline, 0);
    LIST(pipeline, T0 + 20 * SECOND, 5, 6);
    assert_true(ledger_find_process(pipeline->ledger, 0, 5, &process));
    assert_int_equal(ledger_counts(pipeline->ledger)->processes_dropped, 1);
    pipeline_free(pipeline);
}

/* Its presence waits in a window that is not settled, however old the list was that named it. */
static void a_process_that_a_late_list_named_is_there_when_its_window_is_settled(void **state)
{
    struct pipeline *pipeline = forgetful_pipeline();
    uint64_t counter_uj;

    (void)state;
    energy(pipeline, 0, T0, 0);
    counter_uj = ticks(pipeline, 0, T0, T0 + 5 * SECOND, 0, 100);
    LIST(pipeline, T0 + TICK, 5);
    LIST(pipeline, T0 + 5 * SECOND + TICK / 2, 0);
    pipeline_sweep(pipeline, T0 + 100 * SECOND);
    ticks(pipeline, 0, T0 + 5 * SECOND, T0 + 8 * SECOND, counter_uj, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 5), 100 * JOULE);
    pipeline_free(pipeline);
}

static void a_process_that_is_listed_outlasts_a_clock_that_is_set_back(void **state)
{
    struct pipeline *pipeline = forgetful_pipeline();

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0, 5);
    energy(pipeline, 0, T0 + 5 * SECOND, 1000000 * JOULE); /* impossible: the window begins anew */
    energy(pipeline, 0, T0 + 3 * SECOND, 1000000 * JOULE);
    pipeline_sweep(pipeline, T0 + 100 * SECOND);
    ticks(pipeline, 0, T0 + 3 * SECOND, T0 + 4 * SECOND, 1000000 * JOULE, 100);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 5), 100 * JOULE);
    pipeline_free(pipeline);
}

/* Limits are set by users; the board has one of 700 W. */
static void what_is_used_above_the_limit_is_in_the_books_and_impossible_jumps_are_not(void **state)
{
    struct pipeline *pipeline = forgetful_pipeline();
    const struct ledger_meter *books;

    (void)state;
    energy(pipeline, 0, T0, 0);
    LIST(pipeline, T0, 5);
    energy(pipeline, 0, T0 + SECOND, 2000 * JOULE);
    energy(pipeline, 0, T0 + 2 * SECOND, 1002000 * JOULE);
    pipeline_finish(pipeline);
    books = ledger_meter(pipeline->ledger, pipeline->gpus[0]->meter);
    assert_int_equal(books->energy_uj, 2000 * JOULE);
    assert_int_equal(books->unowned_uj[UNOWNED_GAP], 2000 * JOULE);
    assert_int_equal(pipeline->gpus[0]->resets, 2);
    pipeline_free(pipeline);
}

static void a_process_that_was_seen_in_the_future_is_forgotten_in_its_time(void **state)
{
    struct pipeline *pipeline = forgetful_pipeline();
    uint64_t t = T0;

    (void)state;
    second_of(pipeline, 5, T0 + 3600 * SECOND);
    energy(pipeline, 0, t, pipeline->gpus[0]->counter_uj);
    for (int i = 0; i < 5; i++)
        t = empty_second(pipeline, t);
    pipeline_sweep(pipeline, T0 + 30 * SECOND);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes, 0);
    pipeline_free(pipeline);
}

/* An MPS server is not charged; the next process of its pid is. */
static void nothing_is_remembered_of_the_process_that_had_the_account_before(void **state)
{
    struct pipeline *pipeline = forgetful_pipeline();
    uint64_t t = T0;

    (void)state;
    energy(pipeline, 0, t, 0);
    identify(pipeline, 0, t, 5, T0, "", "nvidia-cuda-mps-server");
    for (int i = 0; i < 4; i++)
        t = empty_second(pipeline, t);
    pipeline_sweep(pipeline, t + 10 * SECOND);
    assert_int_equal(ledger_counts(pipeline->ledger)->processes, 0);
    second_of(pipeline, 6, t);
    pipeline_finish(pipeline);
    assert_int_equal(process_uj(pipeline, 6), 100 * JOULE);
    pipeline_free(pipeline);
}

/* Of the only workload. */
static double only_power_mw(const struct ledger *ledger)
{
    return ledger_power_mw(ledger, ledger_next_account(ledger, ledger_workload(ledger, 0), NULL));
}

static void power_is_smoothed_and_fades_after_the_end(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t t = T0;
    double power_mw;

    (void)state;
    for (int i = 0; i < 60; i++)
        t = second_of(pipeline, 5, t);
    power_mw = only_power_mw(pipeline->ledger);
    assert_true(power_mw > 99000 && power_mw < 100001);
    for (int i = 0; i < 30; i++)
        t = empty_second(pipeline, t);
    power_mw = only_power_mw(pipeline->ledger);
    assert_true(power_mw > 0 && power_mw < 10000);
    pipeline_free(pipeline);
}

/* A daemon has 100 W to show from its second reading on, and no 10 W that climb for a minute. */
static void power_begins_with_what_is_known_instead_of_with_0(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot *snapshot;
    uint64_t t = T0;

    (void)state;
    for (int i = 0; i < 6; i++) {
        t = second_of(pipeline, 5, t);
        if (i < 2)
            continue;
        snapshot = books(pipeline);
        assert_true(fabs(snapshot->meters[0].measured_mw - 100000) < 500);
        assert_true(fabs(snapshot->meters[0].power_mw - 100000) < 500);
        assert_true(fabs(snapshot->workloads[0].power_mw - 100000) < 500);
        close_books(snapshot);
    }
    pipeline_free(pipeline);
}

static void booked_and_measured_power_agree_and_nobody_s_is_part_of_it(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot *snapshot;
    uint64_t t = T0;

    (void)state;
    for (int i = 0; i < 60; i++)
        t = second_of(pipeline, 5, t);
    for (int i = 0; i < 10; i++)
        t = empty_second(pipeline, t);
    snapshot = books(pipeline);
    assert_true(fabs(snapshot->meters[0].measured_mw - 100000) < 500);
    assert_true(fabs(snapshot->meters[0].power_mw - 100000) < 500);
    assert_true(snapshot->meters[0].unowned_mw[UNOWNED_IDLE] > 50000);
    assert_true(snapshot->workloads[0].power_mw > 30000);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void power_does_not_grow_when_the_clock_is_set_back(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t t = T0;

    (void)state;
    for (int i = 0; i < 60; i++)
        t = second_of(pipeline, 5, t);
    t = T0 - 3600 * SECOND;
    energy(pipeline, 0, t, pipeline->gpus[0]->counter_uj);
    for (int i = 0; i < 60; i++)
        t = second_of(pipeline, 5, t);
    assert_true(fabs(only_power_mw(pipeline->ledger) - 100000) < 500);
    assert_true(fabs(pipeline->measured[0].power.power_mw - 100000) < 500);
    pipeline_free(pipeline);
}

static void the_history_has_all_that_is_booked_when_it_was_used(void **state)
{
    struct pipeline *pipeline = pipeline_with(patient_options());
    uint64_t t = T0, late;

    (void)state;
    for (int i = 0; i < 100; i++)
        t = second_of_both(pipeline, 5, 6, t);
    late = t / HISTORY_STEP_US * HISTORY_STEP_US - 30 * SECOND;
    /* Measured by now, and pending for a minute. */
    assert_int_equal(pipeline->history->measured[late / HISTORY_STEP_US % HISTORY_STEPS],
                     500 * JOULE);
    assert_int_equal(pipeline->history->booked[late / HISTORY_STEP_US % HISTORY_STEPS], 0);
    assert_true(pipeline_settled_until_us(pipeline) < late);
    t += 30 * SECOND; /* a gap */
    energy(pipeline, 0, t, pipeline->gpus[0]->counter_uj + 3000 * JOULE);
    for (int i = 0; i < 100; i++)
        t = second_of(pipeline, 5, t);
    assert_int_equal(pipeline_finish(pipeline), 0);
    assert_int_equal(check_history(pipeline->history),
                     ledger_meter(pipeline->ledger, 0)->energy_uj);
    for (size_t s = 0; s < HISTORY_STEPS; s++)
        assert_true(llabs((long long)(pipeline->history->booked[s] -
                                      pipeline->history->measured[s])) <= (long long)(10 * JOULE));
    assert_true(pipeline_settled_until_us(pipeline) >= t - HISTORY_STEP_US);
    assert_true(pipeline_measured_until_us(pipeline) >= t - HISTORY_STEP_US);
    pipeline_free(pipeline);
}

static void a_board_that_is_lost_holds_up_no_history_and_has_no_reading(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
    uint64_t t = T0;

    (void)state;
    assert_non_null(snapshot);
    add_gpu(pipeline, 1);
    energy(pipeline, 1, t, 0);
    for (int i = 1; i <= 60; i++) {
        t = second_of(pipeline, 5, t);
        if (i <= 30)
            energy(pipeline, 1, t, (uint64_t)i * 50 * JOULE);
    }
    assert_true(pipeline_settled_until_us(pipeline) >= t - HISTORY_STEP_US);
    assert_true(pipeline_measured_until_us(pipeline) >= t - HISTORY_STEP_US);
    snapshot_init(snapshot);
    assert_int_equal(pipeline_snapshot(pipeline, t, SECOND, snapshot), 0);
    assert_true(fabs(snapshot->meters[0].measured_mw - 100000) < 500);
    assert_true(snapshot->meters[1].measured_mw == -1);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void what_a_model_says_is_part_of_the_line_but_is_no_measurement(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    struct snapshot *snapshot;
    uint64_t t = T0, step;

    (void)state;
    for (uint64_t i = 0; i < 60; i++) {
        feed(pipeline, (struct sample){.kind = SAMPLE_METER,
                                       .t_us = t,
                                       .meter = {.source = "model",
                                                 .kind = METER_PACKAGE,
                                                 .id = "model",
                                                 .modelled = true,
                                                 .counter_uj = i * 40 * JOULE}});
        feed(pipeline,
             (struct sample){
                 .kind = SAMPLE_USAGE,
                 .t_us = t,
                 .usage = {.is_first = i == 0, .busy_us = SECOND / 2, .capacity_us = SECOND}});
        if (i < 30)
            t = second_of(pipeline, 5, t);
        else
            t += SECOND;
    }
    step = (T0 / HISTORY_STEP_US + 3) % HISTORY_STEPS;
    assert_int_equal(pipeline->history->measured[step], 700 * JOULE);
    assert_true(pipeline->history->is_measured[step]);
    step = (T0 / HISTORY_STEP_US + 10) % HISTORY_STEPS; /* the model alone */
    assert_false(pipeline->history->is_measured[step]);
    snapshot = books(pipeline);
    for (uint32_t i = 0; i < snapshot->meter_count; i++)
        assert_int_equal(snapshot->meters[i].modelled, snapshot->meters[i].measured_mw < 0);
    close_books(snapshot);
    pipeline_free(pipeline);
}

/* Windows before it are pending for a minute. */
static void a_gap_is_no_power_before_its_time_has_come(void **state)
{
    struct pipeline *pipeline = pipeline_with(patient_options());
    struct snapshot *snapshot;
    uint64_t t = T0;

    (void)state;
    for (int i = 0; i < 90; i++)
        t = second_of_both(pipeline, 5, 6, t);
    t += 30 * SECOND;
    energy(pipeline, 0, t, pipeline->gpus[0]->counter_uj + 3000 * JOULE);
    snapshot = books(pipeline);
    assert_true(snapshot->meters[0].unowned_uj[UNOWNED_GAP] == 3000 * JOULE);
    assert_true(snapshot->meters[0].power_mw > 90000 && snapshot->meters[0].power_mw < 100500);
    close_books(snapshot);
    pipeline_free(pipeline);
}

/* A fixed sequence (Knuth's MMIX generator). */
static uint64_t next(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (*seed >> 20) % below;
}

static void whatever_comes_the_books_balance_and_nothing_is_ever_taken_back(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    uint64_t seed = 7, counters[2] = {0}, meters[2] = {0}, t = T0;

    (void)state;
    options.max_processes = 6;
    options.max_workloads = 4;
    options.retention_us = 3 * SECOND;
    pipeline = pipeline_with(options);
    add_gpu(pipeline, 1);
    for (int step = 0; step < 30000; step++) {
        uint32_t gpu = (uint32_t)next(&seed, 2);
        uint32_t pids[4] = {0};

        t += next(&seed, 300000);
        switch (next(&seed, 12)) {
        case 0:
            for (size_t i = 0; i < next(&seed, 5) && i < 4; i++)
                pids[i] = 1 + (uint32_t)next(&seed, 12);
            list(pipeline, gpu, t, (enum sample_list_kind)next(&seed, 3), pids);
            break;
        case 1:
            label(pipeline, gpu, t, 1 + (uint32_t)next(&seed, 14), t - next(&seed, 3000000),
                  (uint16_t)next(&seed, 110));
            break;
        case 2:
            identify(pipeline, gpu, t, 1 + (uint32_t)next(&seed, 12), T0 + next(&seed, 3),
                     next(&seed, 2) ? "/a" : "/b", "x");
            break;
        case 3:
            utilisation(pipeline, gpu, t, (uint8_t)next(&seed, 101));
            break;
        case 4:
            if (next(&seed, 50) == 0)
                counters[gpu] = next(&seed, 100 * JOULE); /* a reset */
            else if (next(&seed, 50) == 0)
                counters[gpu] += 100000 * JOULE; /* a jump */
            else if (next(&seed, 50) == 0)
                t += 30 * SECOND; /* a gap */
            break;
        case 5:
            pipeline_sweep(pipeline, t);
            break;
        default:
            energy(pipeline, gpu, t, counters[gpu] += next(&seed, 60 * JOULE));
            break;
        }
        if (step % 50 == 0)
            for (uint32_t m = 0; m < 2; m++) {
                uint64_t energy_uj = meter_uj(pipeline, m); /* checks the balance */

                assert_true(energy_uj >= meters[m]);
                meters[m] = energy_uj;
            }
    }
    pipeline_finish(pipeline);
    assert_true(meter_uj(pipeline, 0) > 1000 * JOULE && meter_uj(pipeline, 1) > 1000 * JOULE);
    assert_true(ledger_counts(pipeline->ledger)->processes <= 6 + 2 + 1);
    pipeline_free(pipeline);
}

/* A pipeline with names from here. */
struct names {
    bool known;
    unsigned asked;
    const char *container_id; /* of the last query */
    struct workload_names names;
};

static bool tell_names(void *context, const struct workload_owner *owner,
                       struct workload_names *ret_names)
{
    struct names *names = context;

    names->asked++;
    names->container_id = owner->container_id[0] ? "some" : "none";
    *ret_names = names->names;
    return names->known;
}

static struct pipeline *pipeline_with_names(struct names *names)
{
    struct pipeline_options options = default_options();

    options.find_names = tell_names;
    options.names_context = names;
    return pipeline_with(options);
}

static const struct snapshot_workload *row_of(const struct snapshot *snapshot,
                                              enum workload_kind kind)
{
    for (size_t i = 0; i < snapshot->workload_count; i++)
        if (snapshot->workloads[i].kind == kind)
            return &snapshot->workloads[i];
    return NULL;
}

/* Even if nobody asked for a page while it was there, so that no name was fixed. */
static void a_workload_that_is_gone_keeps_its_name_in_the_history(void **state)
{
    struct names names = {.names = {"web", "ns", "pod", "c", ""}};
    struct pipeline *pipeline = pipeline_with_names(&names);
    const struct history_row *row;
    uint64_t t = T0;

    (void)state;
    identify(pipeline, 0, t, 5, T0, "/a", "worker");
    for (int i = 0; i < 10; i++)
        t = second_of(pipeline, 5, t);
    row = pipeline->history->ranks[0].row;
    pipeline_sweep(pipeline, t);
    assert_true(row->is_hidden);
    assert_string_equal(row->name, "");
    names.known = true;
    for (int i = 0; i < 600; i++) {
        t = empty_second(pipeline, t);
        pipeline_sweep(pipeline, t);
    }
    assert_int_equal(row_count(pipeline, WORKLOAD_UNIT), 0);
    assert_false(row->is_hidden);
    assert_string_equal(row->name, "web");
    assert_string_equal(row->namespace, "ns");
    pipeline_free(pipeline);
}

static void joules_do_not_wait_for_names_but_are_held_back_until_they_come(void **state)
{
    struct names names = {.names = {"web", "ns", "pod", "c", ""}};
    struct pipeline *pipeline = pipeline_with_names(&names);
    struct snapshot *snapshot;
    uint64_t t = T0, pending_uj;

    (void)state;
    identify(pipeline, 0, t, 5, T0, "/a", "worker");
    for (int i = 0; i < 4; i++)
        t = second_of(pipeline, 5, t);
    pipeline_fix_names(pipeline, t);
    snapshot = books(pipeline); /* which balances */
    assert_null(row_of(snapshot, WORKLOAD_UNIT));
    assert_true(snapshot->processes[0].hidden);
    assert_int_equal(snapshot->meters[0].energy_uj, 0);
    pending_uj = snapshot->meters[0].pending_uj;
    assert_int_equal(pending_uj, 400 * JOULE);
    close_books(snapshot);

    names.known = true;
    pipeline_fix_names(pipeline, t);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->meters[0].energy_uj + snapshot->meters[0].pending_uj, 400 * JOULE);
    assert_true(snapshot->meters[0].energy_uj >= 200 * JOULE);
    assert_string_equal(row_of(snapshot, WORKLOAD_UNIT)->names.name, "web");
    assert_string_equal(row_of(snapshot, WORKLOAD_UNIT)->names.pod, "pod");
    assert_false(snapshot->processes[0].hidden);
    assert_string_equal(snapshot->processes[0].names.container, "c");
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void names_are_fixed_when_they_are_first_shown(void **state)
{
    struct names names = {.known = true, .names = {"first", "", "", "", ""}};
    struct pipeline *pipeline = pipeline_with_names(&names);
    struct snapshot *snapshot;
    unsigned asked;

    (void)state;
    identify(pipeline, 0, T0, 5, T0, "/a", "worker");
    second_of(pipeline, 5, T0);
    pipeline_fix_names(pipeline, T0 + SECOND);
    asked = names.asked;
    names.names.name = "second";
    pipeline_fix_names(pipeline, T0 + 60 * SECOND);
    assert_int_equal(names.asked, asked);
    snapshot = books(pipeline);
    assert_string_equal(row_of(snapshot, WORKLOAD_UNIT)->names.name, "first");
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void whoever_has_no_name_after_fifteen_seconds_is_shown_without(void **state)
{
    struct names names = {.names = {"", "", "", "", ""}};
    struct pipeline *pipeline = pipeline_with_names(&names);
    struct snapshot *snapshot;

    (void)state;
    identify(pipeline, 0, T0, 5, T0, "/a", "worker");
    second_of(pipeline, 5, T0);
    pipeline_fix_names(pipeline, T0 + SECOND);
    pipeline_fix_names(pipeline, T0 + 15 * SECOND - 1);
    snapshot = books(pipeline);
    assert_null(row_of(snapshot, WORKLOAD_UNIT));
    close_books(snapshot);
    pipeline_fix_names(pipeline, T0 + 15 * SECOND);
    snapshot = books(pipeline);
    assert_string_equal(row_of(snapshot, WORKLOAD_UNIT)->names.name, "");
    assert_false(snapshot->processes[0].hidden);
    close_books(snapshot);
    pipeline_free(pipeline);
}

static bool await_names(void *context, const struct workload_owner *owner)
{
    (void)context;
    (void)owner;
    return true;
}

static void a_runtime_that_is_slow_but_answers_is_waited_for_a_minute(void **state)
{
    struct names names = {.names = {"", "", "", "", ""}};
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    struct snapshot *snapshot;

    (void)state;
    options.find_names = tell_names;
    options.are_names_awaited = await_names;
    options.names_context = &names;
    pipeline = pipeline_with(options);
    identify(pipeline, 0, T0, 5, T0, "/a", "worker");
    second_of(pipeline, 5, T0);
    pipeline_fix_names(pipeline, T0 + 60 * SECOND - 1);
    snapshot = books(pipeline);
    assert_null(row_of(snapshot, WORKLOAD_UNIT));
    close_books(snapshot);
    pipeline_fix_names(pipeline, T0 + 60 * SECOND);
    snapshot = books(pipeline);
    assert_string_equal(row_of(snapshot, WORKLOAD_UNIT)->names.name, "");
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void names_have_their_fifteen_seconds_while_shared_energy_waits(void **state)
{
    struct names names = {.names = {"", "", "", "", ""}};
    struct pipeline_options options = patient_options();
    struct pipeline *pipeline;
    uint64_t t = T0, came;

    (void)state;
    options.find_names = tell_names;
    options.names_context = &names;
    pipeline = pipeline_with(options);
    t = second_of(pipeline, 5, t);
    for (int s = 0; s < 30; s++)
        t = second_of_both(pipeline, 5, 6, t);
    assert_int_equal(ledger_meter(pipeline->ledger, 0)->energy_uj,
                     100 * JOULE); /* the first second's */
    came = t;
    identify(pipeline, 0, came, 7, came, "/late", "worker");
    t = second_of_both(pipeline, 5, 7, t);
    pipeline_fix_names(pipeline, came + 15 * SECOND - 1);
    assert_true(process_on(pipeline, 0, 7).hidden);
    names.known = true;
    names.names.name = "in time";
    pipeline_fix_names(pipeline, came + 15 * SECOND - 1);
    assert_false(process_on(pipeline, 0, 7).hidden);
    pipeline_free(pipeline);
}

static void own_as_told(const struct sample_process *who, struct workload_owner *ret_owner)
{
    *ret_owner = (struct workload_owner){.kind = WORKLOAD_SYSTEM, .id = "system"};
    if (strcmp(who->cgroup, "job") == 0)
        *ret_owner =
            (struct workload_owner){.kind = WORKLOAD_SLURM, .id = "7", .container_id = "c0ffee"};
}

static void what_the_system_uses_is_unowned_and_its_processes_are_shown(void **state)
{
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    uint64_t t = T0;

    (void)state;
    options.find_owner = own_as_told;
    options.max_workloads = 1;
    options.retention_us = SECOND;
    pipeline = pipeline_with(options);
    identify(pipeline, 0, t, 4, T0, "job", "worker");
    t = second_of(pipeline, 4, t);
    identify(pipeline, 0, t, 5, T0, "/", "daemon"); /* not subject to --max-workloads */
    t = second_of(pipeline, 5, t);
    t = empty_second(pipeline, empty_second(pipeline, t));
    assert_int_equal(unowned_uj(pipeline, UNOWNED_SYSTEM), 100 * JOULE);
    assert_int_equal(process_uj(pipeline, 5), 100 * JOULE);
    pipeline_sweep(pipeline, t + 100 * SECOND); /* it is not retired with its processes */
    assert_int_equal(unowned_uj(pipeline, UNOWNED_SYSTEM), 100 * JOULE);
    assert_int_equal(row_count(pipeline, WORKLOAD_SYSTEM), 0);
    pipeline_free(pipeline);
}

static void a_container_in_a_job_is_a_label_of_the_process_and_not_of_the_job(void **state)
{
    struct names names = {.known = true, .names = {"7", "", "", "box", ""}};
    struct pipeline_options options = default_options();
    struct pipeline *pipeline;
    struct snapshot *snapshot;

    (void)state;
    options.find_owner = own_as_told;
    options.find_names = tell_names;
    options.names_context = &names;
    pipeline = pipeline_with(options);
    identify(pipeline, 0, T0, 5, T0, "job", "worker");
    second_of(pipeline, 5, T0);
    pipeline_fix_names(pipeline, T0);
    assert_string_equal(names.container_id, "some"); /* of the process, which comes last */
    snapshot = books(pipeline);
    assert_string_equal(snapshot->processes[0].container_id, "c0ffee");
    close_books(snapshot);
    pipeline_free(pipeline);
}

static void a_process_that_moves_is_charged_to_its_new_owner_from_then_on(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t t = T0;

    (void)state;
    identify(pipeline, 0, t, 5, T0, "/runtime", "worker");
    t = second_of(pipeline, 5, t);
    t = empty_second(pipeline, empty_second(pipeline, t));
    identify(pipeline, 0, t, 5, T0, "/container", "worker");
    t = second_of(pipeline, 5, t);
    identify(pipeline, 0, t, 5, T0, "",
             ""); /* an identification without a cgroup does not move it */
    second_of(pipeline, 5, t);
    pipeline_finish(pipeline);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/runtime"), 100 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/container"), 200 * JOULE);
    assert_int_equal(process_uj(pipeline, 5), 300 * JOULE);
    pipeline_free(pipeline);
}

static void a_workload_whose_process_moved_keeps_its_account_for_the_retention(void **state)
{
    struct pipeline *pipeline = pipeline_with(default_options());
    uint64_t t = T0;

    (void)state;
    identify(pipeline, 0, t, 5, T0, "/a", "worker");
    t = second_of(pipeline, 5, t);
    t = empty_second(pipeline, empty_second(pipeline, t));
    identify(pipeline, 0, t, 5, T0, "/b", "worker");
    t = second_of(pipeline, 5, t);
    t = empty_second(pipeline, empty_second(pipeline, t));
    pipeline_sweep(pipeline, t);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/a"), 100 * JOULE);
    identify(pipeline, 0, t, 5, T0, "/a", "worker"); /* and it comes back */
    t = second_of(pipeline, 5, t);
    t = empty_second(pipeline, empty_second(pipeline, t));
    pipeline_sweep(pipeline, t);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/a"), 200 * JOULE);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/b"), 100 * JOULE);
    pipeline_sweep(pipeline, t + 299 * SECOND);
    assert_int_equal(workload_uj(pipeline, WORKLOAD_UNIT, "/b"), 0); /* it is retired */
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reused_pid_is_another_process),
        cmocka_unit_test(a_sample_belongs_to_the_process_that_had_the_pid_at_that_time),
        cmocka_unit_test(without_a_name_the_workload_is_the_pid_and_with_a_cgroup_the_cgroup),
        cmocka_unit_test(a_name_that_comes_late_moves_no_joule),
        cmocka_unit_test(a_pid_on_two_gpus_has_two_accounts_and_one_workload),
        cmocka_unit_test(a_board_that_comes_back_goes_on_with_its_books),
        cmocka_unit_test(a_board_that_moves_to_another_index_keeps_its_meter),
        cmocka_unit_test(beyond_max_processes_the_live_are_booked_together),
        cmocka_unit_test(at_max_processes_the_one_that_ended_first_makes_room),
        cmocka_unit_test(beyond_max_workloads_the_ended_retire_and_the_live_are_booked_to_other),
        cmocka_unit_test(the_uncertainty_of_a_process_is_also_its_workloads_and_outlives_both),
        cmocka_unit_test(an_ended_process_keeps_its_account_for_the_retention),
        cmocka_unit_test(the_retention_begins_when_the_last_joule_is_booked_however_late),
        cmocka_unit_test(on_a_board_without_a_counter_the_ended_are_forgotten_too),
        cmocka_unit_test(a_process_that_a_list_names_is_never_forgotten),
        cmocka_unit_test(each_retirement_has_an_id_of_its_own_so_that_no_increase_counts_twice),
        cmocka_unit_test(workloads_also_retire_after_the_clock_was_set_back),
        cmocka_unit_test(the_processes_of_a_board_that_is_gone_are_forgotten),
        cmocka_unit_test(a_listed_process_of_a_board_that_came_back_makes_no_room),
        cmocka_unit_test(a_process_that_a_late_list_named_is_there_when_its_window_is_settled),
        cmocka_unit_test(a_process_that_is_listed_outlasts_a_clock_that_is_set_back),
        cmocka_unit_test(what_is_used_above_the_limit_is_in_the_books_and_impossible_jumps_are_not),
        cmocka_unit_test(a_process_that_was_seen_in_the_future_is_forgotten_in_its_time),
        cmocka_unit_test(nothing_is_remembered_of_the_process_that_had_the_account_before),
        cmocka_unit_test(power_is_smoothed_and_fades_after_the_end),
        cmocka_unit_test(power_begins_with_what_is_known_instead_of_with_0),
        cmocka_unit_test(booked_and_measured_power_agree_and_nobody_s_is_part_of_it),
        cmocka_unit_test(power_does_not_grow_when_the_clock_is_set_back),
        cmocka_unit_test(the_history_has_all_that_is_booked_when_it_was_used),
        cmocka_unit_test(a_board_that_is_lost_holds_up_no_history_and_has_no_reading),
        cmocka_unit_test(what_a_model_says_is_part_of_the_line_but_is_no_measurement),
        cmocka_unit_test(a_workload_that_is_gone_keeps_its_name_in_the_history),
        cmocka_unit_test(a_gap_is_no_power_before_its_time_has_come),
        cmocka_unit_test(whatever_comes_the_books_balance_and_nothing_is_ever_taken_back),
        cmocka_unit_test(joules_do_not_wait_for_names_but_are_held_back_until_they_come),
        cmocka_unit_test(names_are_fixed_when_they_are_first_shown),
        cmocka_unit_test(whoever_has_no_name_after_fifteen_seconds_is_shown_without),
        cmocka_unit_test(a_runtime_that_is_slow_but_answers_is_waited_for_a_minute),
        cmocka_unit_test(names_have_their_fifteen_seconds_while_shared_energy_waits),
        cmocka_unit_test(what_the_system_uses_is_unowned_and_its_processes_are_shown),
        cmocka_unit_test(a_container_in_a_job_is_a_label_of_the_process_and_not_of_the_job),
        cmocka_unit_test(a_process_that_moves_is_charged_to_its_new_owner_from_then_on),
        cmocka_unit_test(a_workload_whose_process_moved_keeps_its_account_for_the_retention),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
