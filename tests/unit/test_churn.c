/* A hundred thousand short lives on one GPU: the books balance, and the memory stays the same. */
#include "simulation.h"

#include <malloc.h>

enum { SEATS = 40, LIVES = 100000, KINDS = 50, LIFE_SLOTS_MAX = 4 };

static const struct load LOADS[] = {
    {500, {0.9, 0.3, 0.1, 0.8, 0.4, 0, 0.05, 0.3}},
    {200, {0.6, 0.9, 0.3, 0, 0.9, 0, 0.4, 0}},
    {320, {0.95, 0.6, 0.2, 0, 0.1, 0, 0.85, 0}},
};

/* More processes at once than the estimator has places for. One in eight stays for minutes, the
 * others for less than a second. */
struct crowd {
    struct simulation simulation;
    uint64_t until_slot[SEATS]; /* when the process of a seat ends */
    uint32_t born;
    bool saw_others;
};

/* Half of them are of some kind; nothing is known of the others. */
static void introduce(struct crowd *crowd, uint32_t pid)
{
    char name[16];

    if (pid % 2)
        return;
    snprintf(name, sizeof(name), "kind-%u", pid / 2 % KINDS);
    feed(crowd->simulation.pipeline,
         (struct sample){.kind = SAMPLE_PROCESS,
                         .t_us = crowd->simulation.now_us,
                         .process = {.pid = pid,
                                     .uid = 1000,
                                     .start_us = crowd->simulation.now_us,
                                     .cgroup = pid % 3 ? "" : "/batch.slice",
                                     .name = name}});
}

static void take_seats(struct crowd *crowd)
{
    struct simulation *simulation = &crowd->simulation;

    for (size_t i = 0; i < SEATS; i++) {
        uint64_t longest = i % 8 == 0 ? 256 * LIFE_SLOTS_MAX : LIFE_SLOTS_MAX;

        if (simulation->slots < crowd->until_slot[i])
            continue;
        simulation->pids[i] = ++crowd->born;
        simulation->gpu.loads[i] = LOADS[crowd->born % ARRAY_SIZE(LOADS)];
        crowd->until_slot[i] =
            simulation->slots + 1 + random_u64(&simulation->gpu.random) % longest;
        introduce(crowd, crowd->born);
    }
    simulation_list(simulation);
}

/* Some of the seats work, in equal parts of the time. */
static void work(struct crowd *crowd)
{
    uint64_t at_work = random_u64(&crowd->simulation.gpu.random) & ((1ULL << SEATS) - 1);
    double parts[SEATS] = {0};

    for (size_t i = 0; i < SEATS; i++)
        if (at_work & (1ULL << i))
            parts[i] = 1.0 / __builtin_popcountll(at_work);
    simulation_run(&crowd->simulation, parts);
}

static bool others_won(const struct slots *slots)
{
    for (size_t i = 0; i < slots->count; i++)
        if (slots->ring[(slots->first + i) % SLOTS_MAX].won[TENANT_OTHERS] > 0)
            return true;
    return false;
}

static void a_hundred_thousand_lives_leave_nothing_behind(void **state)
{
    struct pipeline_options options = intensity_options();
    struct crowd crowd = {.simulation = {.gpu = {.idle_watts = 100, .count = SEATS}}};
    struct pipeline *pipeline;
    struct snapshot *snapshot;
    size_t early_bytes = 0;

    (void)state;
    options.gpu.patience_us = 2 * SECOND; /* so that places change hands often */
    options.retention_us = 10 * SECOND;
    pipeline = pipeline_with(options);
    simulation_begin(&crowd.simulation, pipeline);
    while (crowd.born < LIVES) {
        take_seats(&crowd);
        work(&crowd);
        if (crowd.simulation.slots % 5 == 0) {
            pipeline_sweep(pipeline, crowd.simulation.now_us);
            assert_int_equal(ledger_imbalance_uj(pipeline->ledger, 0), 0);
            crowd.saw_others |= others_won(&pipeline->gpus[0]->learning->slots);
        }
        if (early_bytes == 0 && crowd.born > LIVES / 10)
            early_bytes = mallinfo2().uordblks;
    }
    /* As after the first tenth, but for what a window holds at one time or another. */
    assert_true(mallinfo2().uordblks < early_bytes + (256 << 10));
    assert_true(ledger_counts(pipeline->ledger)->processes < 5000);
    assert_true(crowd.saw_others);
    assert_int_equal(pipeline_finish(pipeline), 0);
    snapshot = books(pipeline);
    assert_int_equal(snapshot->meters[0].pending_uj, 0);
    assert_int_equal(snapshot->meters[0].energy_uj, crowd.simulation.counter_uj);
    close_books(snapshot);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_thousand_lives_leave_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
