/* attribution/node/node_overhead: the division of what the node draws beyond its parts. */
#include "node_overhead_fixture.h"

#include "random.h"

static const struct node_overhead_options equally = {.policy = NODE_OVERHEAD_POLICY_EQUAL};
static const struct node_overhead_options to_nobody = {.policy = NODE_OVERHEAD_POLICY_NONE};

/* 80 W of rest: 2400 J in a window. */
static struct machine usual_machine(void)
{
    return (struct machine){.meters = {BMC(400), PACKAGE(100), DRAM(20)},
                            .gpus = {{.present = true, .watts = 200}},
                            BUSY};
}

struct payments {
    uint64_t alice_uj, job_uj, system_uj, idle_uj, unattributed_uj;
};

static struct payments payments(const struct machine *machine)
{
    return (struct payments){
        .alice_uj = paid_uj(machine, &alice),
        .job_uj = paid_uj(machine, &job),
        .system_uj = paid_uj(machine, &the_system),
        .idle_uj = unowned_uj(machine, UNOWNED_IDLE),
        .unattributed_uj = unowned_uj(machine, UNOWNED_UNATTRIBUTED),
    };
}

/* A window has 3000 J of the package, 600 J of memory and 6000 J of the unused GPU. The overhead
 * is a quarter of that. */
static void the_overhead_is_divided_by_the_energy_of_the_other_meters(void **state)
{
    struct machine machine = usual_machine();
    struct payments before;

    (void)state;
    begin(&machine);
    run(&machine, 70);
    before = payments(&machine);
    run(&machine, 30);
    assert_int_equal(payments(&machine).alice_uj - before.alice_uj, (1800 + 180) * JOULE / 4);
    assert_int_equal(payments(&machine).job_uj - before.job_uj, (600 + 60) * JOULE / 4);
    assert_int_equal(payments(&machine).system_uj - before.system_uj, (600 + 60) * JOULE / 4);
    assert_int_equal(payments(&machine).idle_uj - before.idle_uj, (300 + 6000) * JOULE / 4);
    assert_int_equal(paid_uj(&machine, &alice), tier_uj(&machine, &alice, TIER_ACTIVE));
    end(&machine);
}

/* The same without the GPU: two thirds. */
static void gpus_outside_of_the_whole_do_not_weigh(void **state)
{
    struct machine machine = usual_machine();

    (void)state;
    machine.meters[0].watts = 200;
    begin_with(&machine, (struct node_overhead_options){.includes_gpus = INCLUDES_GPUS_NO}, 64);
    run(&machine, 70);
    assert_int_equal(paid_uj(&machine, &alice), (1800 + 180) * JOULE * 2 / 3);
    assert_int_equal(paid_uj(&machine, &job), (600 + 60) * JOULE * 2 / 3);
    assert_int_equal(paid_uj(&machine, &the_system), (600 + 60) * JOULE * 2 / 3);
    assert_int_equal(unowned_uj(&machine, UNOWNED_IDLE), 300 * JOULE * 2 / 3);
    end(&machine);
}

/* The job begins to use all of what alice used. */
static void each_window_has_its_own_weights(void **state)
{
    static const struct sample_workload swapped[] = {
        WORKLOAD(WORKLOAD_USER, "1000", 0, 0),
        WORKLOAD(WORKLOAD_SLURM, "31", 4 * SECOND, 0),
    };
    struct machine machine = {.meters = {BMC(200), PACKAGE(100)}, BUSY};
    uint64_t alice_uj, job_uj;

    (void)state;
    begin(&machine);
    run(&machine, 70);
    alice_uj = paid_uj(&machine, &alice);
    job_uj = paid_uj(&machine, &job);
    assert_int_equal(alice_uj, 1800 * JOULE);
    assert_int_equal(job_uj, 600 * JOULE);
    machine.workloads = swapped;
    run(&machine, 30);
    assert_int_equal(paid_uj(&machine, &alice), alice_uj);
    assert_int_equal(paid_uj(&machine, &job), job_uj + 2400 * JOULE);
    end(&machine);
}

