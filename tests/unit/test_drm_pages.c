/*
 * Scripted machines with AMD's and Intel's GPUs (tests/fakes/drm) through the exporter's own code,
 * the attribution and the exposition, on a clock that the test moves: whole pages, balanced books,
 * and energy where the script's own truth has it.
 */
#include "drm_fixture.h"

#include <tree.h>

struct expectation {
    const char *name;
    double wrong_max;   /* of a board's active energy */
    bool is_integrated; /* no counter: the energy is that of power, to 2 % */
};

static void check_board(const struct rig *rig, unsigned board, const struct expectation *expected)
{
    const struct fake_script *script = rig->machine->script;
    unsigned gpu = gpu_of(script, board);
    struct drm_score result = score(rig, gpu);
    double true_uj =
        (double)(fake_energy_uj(script, board, last_us(rig)) - fake_energy_uj(script, board, 0));

    if (expected->is_integrated)
        assert_true(fabs((double)meter_of(rig, (int)gpu)->energy_uj / true_uj - 1) < 0.02);
    else if (!script->boards[board].is_second_die)
        check_energy(rig, gpu, board);
    if (result.wrong > expected->wrong_max || fabs(result.missing) > 0.02)
        fail_msg("%s: GPU %u: %f of the energy is booked to the wrong process, %f to none",
                 expected->name, gpu, result.wrong, result.missing);
}

/* A minute of each, with some idle seconds first. */
static void play_machines(const struct expectation *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct fake_script *script = fake_script_find(expected[i].name);
        struct fake_machine machine;
        struct rig rig;
        char page[64];

        open_machine(&rig, &machine, script);
        play_whole(&rig, 60 * SECOND);
        assert_int_equal(rig.errors, 0);
        snprintf(page, sizeof(page), "drm/%s.txt", expected[i].name);
        check_page(&rig, page);
        for (unsigned board = 0; board < fake_board_count(script); board++)
            check_board(&rig, board, &expected[i]);
        close_machine(&rig);
    }
}

static void boards_that_show_occupancy_are_divided_by_it(void **state)
{
    static const struct expectation expected[] = {
        {"mi210", 0.03, false},      /* one draws more for what it occupies; occupancy is sampled */
        {"mi250", 0.01, false},      /* the first die counts for both */
        {"mi300x-spx", 0.03, false}, /* gpu_metrics 1.7 */
        {"mi300x-cpx", 0.01, false}, /* gpu_metrics 1.8 */
    };

    (void)state;
    play_machines(expected, ARRAY_SIZE(expected));
}

/* The counter of 32 bits wraps on the way. */
static void programs_of_rocm_without_occupancy_have_what_clients_leave(void **state)
{
    /* The time of a decoder counts as that of any engine, though it draws a tenth. */
    static const struct expectation expected[] = {{"radeon", 0.13, false}};

    (void)state;
    play_machines(expected, ARRAY_SIZE(expected));
}

static void without_a_counter_power_is_integrated_and_divided_by_engine_time(void **state)
{
    static const struct expectation expected[] = {{"radeon-uncounted", 0.01, true},
                                                  {"apu", 0.05, true}};

    (void)state;
    play_machines(expected, ARRAY_SIZE(expected));
}

static void boards_of_intel_are_divided_by_engine_time(void **state)
{
    static const struct expectation expected[] = {
        {"arc-i915", 0.01, false}, /* nanoseconds; a render and a video engine draw differently */
        {"arc-xe", 0.01, false},   /* the same in cycles */
        {"max-xe", 0.01, false},   /* eight compute engines, two tiles, two cards */
    };

    (void)state;
    play_machines(expected, ARRAY_SIZE(expected));
}

/* Its power contains the processors': where RAPL counts these, it would be there twice. */
static void an_apu_has_no_energy_of_its_own_where_the_package_has_a_meter(void **state)
{
    const struct fake_script *script = fake_script_find("apu");
    struct fake_machine machine;
    struct snapshot *snapshot;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, script);
    tree_write(rig.root, "sys/class/powercap/intel-rapl:0/name", "package-0\n");
    tree_write(rig.root, "sys/class/powercap/intel-rapl:0/energy_uj", "123456\n");
    tree_write(rig.root, "sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
    rig_add_source(&rig, &drm_source);
    play_whole(&rig, 20 * SECOND);
    snapshot = books(&rig);
    assert_int_equal(snapshot->gpu_count, 1);
    for (size_t i = 0; i < snapshot->meter_count; i++)
        assert_int_equal(snapshot->meters[i].energy_uj, 0);
    close_books(snapshot);
    close_machine(&rig);
}

