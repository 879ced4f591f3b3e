/* attribution/node/node_overhead: the measurement. Its division is in
 * test_node_overhead_divide.c. */
#include "node_overhead_fixture.h"

/* 80 W of rest: 2400 J in a window. */
static struct machine usual_machine(void)
{
    return (struct machine){.meters = {BMC(400), PACKAGE(100), DRAM(20)},
                            .gpus = {{.present = true, .watts = 200}},
                            BUSY};
}

static void a_window_lasts_30_s_and_has_the_energy_of_the_whole_beyond_its_parts(void **state)
{
    struct machine machine = usual_machine();

    (void)state;
    begin(&machine);
    run(&machine, 39);
    assert_null(books_of_rest(&machine));
    run(&machine, 30);
    assert_int_equal(rest_uj(&machine), 0);
    assert_string_equal(books_of_rest(&machine)->meter_id, "ipmi");
    run(&machine, 1);
    assert_int_equal(rest_uj(&machine), 2400 * JOULE);
    run(&machine, 29);
    assert_int_equal(rest_uj(&machine), 2400 * JOULE);
    run(&machine, 1);
    assert_int_equal(rest_uj(&machine), 4800 * JOULE);
    end(&machine);
}

static void without_dram_the_memory_is_in_the_rest(void **state)
{
    struct machine machine = {.meters = {BMC(300), PACKAGE(100)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 70);
    assert_int_equal(rest_uj(&machine), 6000 * JOULE);
    end(&machine);
}

static void without_a_meter_of_the_whole_node_there_is_no_overhead(void **state)
{
    struct machine machine = {.meters = {PACKAGE(100), DRAM(20)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 200);
    assert_null(books_of_rest(&machine));
    end(&machine);
}

/* Read every second: from 31 s to the report at 65 s, then in windows of 30 s. */
static void psys_is_a_meter_of_the_whole_node_without_gpus(void **state)
{
    struct machine machine = {.meters = {PSYS("0", 150), PACKAGE(100), DRAM(20)},
                              .gpus = {{.present = true, .watts = 200}},
                              BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 65);
    assert_int_equal(rest_uj(&machine), 34 * 30 * JOULE);
    assert_string_equal(books_of_rest(&machine)->meter_id, "psys");
    run(&machine, 30);
    assert_int_equal(rest_uj(&machine), 64 * 30 * JOULE);
    end(&machine);
}

static void a_second_psys_that_comes_later_is_not_added(void **state)
{
    static const struct machine_meter second = PSYS("1", 150);
    struct machine machine = {.meters = {PSYS("0", 150), PACKAGE(100), DRAM(20)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 65);
    machine.meters[3] = second;
    run(&machine, 30);
    assert_int_equal(rest_uj(&machine), 64 * 30 * JOULE);
    end(&machine);
}

static void psys_of_two_sockets_are_not_added_up(void **state)
{
    struct machine machine = {.meters = {PSYS("0", 150), PSYS("1", 150), PACKAGE(100)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 200);
    assert_null(books_of_rest(&machine));
    end(&machine);
}

static void modules_are_added_up_and_contain_their_gpus(void **state)
{
    struct machine machine = {
        .meters =
            {MODULE("0", 500),
             MODULE("1", 500),
             {.source = "hwmon", .kind = METER_PACKAGE, .id = "0", .every_s = 1, .watts = 150},
             {.source = "hwmon", .kind = METER_PACKAGE, .id = "1", .every_s = 1, .watts = 150}},
        .gpus = {{.present = true, .watts = 300}, {.present = true, .watts = 300}},
        BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 65);
    assert_int_equal(rest_uj(&machine), 34 * 100 * JOULE);
    assert_string_equal(books_of_rest(&machine)->meter_id, "module");
    end(&machine);
}

static void the_best_of_several_meters_of_the_whole_node_is_chosen(void **state)
{
    static const struct machine_meter ranked[] = {
        {.source = "cray", .kind = METER_NODE, .id = "cray", .every_s = 10, .watts = 100},
        {.source = "redfish", .kind = METER_NODE, .id = "redfish", .every_s = 10, .watts = 110},
        BMC(120),
        {.source = "hwmon", .kind = METER_NODE, .id = "hwmon", .every_s = 10, .watts = 130},
        {.source = "rapl", .kind = METER_PSYS, .id = "0", .every_s = 10, .watts = 140},
        {.source = "hwmon", .kind = METER_MODULE, .id = "0", .every_s = 10, .watts = 150},
    };
    static const char *const ids[] = {"cray", "redfish", "ipmi", "hwmon", "psys", "module"};

    (void)state;
    for (size_t best = 0; best < ARRAY_SIZE(ranked); best++) {
        struct machine machine = {BUSY};

        for (size_t i = best; i < ARRAY_SIZE(ranked); i++)
            machine.meters[ARRAY_SIZE(ranked) - 1 - i] = ranked[i]; /* the best comes last */
        begin(&machine);
        run(&machine, 70);
        assert_string_equal(books_of_rest(&machine)->meter_id, ids[best]);
        assert_int_equal(rest_uj(&machine), 30 * ranked[best].watts * JOULE);
        end(&machine);
    }
}

static void a_better_meter_has_30_s_to_answer_and_then_the_choice_is_final(void **state)
{
    static const struct machine_meter bmc = BMC(400);
    static const struct {
        uint64_t at_s;
        const char *id;
    } cases[] = {{20, "ipmi"}, {40, "psys"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct machine machine = {.meters = {PSYS("0", 150), PACKAGE(100)}, BUSY};

        begin(&machine);
        run(&machine, cases[i].at_s - 1);
        machine.meters[2] = bmc;
        run(&machine, 200);
        assert_string_equal(books_of_rest(&machine)->meter_id, cases[i].id);
        end(&machine);
    }
}

static void a_gpu_of_which_no_energy_is_known_leaves_no_rest(void **state)
{
    struct machine machine = usual_machine();

    (void)state;
    machine.gpus[1].present = machine.gpus[1].silent = true;
    begin(&machine);
    run(&machine, 200);
    assert_null(books_of_rest(&machine));
    machine.gpus[1].silent = false; /* it does not count */
    machine.gpus[1].watts = 10;
    run(&machine, 70);
    assert_true(rest_uj(&machine) > 0);
    end(&machine);
}

static void the_operator_knows_better_whether_gpus_are_in_it(void **state)
{
    static const struct {
        enum includes_gpus includes_gpus;
        bool is_psys;
        uint64_t watts;
    } cases[] = {
        {INCLUDES_GPUS_AUTO, false, 80}, {INCLUDES_GPUS_YES, false, 80},
        {INCLUDES_GPUS_NO, false, 280},  {INCLUDES_GPUS_AUTO, true, 280},
        {INCLUDES_GPUS_YES, true, 80},   {INCLUDES_GPUS_NO, true, 280},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct machine machine = usual_machine();

        if (cases[i].is_psys)
            machine.meters[0] = (struct machine_meter){
                .source = "rapl", .kind = METER_PSYS, .id = "0", .every_s = 10, .watts = 400};
        begin_with(&machine,
                   (struct node_overhead_options){.includes_gpus = cases[i].includes_gpus}, 64);
        run(&machine, 70);
        assert_int_equal(rest_uj(&machine), 30 * cases[i].watts * JOULE);
        end(&machine);
    }
}

/* GPUs that step by 300 W every second window, and a BMC that follows them or does not. */
static void step_gpus(struct machine *machine, bool included)
{
    machine->gpus[0].watts = 50;
    machine->meters[0].watts = included ? 250 : 200;
    begin(machine);
    run(machine, 70);
    for (int i = 0; i < 4; i++) {
        machine->gpus[0].watts = i % 2 ? 50 : 350;
        machine->meters[0].watts = 200 + (included ? machine->gpus[0].watts : 0);
        run(machine, 60);
    }
}

static void steps_of_their_power_show_that_gpus_are_in_the_whole(void **state)
{
    struct machine machine = usual_machine();

    (void)state;
    step_gpus(&machine, true);
    assert_true(machine.pipeline->overhead.includes_gpus);
    assert_int_equal(rest_uj(&machine), 9 * 2400 * JOULE);
    end(&machine);
}

/* The first window has 30 W of overhead, as 50 W of the GPU are subtracted. The next are
 * negative or reduced; at 280 s the fourth step is over, and the last window has all of its 80
 * W. */
static void steps_of_their_power_show_that_gpus_are_not_in_the_whole(void **state)
{
    struct machine machine = usual_machine();

    (void)state;
    step_gpus(&machine, false);
    assert_false(machine.pipeline->overhead.includes_gpus);
    assert_int_equal(rest_uj(&machine), (900 + 2400) * JOULE);
    end(&machine);
}

static void gpus_outside_of_the_whole_may_fail(void **state)
{
    struct machine machine = usual_machine();

    (void)state;
    step_gpus(&machine, false);
    machine.gpus[0].counter_uj = 0; /* reset */
    run(&machine, 5);
    machine.gpus[0].silent = true;
    run(&machine, 55);
    assert_int_equal(rest_uj(&machine), (900 + 3 * 2400) * JOULE);
    end(&machine);
}

static void a_deficit_is_not_booked_and_reduces_later_windows(void **state)
{
    struct machine machine = {.meters = {BMC(80), PACKAGE(100)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 70);
    assert_int_equal(rest_uj(&machine), 0);
    machine.meters[0].watts = 130;
    run(&machine, 30);
    assert_int_equal(rest_uj(&machine), (900 - 600) * JOULE);
    run(&machine, 30);
    assert_int_equal(rest_uj(&machine), (1800 - 600) * JOULE);
    end(&machine);
}

static void a_deficit_outlasts_a_window_that_is_thrown_away(void **state)
{
    struct machine machine = {.meters = {BMC(80), PACKAGE(100)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 75);
    machine.meters[0].breaks++;
    machine.meters[0].watts = 130;
    run(&machine, 35);
    assert_int_equal(rest_uj(&machine), (900 - 600) * JOULE);
    end(&machine);
}

static void parts_that_use_more_than_the_whole_for_long_are_a_mismatch(void **state)
{
    struct machine machine = {.meters = {BMC(10), PACKAGE(100)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 70);
    assert_int_equal(machine.pipeline->overhead.deficit_uj, 2700 * JOULE);
    assert_false(machine.pipeline->overhead.mismatch);
    run(&machine, 30);
    assert_int_equal(machine.pipeline->overhead.deficit_uj, 3000 * JOULE); /* 10 W for 5 minutes */
    assert_true(machine.pipeline->overhead.mismatch);
    run(&machine, 300);
    assert_int_equal(rest_uj(&machine), 0);
    machine.meters[0].watts = 250;
    run(&machine, 30);
    assert_int_equal(rest_uj(&machine), (4500 - 3000) * JOULE);
    assert_false(machine.pipeline->overhead.mismatch);
    end(&machine);
}

static void break_whole(struct machine *machine)
{
    machine->meters[0].breaks++;
    machine->meters[0].counter_uj += 5000 * JOULE;
}

static void turn_whole_back(struct machine *machine)
{
    machine->meters[0].counter_uj = 0;
}

static void break_package(struct machine *machine)
{
    machine->meters[1].breaks++;
}

static void turn_package_back(struct machine *machine)
{
    machine->meters[1].counter_uj = 0;
}

static void break_dram(struct machine *machine)
{
    machine->meters[2].breaks++;
    machine->meters[2].counter_uj += 7 * JOULE;
}

static void reset_gpu(struct machine *machine)
{
    machine->gpus[0].counter_uj = 0;
}

static void replace_gpu(struct machine *machine)
{
    feed(machine,
         (struct sample){.kind = SAMPLE_DEVICE,
                         .device = {.uuid = "GPU-2", .name = "NVIDIA H200", .driver = "580"}});
    machine->gpus[0].counter_uj += 9000 * JOULE;
}

static void add_second_gpu(struct machine *machine)
{
    machine->gpus[1].present = true;
    machine->gpus[1].watts = 50;
    machine->meters[0].watts += 50;
    describe_gpu(machine, 1);
}

static void add_package(struct machine *machine)
{
    machine->meters[3] = (struct machine_meter){
        .source = "rapl", .kind = METER_PACKAGE, .id = "1", .every_s = 1, .watts = 30};
    machine->meters[0].watts += 30;
}

/* Something happens at 55 s: the window that began at 40 s is not booked, another begins. */
static void a_window_in_which_a_count_broke_is_thrown_away(void **state)
{
    static const struct {
        void (*happens)(struct machine *machine);
        uint64_t settled_s;
    } cases[] = {
        {break_whole, 90},       {turn_whole_back, 90}, {break_package, 90},
        {turn_package_back, 90}, {break_dram, 90},      {reset_gpu, 90},
        {replace_gpu, 90},       {add_second_gpu, 90},  {add_package, 100} /* books open at 60 s */,
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct machine machine = usual_machine();

        begin(&machine);
        run(&machine, 55);
        cases[i].happens(&machine);
        run(&machine, cases[i].settled_s - 56);
        assert_int_equal(rest_uj(&machine), 0);
        run(&machine, 1);
        assert_int_equal(rest_uj(&machine), 2400 * JOULE);
        run(&machine, 30);
        assert_int_equal(rest_uj(&machine), 4800 * JOULE);
        end(&machine);
    }
}

static void silence_package(struct machine *machine, bool silent)
{
    machine->meters[1].silent = silent;
}

static void silence_gpu(struct machine *machine, bool silent)
{
    machine->gpus[0].silent = silent;
}

static void silence_whole(struct machine *machine, bool silent)
{
    machine->meters[0].silent = silent;
}

static void what_is_not_read_for_a_while_makes_a_longer_window(void **state)
{
    static void (*const cases[])(struct machine *, bool) = {silence_package, silence_gpu,
                                                            silence_whole};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct machine machine = usual_machine();

        begin(&machine);
        run(&machine, 45);
        cases[i](&machine, true);
        run(&machine, 60);
        cases[i](&machine, false);
        run(&machine, 4);
        assert_int_equal(rest_uj(&machine), 0);
        run(&machine, 1);
        assert_int_equal(rest_uj(&machine), 70 * 80 * JOULE);
        end(&machine);
    }
}

static void what_is_not_read_for_5_minutes_makes_none(void **state)
{
    static void (*const cases[])(struct machine *, bool) = {silence_package, silence_gpu,
                                                            silence_whole};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct machine machine = usual_machine();

        begin(&machine);
        run(&machine, 45);
        cases[i](&machine, true);
        run(&machine, 355);
        cases[i](&machine, false);
        run(&machine, 39);
        assert_int_equal(rest_uj(&machine), 0);
        run(&machine, 1);
        assert_int_equal(rest_uj(&machine), 2400 * JOULE);
        end(&machine);
    }
}

static void a_clock_that_is_set_back_begins_anew(void **state)
{
    struct machine machine = {.meters = {BMC(180), PACKAGE(100)}, .now_s = 5000, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 55); /* the window began at 5040 s */
    machine.now_s = 5;
    run(&machine, 34);
    assert_int_equal(rest_uj(&machine), 0);
    run(&machine, 1);
    assert_int_equal(rest_uj(&machine), 2400 * JOULE);
    end(&machine);
}

static void a_clock_that_is_set_back_does_not_put_off_the_choice(void **state)
{
    struct machine machine = {.meters = {BMC(180), PACKAGE(100)}, .now_s = 5000, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 10);
    machine.now_s = 5;
    run(&machine, 75);
    assert_int_equal(rest_uj(&machine), 2400 * JOULE);
    end(&machine);
}

static void a_stale_meter_of_the_whole_node_is_not_chosen(void **state)
{
    static const struct machine_meter psys = PSYS("0", 150);
    struct machine machine = {.meters = {BMC(400), PACKAGE(100)}, BUSY};

    (void)state;
    begin(&machine);
    run(&machine, 5);
    machine.meters[0].silent = true;
    machine.now_s += 60; /* suspended */
    machine.meters[2] = psys;
    run(&machine, 100);
    assert_string_equal(books_of_rest(&machine)->meter_id, "psys");
    end(&machine);
}

static void a_scrape_shows_the_rest_and_what_it_is_taken_from(void **state)
{
    struct machine machine = usual_machine();
    struct snapshot snapshot;
    size_t found = 0;

    (void)state;
    begin(&machine);
    run(&machine, 39);
    snapshot_init(&snapshot);
    assert_int_equal(pipeline_snapshot(machine.pipeline, T0 + 39 * SECOND, SECOND, &snapshot), 0);
    assert_null(snapshot.overhead_source);
    snapshot_done(&snapshot);
    machine.meters[0].watts = 10;
    run(&machine, 101);
    snapshot_init(&snapshot);
    assert_int_equal(pipeline_snapshot(machine.pipeline, T0 + 140 * SECOND, SECOND, &snapshot), 0);
    assert_string_equal(snapshot.overhead_source, "ipmi");
    assert_true(snapshot.overhead_includes_gpus);
    assert_true(snapshot.overhead_mismatch);
    for (size_t i = 0; i < snapshot.meter_count; i++)
        if (snapshot.meters[i].kind == METER_NODE_OVERHEAD) {
            assert_false(snapshot.meters[i].has_counter);
            assert_int_equal(snapshot.meters[i].pending_uj, 0);
            assert_int_equal(snapshot.meters[i].imbalance_uj, 0);
            found++;
        }
    assert_int_equal(found, 1);
    snapshot_done(&snapshot);
    end(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_lasts_30_s_and_has_the_energy_of_the_whole_beyond_its_parts),
        cmocka_unit_test(without_dram_the_memory_is_in_the_rest),
        cmocka_unit_test(without_a_meter_of_the_whole_node_there_is_no_overhead),
        cmocka_unit_test(psys_is_a_meter_of_the_whole_node_without_gpus),
        cmocka_unit_test(a_second_psys_that_comes_later_is_not_added),
        cmocka_unit_test(psys_of_two_sockets_are_not_added_up),
        cmocka_unit_test(modules_are_added_up_and_contain_their_gpus),
        cmocka_unit_test(the_best_of_several_meters_of_the_whole_node_is_chosen),
        cmocka_unit_test(a_better_meter_has_30_s_to_answer_and_then_the_choice_is_final),
        cmocka_unit_test(a_gpu_of_which_no_energy_is_known_leaves_no_rest),
        cmocka_unit_test(the_operator_knows_better_whether_gpus_are_in_it),
        cmocka_unit_test(steps_of_their_power_show_that_gpus_are_in_the_whole),
        cmocka_unit_test(steps_of_their_power_show_that_gpus_are_not_in_the_whole),
        cmocka_unit_test(gpus_outside_of_the_whole_may_fail),
        cmocka_unit_test(a_deficit_is_not_booked_and_reduces_later_windows),
        cmocka_unit_test(a_deficit_outlasts_a_window_that_is_thrown_away),
        cmocka_unit_test(parts_that_use_more_than_the_whole_for_long_are_a_mismatch),
        cmocka_unit_test(a_window_in_which_a_count_broke_is_thrown_away),
        cmocka_unit_test(what_is_not_read_for_a_while_makes_a_longer_window),
        cmocka_unit_test(what_is_not_read_for_5_minutes_makes_none),
        cmocka_unit_test(a_clock_that_is_set_back_begins_anew),
        cmocka_unit_test(a_clock_that_is_set_back_does_not_put_off_the_choice),
        cmocka_unit_test(a_stale_meter_of_the_whole_node_is_not_chosen),
        cmocka_unit_test(a_scrape_shows_the_rest_and_what_it_is_taken_from),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