static void joules_of_the_idle_tier_bring_a_rest_of_the_idle_tier(void **state)
{
    struct machine machine = {.meters = {BMC(200), PACKAGE(100)}, BUSY};
    struct booking booking = {.process = LEDGER_NONE,
                              .to_workload = true,
                              .tier = TIER_IDLE,
                              .method = METHOD_SHARED,
                              .energy_uj = 3000 * JOULE};
    struct ledger *ledger;
    uint64_t before_uj;

    (void)state;
    begin(&machine);
    run(&machine, 90);
    before_uj = tier_uj(&machine, &alice, TIER_ACTIVE);
    ledger = machine.pipeline->ledger;
    assert_true(ledger_find_workload(ledger, &alice, &booking.workload));
    assert_int_equal(ledger_meter(ledger, 0)->kind, METER_PACKAGE);
    assert_int_equal(ledger_book(ledger, 0, 3000 * JOULE, T0, T0 + SECOND, &booking, 1), 0);
    run(&machine, 10);
    assert_int_equal(tier_uj(&machine, &alice, TIER_IDLE), 1500 * JOULE);
    assert_int_equal(tier_uj(&machine, &alice, TIER_ACTIVE) - before_uj, 900 * JOULE);
    end(&machine);
}

/* Unread for 60 s, the GPU used 12 kJ meanwhile; the window lasts 70 s, in which 7 kJ of the
 * package and 1400 J of memory were booked, and 2 kJ of the GPU before and after. */
static void the_weight_of_a_gap_is_unattributed(void **state)
{
    struct machine machine = usual_machine();
    const struct ledger *ledger;
    uint64_t gap_uj = 0;

    (void)state;
    begin(&machine);
    run(&machine, 45);
    machine.gpus[0].silent = true;
    run(&machine, 60);
    machine.gpus[0].silent = false;
    run(&machine, 5);
    ledger = machine.pipeline->ledger;
    for (size_t i = 0; i < ledger_meter_count(ledger); i++)
        if (ledger_meter(ledger, i)->kind == METER_GPU)
            gap_uj += ledger_meter(ledger, i)->unowned_uj[UNOWNED_GAP];
    assert_true(gap_uj >= 12000 * JOULE);
    assert_int_equal(unowned_uj(&machine, UNOWNED_GAP), 0);
    assert_true(unowned_uj(&machine, UNOWNED_UNATTRIBUTED) > rest_uj(&machine) / 2);
    assert_true(paid_uj(&machine, &alice) > 0);
    end(&machine);
}