/* The energy so far, of all meters. */
static uint64_t energy_uj(const struct rig *rig)
{
    struct snapshot *snapshot = books(rig);
    uint64_t sum_uj = 0;

    for (size_t i = 0; i < snapshot->meter_count; i++)
        sum_uj += snapshot->meters[i].energy_uj + snapshot->meters[i].pending_uj;
    close_books(snapshot);
    return sum_uj;
}

static void an_apu_is_not_booked_any_more_once_a_meter_of_its_package_is_read(void **state)
{
    atomic_bool package_is_metered = false;
    struct fake_machine machine;
    uint64_t before_uj;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, fake_script_find("apu"));
    rig.context.package_is_metered = &package_is_metered;
    rig_add_source(&rig, &drm_source);
    play(&rig, 20 * SECOND);
    before_uj = energy_uj(&rig);
    assert_true(before_uj > 100 * JOULE);
    package_is_metered = true;
    play_whole(&rig, 20 * SECOND);
    assert_int_equal(energy_uj(&rig), before_uj);
    assert_int_equal(rig.errors, 0);
    close_machine(&rig);
}

static void an_apu_that_counts_its_socket_is_not_booked_beside_a_meter_of_it(void **state)
{
    struct fake_machine machine;
    char path[FAKE_PATH_BYTES];
    struct rig rig;

    (void)state;
    for (int is_apu = 0; is_apu < 2; is_apu++) {
        make_machine(&rig, &machine, fake_script_find("mi300x-spx"));
        tree_write(rig.root, "sys/cray/pm_counters/cpu_energy", "123456 J 1 us\n");
        if (is_apu) /* MI300A has the same tables */
            tree_write(rig.root, fake_board_path(&machine, 0, "device", path), "0x74a0\n");
        rig_add_source(&rig, &drm_source);
        play_whole(&rig, 20 * SECOND);
        assert_int_equal(energy_uj(&rig) > 0, !is_apu);
        close_machine(&rig);
    }
}

/* With gpu_metrics 4.0. */
static void move_to_future(struct rig *rig)
{
    static const char future[64] = {64, 0, 4, 0};
    char path[FAKE_PATH_BYTES];

    move_machine(rig);
    fake_tree_put(rig->machine, fake_board_path(rig->machine, 0, "gpu_metrics", path), future,
                  sizeof(future));
}

static void a_card_with_tables_that_are_not_known_is_no_apu(void **state)
{
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, fake_script_find("radeon-uncounted"));
    tree_write(rig.root, "sys/class/powercap/intel-rapl:0/name", "package-0\n");
    tree_write(rig.root, "sys/class/powercap/intel-rapl:0/energy_uj", "123456\n");
    rig.move = move_to_future;
    rig_add_source(&rig, &drm_source);
    play_whole(&rig, 20 * SECOND);
    assert_true(energy_uj(&rig) > 0);
    close_machine(&rig);
}

static void a_gpu_that_was_not_measured_has_no_joules_and_no_watts(void **state)
{
    const struct exposition_options options = {
        .format = PAGE_TEXT, .process_prefix = "my_gpu_process", .version = "1.2.3"};
    atomic_bool package_is_metered = true;
    struct fake_machine machine;
    struct snapshot *snapshot;
    struct buffer page;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, fake_script_find("apu"));
    rig.context.package_is_metered = &package_is_metered;
    rig_add_source(&rig, &drm_source);
    play_whole(&rig, 20 * SECOND);
    snapshot = books(&rig);
    buffer_init(&page, 16 << 20);
    exposition_render(snapshot, &options, EXPOSITION_ALL, &page);
    buffer_char(&page, '\0');
    assert_true(snapshot->process_count > 0 && snapshot->workload_count > 0);
    assert_non_null(strstr(page.data, "\nwattribute_gpu_power_watts{")); /* what the chip shows */
    assert_null(strstr(page.data, "joules_total{"));
    assert_null(strstr(page.data, "\nwattribute_workload_power_watts{"));
    assert_null(strstr(page.data, "\nwattribute_workload_energy_uncertainty"));
    buffer_done(&page);
    close_books(snapshot);
    close_machine(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boards_that_show_occupancy_are_divided_by_it),
        cmocka_unit_test(programs_of_rocm_without_occupancy_have_what_clients_leave),
        cmocka_unit_test(without_a_counter_power_is_integrated_and_divided_by_engine_time),
        cmocka_unit_test(boards_of_intel_are_divided_by_engine_time),
        cmocka_unit_test(an_apu_has_no_energy_of_its_own_where_the_package_has_a_meter),
        cmocka_unit_test(an_apu_is_not_booked_any_more_once_a_meter_of_its_package_is_read),
        cmocka_unit_test(an_apu_that_counts_its_socket_is_not_booked_beside_a_meter_of_it),
        cmocka_unit_test(a_card_with_tables_that_are_not_known_is_no_apu),
        cmocka_unit_test(a_gpu_that_was_not_measured_has_no_joules_and_no_watts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
