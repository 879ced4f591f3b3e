/*
 * The scripted boards (tests/fakes/nvml/scenarios) through the exporter's own NVML code, the
 * attribution and the exposition, on a clock that the test moves: whole pages, balanced books, and
 * energy where the script's own truth has it.
 */
#include "script_fixture.h"

/* At the defaults of the exporter. */
static void open_scripted(struct rig *rig, const char *name, uint64_t seconds,
                          struct script *ret_script)
{
    char path[256];

    snprintf(path, sizeof(path), "%s%s.trace", SCENARIOS, name);
    open_rig_by(rig, FAKE_NVML, path, rig_defaults());
    rig->host.program_secret = (struct program_secret){{1, 2}};
    *ret_script = read_script(rig, path, START_US + seconds * SECOND);
    play(rig, seconds * SECOND + STEP_US);
    assert_int_equal(pipeline_finish(rig->pipeline), 0);
    assert_int_equal(rig->errors, 0);
}

static void a_scripted_board_gives_its_page_with_balanced_books_and_the_energy_where_it_was_used(
    void **state)
{
    static const struct {
        const char *name;
        uint64_t seconds;
        double wrong_max; /* of a board's active energy; 0: the script has no truth */
    } cases[] = {
        {"a100-mig", 12, 0.1},        /* by slices: nothing shows what an instance does */
        {"a100-mig-large", 12, 0.03}, /* likewise */
        /* By GPM; equally it would be 0.17 on GPU 0. On GPU 2 one is alone only as it starts. */
        {"h100-mig", 12, 0.05},
        {"h100-mig-split", 15, 0.04}, /* by GPM, and by slices within an instance */
        {"mig-change", 14, 0.04},
        {"mps", 10, 0},
        {"mps-partitions", 44, 0.02}, /* unmixed; equally it would be 0.25 */
        {"vgpu-host", 12, 0},
        {"eight-gpus", 6, 0},
        {"time-slicing", 20, 0}, /* a board without GPM */
        {"no-process-utilization", 16, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig rig;
        struct script script;
        char page[64];

        open_scripted(&rig, cases[i].name, cases[i].seconds, &script);
        for (unsigned gpu = 0; gpu < script.gpu_count; gpu++) {
            double wrong = wrong_part(&rig, &script, gpu);

            assert_int_equal(meter_of(&rig, (int)gpu)->energy_uj,
                             script.last_uj[gpu] - script.first_uj[gpu]);
            if (wrong > cases[i].wrong_max)
                fail_msg("%s: GPU %u: %f of the energy is booked to the wrong process",
                         cases[i].name, gpu, wrong);
        }
        snprintf(page, sizeof(page), "nvml/%s.txt", cases[i].name);
        check_page(&rig, page);
        close_rig(&rig);
    }
}

/* Of the energy of a process. */
static double confidence_of(const struct rig *rig, uint32_t pid)
{
    struct snapshot_process process = process_of(rig, 0, pid);

    assert_true(process.active_uj > 0);
    return (double)process.known_uj / (double)(process.active_uj + process.idle_uj);
}

static void without_utilisation_of_processes_those_listed_share_equally_without_confidence(
    void **state)
{
    struct script script;
    struct rig rig;

    (void)state;
    open_scripted(&rig, "no-process-utilization", 5, &script);
    assert_true(rig.call_count("nvmlDeviceGetProcessUtilization") > 0);
    assert_int_equal(process_of(&rig, 0, 991).active_uj, process_of(&rig, 0, 992).active_uj);
    assert_int_equal(process_of(&rig, 0, 991).measured_uj, 0);
    assert_true(confidence_of(&rig, 991) == 0);
    close_rig(&rig);
}

/* A steady mixture of unknown programs, and instances of a board in MIG mode. */
static void without_gpm_time_or_slices_divide_and_confidence_is_low(void **state)
{
    static const struct {
        const char *name;
        uint32_t pids[4];
    } cases[] = {{"time-slicing", {101, 102, 103}}, {"a100-mig", {101, 102, 103, 104}}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct script script;
        struct rig rig;

        open_scripted(&rig, cases[i].name, 12, &script);
        assert_int_equal(rig.call_count("nvmlGpmSampleGet"), 0);
        assert_int_equal(rig.call_count("nvmlGpmMigSampleGet"), 0);
        for (size_t k = 0; k < ARRAY_SIZE(cases[i].pids) && cases[i].pids[k]; k++) {
            assert_int_equal(process_of(&rig, 0, cases[i].pids[k]).measured_uj, 0);
            assert_true(confidence_of(&rig, cases[i].pids[k]) < 0.1);
        }
        close_rig(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            without_utilisation_of_processes_those_listed_share_equally_without_confidence),
        cmocka_unit_test(without_gpm_time_or_slices_divide_and_confidence_is_low),
        cmocka_unit_test(
            a_scripted_board_gives_its_page_with_balanced_books_and_the_energy_where_it_was_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