static void a_node_with_nothing_but_a_bmc_is_divided_by_cpu_time(void **state)
{
    struct machine machine = {.meters = {BMC(200)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 70);
    assert_int_equal(tier_uj(&machine, &alice, TIER_ACTIVE), 3600 * JOULE);
    assert_int_equal(tier_uj(&machine, &job, TIER_ACTIVE), 1200 * JOULE);
    assert_int_equal(tier_uj(&machine, &the_system, TIER_ACTIVE), 1200 * JOULE);
    end(&machine);
}

static void without_a_package_meter_cpu_time_divides_the_overhead_even_with_a_gpu(void **state)
{
    struct machine machine = {
        .meters = {BMC(400)}, .gpus = {{.present = true, .watts = 200}}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 70);
    assert_int_equal(paid_uj(&machine, &alice), 3600 * JOULE);
    assert_int_equal(unowned_uj(&machine, UNOWNED_IDLE), 0);
    end(&machine);
}

/* Quiet at 100 W for five windows, then 160 W with work. */
static void what_a_quiet_node_draws_is_idle(void **state)
{
    struct machine machine = {.meters = {BMC(100)}};

    (void)state;
    begin(&machine);
    run(&machine, 190);
    assert_int_equal(unowned_uj(&machine, UNOWNED_IDLE), 5 * 3000 * JOULE);
    machine.workloads = two_workloads;
    machine.workload_count = ARRAY_SIZE(two_workloads);
    machine.busy_us = 5 * SECOND;
    machine.meters[0].watts = 160;
    run(&machine, 30);
    assert_int_equal(unowned_uj(&machine, UNOWNED_IDLE), 6 * 3000 * JOULE);
    assert_int_equal(paid_uj(&machine, &alice), 1080 * JOULE);
    assert_int_equal(paid_uj(&machine, &job), 360 * JOULE);
    assert_int_equal(paid_uj(&machine, &the_system), 360 * JOULE);
    end(&machine);
}

static void equally_means_all_workloads_but_the_system(void **state)
{
    struct machine machine = usual_machine();

    (void)state;
    begin_with(&machine, equally, 64);
    run(&machine, 70);
    assert_int_equal(tier_uj(&machine, &alice, TIER_IDLE), 1200 * JOULE);
    assert_int_equal(tier_uj(&machine, &job, TIER_IDLE), 1200 * JOULE);
    assert_int_equal(paid_uj(&machine, &the_system), 0);
    machine.workload_count = 0;
    run(&machine, 30);
    assert_int_equal(unowned_uj(&machine, UNOWNED_IDLE), 2400 * JOULE);
    assert_int_equal(paid_uj(&machine, &alice), 1200 * JOULE);
    end(&machine);
}

static void equally_works_where_nothing_else_is_booked(void **state)
{
    struct machine machine = {.meters = {BMC(200)}, BUSY};

    (void)state;
    begin_with(&machine, equally, 64);
    run(&machine, 70);
    assert_int_equal(paid_uj(&machine, &alice), 3000 * JOULE);
    assert_int_equal(paid_uj(&machine, &job), 3000 * JOULE);
    end(&machine);
}

static void none_means_that_all_of_it_is_idle(void **state)
{
    struct machine machine = usual_machine();

    (void)state;
    begin_with(&machine, to_nobody, 64);
    run(&machine, 70);
    assert_int_equal(unowned_uj(&machine, UNOWNED_IDLE), 2400 * JOULE);
    assert_int_equal(paid_uj(&machine, &alice), 0);
    end(&machine);
}

/* In its second window the job is there for three of six reports, and is swept before it is over.
 */
static void a_workload_that_ended_is_charged_for_its_part_of_the_window(void **state)
{
    struct machine machine = {.meters = {BMC(200)}, BUSY};
    struct payments before;
    uint32_t workload;

    (void)state;
    begin(&machine);
    run(&machine, 85);
    before = payments(&machine);
    machine.workload_count = 1;
    run(&machine, 5);
    pipeline_sweep(machine.pipeline, T0 + 90 * SECOND);
    run(&machine, 10);
    assert_int_equal(payments(&machine).alice_uj - before.alice_uj, 3600 * JOULE);
    assert_int_equal(payments(&machine).job_uj - before.job_uj, 600 * JOULE);
    assert_int_equal(payments(&machine).system_uj - before.system_uj, 1800 * JOULE);
    pipeline_sweep(machine.pipeline, T0 + 100 * SECOND); /* nothing keeps it now */
    assert_false(ledger_find_workload(machine.pipeline->ledger, &job, &workload));
    assert_int_equal(account_total_uj(&books_of_rest(&machine)->retired),
                     before.job_uj + 600 * JOULE);
    assert_balanced(&machine);
    end(&machine);
}

/* It was never booked a joule when it ended. */
static void a_workload_of_a_few_seconds_is_charged_too(void **state)
{
    struct machine machine = {.meters = {BMC(200)}, BUSY};

    (void)state;
    machine.workload_count = 1;
    begin(&machine);
    run(&machine, 75);
    machine.workload_count = 2;
    run(&machine, 5);
    machine.workload_count = 1;
    run(&machine, 20);
    assert_int_equal(paid_uj(&machine, &job), 200 * JOULE);
    end(&machine);
}

/* Room for alice and one more: a third replaces the job, and is charged for itself alone. */
static void what_a_workload_weighed_that_made_room_is_unattributed(void **state)
{
    static const struct sample_workload next[] = {
        WORKLOAD(WORKLOAD_USER, "1000", 3 * SECOND, 0),
        WORKLOAD(WORKLOAD_SLURM, "32", SECOND, 0),
    };
    static const struct workload_owner next_job = {.kind = WORKLOAD_SLURM, .id = "32"};
    static const struct {
        struct machine machine;
        uint64_t next_uj, unattributed_uj;
    } cases[] = {
        {{.meters = {BMC(200)}, BUSY}, 400 * JOULE, 600 * JOULE},               /* by CPU time */
        {{.meters = {BMC(200), PACKAGE(100)}, BUSY}, 200 * JOULE, 300 * JOULE}, /* by joules */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct machine machine = cases[i].machine;

        begin_with(&machine, (struct node_overhead_options){0}, 2);
        run(&machine, 85);
        machine.workload_count = 1;
        run(&machine, 5);
        machine.workloads = next;
        machine.workload_count = 2;
        run(&machine, 10);
        assert_int_equal(paid_uj(&machine, &job), 0); /* its charges are retired with it */
        assert_int_equal(paid_uj(&machine, &next_job), cases[i].next_uj);
        assert_int_equal(unowned_uj(&machine, UNOWNED_UNATTRIBUTED), cases[i].unattributed_uj);
        end(&machine);
    }
}

static void no_weight_outlasts_a_window_that_is_given_up(void **state)
{
    struct machine machine = {.meters = {BMC(200), PACKAGE(100)}, BUSY};
    uint32_t workload;

    (void)state;
    begin(&machine);
    run(&machine, 45);
    machine.meters[0].silent = true;
    run(&machine, 10);
    machine.workload_count = 1;
    run(&machine, 10);
    pipeline_sweep(machine.pipeline, T0 + 65 * SECOND);
    assert_true(ledger_find_workload(machine.pipeline->ledger, &job, &workload));
    run(&machine, 300);
    pipeline_sweep(machine.pipeline, T0 + 365 * SECOND);
    assert_false(ledger_find_workload(machine.pipeline->ledger, &job, &workload));
    end(&machine);
}

/* An hour of a machine of which nothing is steady. */
struct hour {
    struct machine machine;
    struct random_source random;
    char ids[8][8];
    struct sample_workload workloads[8];
    size_t late_s;       /* the meter reports the power of so long ago */
    uint64_t late_w[16]; /* what it will report */
    uint64_t rest_uj;    /* what truly was used beyond the parts since 40 s */
    uint64_t highest_w;  /* of the whole */
    uint64_t breaks;
};

/* The whole is read last, so that all counts are of the same second. */
enum { HOUR_PACKAGE, HOUR_DRAM, HOUR_WHOLE, HOUR_METERS };
enum { HOUR_END_S = 3640, REST_MAX_W = 160 };

static uint64_t below(struct hour *hour, uint64_t limit)
{
    return random_u64(&hour->random) % limit;
}

static void change_load(struct hour *hour)
{
    struct machine *machine = &hour->machine;

    machine->workload_count = below(hour, 8);
    machine->busy_us = below(hour, 20 * SECOND);
    for (size_t w = 0; w < machine->workload_count; w++) {
        snprintf(hour->ids[w], sizeof(hour->ids[w]), "%u", (unsigned)below(hour, 100));
        hour->workloads[w] = (struct sample_workload)WORKLOAD(
            WORKLOAD_SLURM, hour->ids[w], below(hour, SECOND), below(hour, 10 * GIB));
    }
    machine->workloads = hour->workloads;
    machine->meters[HOUR_PACKAGE].watts = 50 + below(hour, 300);
    machine->meters[HOUR_DRAM].watts = 5 + below(hour, 40);
    machine->gpus[0].watts = 80 + below(hour, 600);
}

static void pass_second(struct hour *hour)
{
    struct machine *machine = &hour->machine;
    uint64_t rest_w = 60 + below(hour, REST_MAX_W - 60), whole_w;

    if (below(hour, 13) == 0)
        change_load(hour);
    whole_w = rest_w + machine->meters[HOUR_PACKAGE].watts + machine->meters[HOUR_DRAM].watts +
              machine->gpus[0].watts;
    hour->late_w[(machine->now_s + hour->late_s) % ARRAY_SIZE(hour->late_w)] = whole_w;
    machine->meters[HOUR_WHOLE].watts = hour->late_w[machine->now_s % ARRAY_SIZE(hour->late_w)];
    hour->highest_w = MAX(hour->highest_w, whole_w);
    if (machine->now_s >= 40)
        hour->rest_uj += rest_w * JOULE;
    run(machine, 1);
    if (machine->now_s % 10 == 0)
        pipeline_sweep(machine->pipeline, T0 + machine->now_s * SECOND);
}

static void begin_hour(struct hour *hour, uint64_t seed, size_t late_s)
{
    *hour = (struct hour){
        .machine = {.meters = {PACKAGE(0), DRAM(0), BMC(0)}, .gpus = {{.present = true}}},
        .random = {.state = seed},
        .late_s = late_s,
    };
    change_load(hour);
    begin(&hour->machine);
}

static void an_hour_of_rest_is_what_was_used_but_for_what_the_bmc_is_late(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct hour hour;
        uint64_t bound_uj, booked_uj;

        begin_hour(&hour, seed, 7);
        while (hour.machine.now_s < HOUR_END_S)
            pass_second(&hour);
        bound_uj = 7 * hour.highest_w * JOULE;
        booked_uj = rest_uj(&hour.machine);
        assert_true(booked_uj <=
                    hour.rest_uj + bound_uj + hour.machine.pipeline->overhead.deficit_uj);
        assert_true(booked_uj + bound_uj >= hour.rest_uj);
        end(&hour.machine);
    }
}

static void something_breaks(struct hour *hour)
{
    struct machine *machine = &hour->machine;
    size_t which = below(hour, HOUR_METERS);

    switch (below(hour, 3)) {
    case 0:
        machine->meters[which].breaks++;
        machine->meters[which].counter_uj += below(hour, 100000 * JOULE);
        break;
    case 1: /* a source that begins anew */
        machine->meters[which].counter_uj = 0;
        break;
    default:
        machine->gpus[0].counter_uj = 0;
        break;
    }
    hour->breaks++;
}

/* A break costs a window, which is at most 40 s until the whole is read again. */
static void an_hour_of_breaks_costs_windows_and_invents_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 11; seed <= 15; seed++) {
        struct hour hour;

        begin_hour(&hour, seed, 0);
        while (hour.machine.now_s < HOUR_END_S) {
            if (below(&hour, 200) == 0 && hour.machine.now_s > 40)
                something_breaks(&hour);
            pass_second(&hour);
        }
        assert_true(hour.breaks > 5);
        assert_true(rest_uj(&hour.machine) < hour.rest_uj);
        assert_true(rest_uj(&hour.machine) + (hour.breaks + 1) * 40 * REST_MAX_W * JOULE >=
                    hour.rest_uj);
        end(&hour.machine);
    }
}

static void something_falls_silent(struct hour *hour)
{
    size_t which = below(hour, HOUR_METERS + 1);

    if (which < HOUR_METERS)
        hour->machine.meters[which].silent = true;
    else
        hour->machine.gpus[0].silent = true;
}

static void all_is_read_again(struct machine *machine)
{
    for (size_t i = 0; i < HOUR_METERS; i++)
        machine->meters[i].silent = false;
    machine->gpus[0].silent = false;
}

/* `run` looks at the books at every second. */
static void the_books_balance_whatever_happens(void **state)
{
    (void)state;
    for (uint64_t seed = 21; seed <= 25; seed++) {
        struct hour hour;

        begin_hour(&hour, seed, 3);
        while (hour.machine.now_s < HOUR_END_S) {
            if (below(&hour, 60) == 0)
                something_breaks(&hour);
            if (below(&hour, 60) == 0)
                something_falls_silent(&hour);
            if (below(&hour, 20) == 0)
                all_is_read_again(&hour.machine);
            hour.machine.restarted = below(&hour, 300) == 0;
            pass_second(&hour);
        }
        assert_true(rest_uj(&hour.machine) > hour.rest_uj / 10);
        end(&hour.machine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_overhead_is_divided_by_the_energy_of_the_other_meters),
        cmocka_unit_test(gpus_outside_of_the_whole_do_not_weigh),
        cmocka_unit_test(each_window_has_its_own_weights),
        cmocka_unit_test(joules_of_the_idle_tier_bring_a_rest_of_the_idle_tier),
        cmocka_unit_test(the_weight_of_a_gap_is_unattributed),
        cmocka_unit_test(a_node_with_nothing_but_a_bmc_is_divided_by_cpu_time),
        cmocka_unit_test(without_a_package_meter_cpu_time_divides_the_overhead_even_with_a_gpu),
        cmocka_unit_test(what_a_quiet_node_draws_is_idle),
        cmocka_unit_test(equally_means_all_workloads_but_the_system),
        cmocka_unit_test(equally_works_where_nothing_else_is_booked),
        cmocka_unit_test(none_means_that_all_of_it_is_idle),
        cmocka_unit_test(a_workload_that_ended_is_charged_for_its_part_of_the_window),
        cmocka_unit_test(a_workload_of_a_few_seconds_is_charged_too),
        cmocka_unit_test(what_a_workload_weighed_that_made_room_is_unattributed),
        cmocka_unit_test(no_weight_outlasts_a_window_that_is_given_up),
        cmocka_unit_test(an_hour_of_rest_is_what_was_used_but_for_what_the_bmc_is_late),
        cmocka_unit_test(an_hour_of_breaks_costs_windows_and_invents_nothing),
        cmocka_unit_test(the_books_balance_whatever_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
