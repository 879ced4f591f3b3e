/*
 * sources/nvml/nvml against the fake library: the exporter's own code from NVML's ABI to the
 * ledger, on a clock that the test moves. Whatever happens, the books balance, and what was
 * recorded replays to the same ledger.
 */
#include "nvml_fixture.h"

static void eight_gpus_are_eight_meters_that_follow_their_counters(void **state)
{
    struct rig rig;
    uint64_t first_uj[8];

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "eight-gpus.trace");
    play(&rig, SECOND);
    assert_int_equal(rig.unit_count, 8);
    for (int i = 0; i < 8; i++)
        first_uj[i] = rig.pipeline->gpus[i]->counter_uj;
    play(&rig, 8 * SECOND);
    pipeline_finish(rig.pipeline);
    for (int i = 0; i < 8; i++) {
        assert_true(rig.pipeline->gpus[i]->counter_uj > first_uj[i]);
        assert_int_equal(meter_of(&rig, i)->energy_uj,
                         rig.pipeline->gpus[i]->counter_uj - first_uj[i]);
    }
    assert_int_equal(rig.errors, 0);
    close_rig(&rig);
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

/* As one that had no memory for it. */
static void whoever_missed_what_a_gpu_is_hears_it_again_within_a_minute(void **state)
{
    const struct pipeline_options options = {.gpu = {.interval_us = SECOND}};
    struct snapshot *snapshot;
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "eight-gpus.trace");
    play(&rig, SECOND);
    pipeline_free(rig.pipeline);
    assert_int_equal(pipeline_new(&options, &rig.pipeline), 0);
    rig.keeps_recording = false;
    play(&rig, 61 * SECOND);
    snapshot = books(&rig);
    assert_int_equal(snapshot->gpu_count, 8);
    close_books(snapshot);
    close_rig(&rig);
}

static void processes_that_share_get_the_share_of_their_samples(void **state)
{
    struct snapshot *snapshot;
    struct rig rig;
    uint64_t active[4], total = 0;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "time-slicing.trace"); /* 5 : 3 : 2, and an idle context */
    play(&rig, 20 * SECOND);
    pipeline_finish(rig.pipeline);
    snapshot = books(&rig);
    assert_int_equal(snapshot->process_count, 4);
    for (size_t i = 0; i < 4; i++) {
        active[i] = snapshot->processes[i].active_uj;
        assert_int_equal(snapshot->processes[i].measured_uj, 0);
        total += active[i];
    }
    qsort(active, 4, sizeof(active[0]), descending);
    assert_in_range(active[0] * 100 / total, 48, 52);
    assert_in_range(active[1] * 100 / total, 28, 32);
    assert_in_range(active[2] * 100 / total, 18, 22);
    assert_int_equal(active[3], 0);
    close_books(snapshot);
    close_rig(&rig);
}

static void an_mps_server_is_charged_nothing(void **state)
{
    struct snapshot *snapshot;
    struct rig rig;
    size_t free_of_charge = 0, paying = 0;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "mps.trace");
    play(&rig, 9 * SECOND);
    pipeline_finish(rig.pipeline);
    snapshot = books(&rig);
    for (size_t i = 0; i < snapshot->process_count; i++)
        if (snapshot->processes[i].active_uj > 0)
            paying++;
        else
            free_of_charge++;
    assert_int_equal(free_of_charge, 1);
    assert_true(paying >= 2);
    close_books(snapshot);
    close_rig(&rig);
}

static void a_process_that_exits_between_two_lists_is_booked(void **state)
{
    struct snapshot *snapshot;
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "exits-between-samples.trace");
    play(&rig, 12 * SECOND);
    pipeline_finish(rig.pipeline);
    snapshot = books(&rig);
    assert_true(snapshot->process_count >= 1);
    assert_true(snapshot->processes[0].active_uj > 0);
    close_books(snapshot);
    close_rig(&rig);
}

static void a_counter_that_restarts_is_a_reset_and_no_joule_is_invented(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "counter-reset.trace");
    play(&rig, 5 * SECOND);
    assert_int_equal(rig.pipeline->gpus[0]->resets, 0);
    assert_int_equal(rig.pipeline->gpus[1]->resets, 1);
    play(&rig, 25 * SECOND); /* meanwhile the driver was reloaded */
    assert_int_equal(rig.unit_count, 2);
    assert_int_equal(rig.pipeline->gpus[0]->resets, 1);
    /* The other had counted past its old value by the time it was found again: a gap, no reset. */
    assert_int_equal(rig.pipeline->gpus[1]->resets, 1);
    pipeline_finish(rig.pipeline);
    for (int i = 0; i < 2; i++) /* no board of 700 W can have used more */
        assert_in_range(meter_of(&rig, i)->energy_uj, 100 * JOULE, 30 * 700 * JOULE);
    close_rig(&rig);
}

static void a_lost_gpu_costs_a_gap_and_nothing_of_the_others(void **state)
{
    struct snapshot *snapshot;
    struct rig rig;
    bool xid_seen = false;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "lost-gpu.trace");
    play(&rig, 5 * SECOND);
    assert_int_equal(rig.unit_count, 1);
    assert_false(process_of(&rig, 1, 901).active);
    play(&rig, 20 * SECOND); /* searched for every 10 s */
    assert_int_equal(rig.unit_count, 2);
    pipeline_finish(rig.pipeline);
    assert_int_equal(ledger_meter(rig.pipeline->ledger, 0)->unowned_uj[UNOWNED_GAP], 0);
    snapshot = books(&rig);
    for (size_t i = 0; i < SNAPSHOT_XIDS_MAX; i++)
        xid_seen |= snapshot->gpus[1].xids[i].xid == 79;
    assert_true(xid_seen);
    close_books(snapshot);
    close_rig(&rig);
}

static void without_a_counter_power_is_integrated_and_nothing_is_measured(void **state)
{
    struct snapshot *snapshot;
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "no-counter.trace");
    play(&rig, 8 * SECOND);
    pipeline_finish(rig.pipeline);
    snapshot = books(&rig);
    assert_true(meter_of(&rig, 0)->energy_uj > 100 * JOULE);
    assert_int_equal(meter_of(&rig, 1)->energy_uj, 0); /* it has no power either */
    for (size_t i = 0; i < snapshot->process_count; i++)
        assert_int_equal(snapshot->processes[i].measured_uj, 0);
    close_books(snapshot);
    close_rig(&rig);
}

static void no_error_code_of_any_call_breaks_anything(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "every-error-code.trace");
    play(&rig, 60 * SECOND);
    assert_true(rig.errors > 0);
    assert_int_equal(rig.unit_count, 2); /* it is read again */
    assert_true(meter_of(&rig, 0)->energy_uj > 0);
    assert_int_equal(rig.pipeline->gpus[1]->resets, 0);
    close_rig(&rig);
}

static void a_driver_that_is_reloaded_is_picked_up(void **state)
{
    static const char text[] =
        "wattribute-trace 1\n"
        "gpu 0 uuid=GPU-0 name=X driver=1 power_limit_mw=700000 memory_bytes=1000000000\n"
        "1800000000000000 E 0 1000000\n1800000000000000 P 0 100000 100000 100000\n"
        "1800000000000000 R 0 c 1 5:1000\n"
        "1800000001000000 E 0 1100000\n1800000002000000 E 0 1200000\n"
        "1800000003000000 X * driver-unload\n1800000008000000 X * driver-load\n"
        "1800000008000000 E 0 2000000\n"
        "1800000020000000 E 0 3200000\n1800000025000000 E 0 3700000\n"
        "1800000030000000 E 0 4200000\n";
    struct rig rig;
    char path[FILE_PATH_BYTES];

    (void)state;
    file_make(path, text, 0600);
    open_rig(&rig, FAKE_NVML, path);
    play(&rig, 5 * SECOND);
    assert_int_equal(rig.unit_count, 0);
    assert_int_equal(rig.init_count(), 0); /* nothing holds the driver */
    play(&rig, 30 * SECOND);
    assert_int_equal(rig.unit_count, 1);
    assert_int_equal(ledger_meter_count(rig.pipeline->ledger), 1);
    close_rig(&rig);
    unlink(path);
}

static void every_generation_of_the_library_lists_the_same_processes(void **state)
{
    static const char *const libraries[] = {FAKE_NVML, FAKE_NVML_R530, FAKE_NVML_OMIT_MEMORY_V2,
                                            FAKE_NVML_LISTS_V2, FAKE_NVML_LISTS_V1};
    uint64_t energies[ARRAY_SIZE(libraries)];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
        struct snapshot *snapshot;
        struct rig rig;

        open_rig(&rig, libraries[i], SCENARIOS "time-slicing.trace");
        play(&rig, 6 * SECOND);
        pipeline_finish(rig.pipeline);
        snapshot = books(&rig);
        assert_true(snapshot->process_count >= 2);
        for (size_t p = 0; p < snapshot->process_count; p++)
            assert_true(snapshot->processes[p].memory_bytes > 0);
        assert_true(snapshot->gpus[0].valid >> GPU_GAUGE_MEMORY_TOTAL_BYTES & 1);
        energies[i] = snapshot->processes[0].active_uj;
        assert_int_equal(energies[i], energies[0]);
        close_books(snapshot);
        assert_int_equal(rig.errors, 0);
        close_rig(&rig);
    }
}

static void whichever_function_is_missing_the_rest_is_read_and_the_books_balance(void **state)
{
    char paths[] = FAKE_NVML_OMITTED, *rest = paths, *path;
    size_t libraries = 0;

    (void)state;
    while ((path = strsep(&rest, ":"))) {
        struct snapshot *snapshot;
        struct rig rig;

        open_rig(&rig, path, SCENARIOS "time-slicing.trace");
        /* The name that stands in the path is really not there. */
        path = strstr(path, "-no-") + strlen("-no-");
        assert_null(dlsym(rig.library, strsep(&path, ".")));
        play(&rig, 5 * SECOND);
        pipeline_finish(rig.pipeline);
        snapshot = books(&rig);
        assert_int_equal(rig.unit_count, 1);
        assert_int_equal(rig.errors, 0);
        assert_true(snapshot->meters[0].energy_uj > 100 * JOULE);
        assert_true(snapshot->process_count >= 3); /* from the lists or from the samples */
        close_books(snapshot);
        close_rig(&rig);
        libraries++;
    }
    assert_true(libraries > 20);
}

static void a_library_with_next_to_no_functions_still_reports_power(void **state)
{
    struct snapshot *snapshot;
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML_BARE, SCENARIOS "time-slicing.trace");
    play(&rig, 6 * SECOND);
    pipeline_finish(rig.pipeline);
    snapshot = books(&rig);
    assert_true(snapshot->meters[0].energy_uj > 0);
    assert_int_equal(snapshot->gpus[0].valid >> GPU_GAUGE_UTILISATION_PERCENT & 1, 0);
    close_books(snapshot);
    assert_int_equal(rig.errors, 0);
    close_rig(&rig);
}

static void the_counter_is_read_once_per_window_and_samples_only_as_often_as_they_matter(
    void **state)
{
    static const struct {
        const char *scenario;
        uint64_t samples_least, samples_most; /* calls in ten seconds */
    } cases[] = {
        {SCENARIOS "time-slicing.trace", 45, 50},          /* shared: five a second */
        {SCENARIOS "exits-between-samples.trace", 10, 20}, /* mostly alone: one */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig rig;

        open_rig(&rig, FAKE_NVML, cases[i].scenario);
        play(&rig, 10 * SECOND);
        assert_in_range(rig.call_count("nvmlDeviceGetTotalEnergyConsumption"), 10, 11);
        assert_int_equal(rig.call_count("nvmlDeviceGetComputeRunningProcesses_v3"), 50);
        assert_in_range(rig.call_count("nvmlDeviceGetProcessUtilization"), cases[i].samples_least,
                        cases[i].samples_most);
        close_rig(&rig);
    }
}

static void a_requested_read_has_the_counter(void **state)
{
    struct rig rig;
    uint64_t calls;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "time-slicing.trace");
    play(&rig, 2 * SECOND + rig.step_us);
    calls = rig.call_count("nvmlDeviceGetTotalEnergyConsumption");
    play(&rig, rig.step_us);
    assert_int_equal(rig.call_count("nvmlDeviceGetTotalEnergyConsumption"), calls);
    rig.is_requested = true;
    play(&rig, rig.step_us);
    assert_int_equal(rig.call_count("nvmlDeviceGetTotalEnergyConsumption"), calls + 1);
    close_rig(&rig);
}

static void a_suspended_device_is_not_woken(void **state)
{
    struct rig rig;
    uint64_t calls;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "time-slicing.trace");
    play(&rig, 2 * SECOND);
    calls = rig.call_count("nvmlDeviceGetUtilizationRates");
    assert_true(calls > 0);
    for (unsigned bus = 0; bus < 256; bus++) {
        char name[96];

        snprintf(name, sizeof(name), "sys/bus/pci/devices/0000:%02x:00.0/power/runtime_status",
                 bus);
        tree_write(rig.root, name, "suspended\n");
    }
    play(&rig, 5 * SECOND);
    assert_int_equal(rig.call_count("nvmlDeviceGetUtilizationRates"), calls);
    close_rig(&rig);
}

static void a_gpu_has_the_pci_address_that_sysfs_has(void **state)
{
    struct snapshot *snapshot;
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "eight-gpus.trace");
    play(&rig, 2 * SECOND);
    snapshot = books(&rig);
    assert_int_equal(snapshot->gpu_count, 8);
    assert_string_equal(snapshot->gpus[0].pci, "0000:18:00.0");
    assert_string_equal(snapshot->gpus[7].pci, "0000:1f:00.0");
    close_books(snapshot);
    close_rig(&rig);
}

static void a_pid_that_is_reused_is_another_process(void **state)
{
    struct snapshot *snapshot;
    struct rig rig;
    size_t accounts = 0;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "pid-reuse.trace");
    write_process(&rig, 700, 0, "/first");
    play(&rig, 4 * SECOND);
    write_process(&rig, 700, 5, "/second");
    play(&rig, 12 * SECOND);
    pipeline_finish(rig.pipeline);
    snapshot = books(&rig);
    for (size_t i = 0; i < snapshot->process_count; i++)
        accounts += snapshot->processes[i].pid == 700;
    assert_int_equal(accounts, 2);
    assert_int_equal(process_of(&rig, 0, 700).start_us, START_US + 5 * SECOND);
    close_books(snapshot);
    close_rig(&rig);
}

/* Arguments of the process, with a password in them. */
static void write_arguments(const struct rig *rig, uint32_t pid, const char *script)
{
    char name[64], text[128];
    int len = snprintf(text, sizeof(text), "python3%c%s%c--password=hunter2", 0, script, 0);

    snprintf(name, sizeof(name), "%u/cmdline", pid);
    file_write_at(rig->host.procfs_fd, name, text, (size_t)len + 1);
    snprintf(name, sizeof(name), "%u/exe", pid);
    if (symlinkat("/usr/bin/python3.12", rig->host.procfs_fd, name) < 0)
        assert_int_equal(errno, EEXIST);
}

static struct program_key key_of(const struct rig *rig, uint32_t pid)
{
    uint32_t process;

    assert_true(ledger_find_process(rig->pipeline->ledger, 0, pid, &process));
    return ledger_process(rig->pipeline->ledger, process)->program;
}

/* The keys in the recording, in order; the number of them. */
static size_t recorded_keys(const struct rig *rig, struct program_key *keys, size_t max)
{
    struct span rest = {rig->recorded.data, rig->recorded.len};
    struct error err = {""};
    struct batch batch;
    size_t count = 0;

    batch_init(&batch);
    (void)span_cut(&rest, '\n');
    while (rest.len > 0) {
        assert_true(trace_parse_line(span_cut(&rest, '\n'), &batch, &err) >= 0);
        if (batch.count > 0 && batch.samples[0].kind == SAMPLE_PROCESS &&
            batch.samples[0].process.program.exact && count < max)
            keys[count++] = batch.samples[0].process.program;
        batch_reset(&batch);
    }
    batch_done(&batch);
    return count;
}

static void arguments_are_read_once_for_each_process_and_only_their_hashes_are_kept(void **state)
{
    struct program_key first, second, recorded[4];
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "pid-reuse.trace");
    rig.host.program_secret = (struct program_secret){{1, 2}};
    write_process(&rig, 700, 0, "/first");
    write_arguments(&rig, 700, "train.py");
    play(&rig, SECOND);
    first = key_of(&rig, 700);
    assert_int_not_equal(first.exact, 0);
    assert_int_not_equal(first.coarse, 0);
    write_process(&rig, 700, 0, "/moved");
    write_arguments(&rig, 700, "other.py"); /* over the ones that it had */
    play(&rig, 3 * SECOND);
    assert_int_equal(key_of(&rig, 700).exact, first.exact);
    write_process(&rig, 700, 5, "/second");
    play(&rig, 12 * SECOND);
    second = key_of(&rig, 700);
    assert_int_not_equal(second.exact, 0);
    assert_int_not_equal(second.exact, first.exact);
    /* What a replay sees. */
    assert_int_equal(recorded_keys(&rig, recorded, ARRAY_SIZE(recorded)), 2);
    assert_memory_equal(&recorded[0], &first, sizeof(first));
    assert_memory_equal(&recorded[1], &second, sizeof(second));
    assert_non_null(memmem(rig.recorded.data, rig.recorded.len, "/moved", 6));
    assert_null(memmem(rig.recorded.data, rig.recorded.len, "hunter2", 7));
    assert_null(memmem(rig.recorded.data, rig.recorded.len, "train.py", 8));
    close_rig(&rig);
}

static void accounting_shows_a_process_that_was_in_no_list_and_no_sample(void **state)
{
    static const char text[] =
        "wattribute-trace 1\n"
        "gpu 0 uuid=GPU-0 name=X driver=1 power_limit_mw=700000 memory_bytes=1000000000\n"
        "1800000000000000 X 0 accounting on\n"
        "1800000000000000 X 0 account 31 1799999990000000 500 80\n" /* before we came */
        "1800000000000000 R 0 c 0\n1800000000000000 U 0 0 0 300 30\n"
        "1800000000000000 E 0 1000\n1800000001000000 E 0 81000\n1800000002000000 E 0 161000\n"
        "1800000003000000 E 0 241000\n1800000003000000 X 0 account 32 1800000002400000 300 90\n"
        "1800000004000000 E 0 441000\n1800000005000000 E 0 521000\n"
        "1800000006000000 E 0 601000\n1800000007000000 E 0 681000\n";
    struct snapshot *snapshot;
    struct rig rig;
    char path[FILE_PATH_BYTES];

    (void)state;
    file_make(path, text, 0600);
    open_rig(&rig, FAKE_NVML, path);
    play(&rig, 8 * SECOND);
    pipeline_finish(rig.pipeline);
    snapshot = books(&rig);
    assert_int_equal(snapshot->process_count, 1);
    assert_int_equal(snapshot->processes[0].pid, 32);
    assert_int_equal(snapshot->processes[0].start_us, START_US + 2400000);
    assert_true(snapshot->processes[0].active_uj + snapshot->processes[0].idle_uj > 0);
    close_books(snapshot);
    close_rig(&rig);
    unlink(path);
}

static void a_day_of_churn_leaves_nothing_behind(void **state)
{
    static const char loop[] = "1800000010000000 X * loop\n";
    struct pipeline_options options;
    struct rig rig;
    size_t after_an_hour = 0;
    char path[] = "/tmp/churnXXXXXX", command[256];
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    /* Over and over: two processes come and two go five times a second. */
    snprintf(command, sizeof(command), "cat " SCENARIOS "churn.trace > %s", path);
    assert_int_equal(system(command), 0);
    assert_true(lseek(fd, 0, SEEK_END) > 0);
    assert_int_equal(fs_write_all(fd, loop, strlen(loop)), 0);
    open_rig(&rig, FAKE_NVML, path);
    rig.keeps_recording = false;
    options = rig.pipeline->options;
    options.retention_us = 60 * SECOND;
    pipeline_free(rig.pipeline);
    assert_int_equal(pipeline_new(&options, &rig.pipeline), 0);
    for (int hour = 0; hour < 24; hour++) {
        for (int minute = 0; minute < 60; minute++) {
            play(&rig, 60 * SECOND);
            pipeline_sweep(rig.pipeline, rig.clock.now_us);
        }
        if (hour == 0)
            after_an_hour = mallinfo2().uordblks;
    }
    assert_true(ledger_counts(rig.pipeline->ledger)->processes < 200);
    /* The same memory as after the first hour, but for what a cycle holds at one time or another.
     */
    assert_true(mallinfo2().uordblks < after_an_hour + (256 << 10));
    assert_true(ledger_meter(rig.pipeline->ledger, 0)->energy_uj > 86400 * 50 * JOULE);
    close_rig(&rig);
    close(fd);
    unlink(path);
}

static void without_the_library_there_is_no_source_and_no_complaint(void **state)
{
    const struct source_context context = {.nvml_library = "/nonexistent/libnvidia-ml.so.1"};
    struct error err;
    void *source;

    (void)state;
    assert_int_equal(nvml_source.open(&context, &source, &err), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_gpus_are_eight_meters_that_follow_their_counters),
        cmocka_unit_test(whoever_missed_what_a_gpu_is_hears_it_again_within_a_minute),
        cmocka_unit_test(processes_that_share_get_the_share_of_their_samples),
        cmocka_unit_test(an_mps_server_is_charged_nothing),
        cmocka_unit_test(a_process_that_exits_between_two_lists_is_booked),
        cmocka_unit_test(a_counter_that_restarts_is_a_reset_and_no_joule_is_invented),
        cmocka_unit_test(a_lost_gpu_costs_a_gap_and_nothing_of_the_others),
        cmocka_unit_test(without_a_counter_power_is_integrated_and_nothing_is_measured),
        cmocka_unit_test(no_error_code_of_any_call_breaks_anything),
        cmocka_unit_test(a_driver_that_is_reloaded_is_picked_up),
        cmocka_unit_test(every_generation_of_the_library_lists_the_same_processes),
        cmocka_unit_test(whichever_function_is_missing_the_rest_is_read_and_the_books_balance),
        cmocka_unit_test(a_library_with_next_to_no_functions_still_reports_power),
        cmocka_unit_test(
            the_counter_is_read_once_per_window_and_samples_only_as_often_as_they_matter),
        cmocka_unit_test(a_requested_read_has_the_counter),
        cmocka_unit_test(a_suspended_device_is_not_woken),
        cmocka_unit_test(a_gpu_has_the_pci_address_that_sysfs_has),
        cmocka_unit_test(a_pid_that_is_reused_is_another_process),
        cmocka_unit_test(arguments_are_read_once_for_each_process_and_only_their_hashes_are_kept),
        cmocka_unit_test(accounting_shows_a_process_that_was_in_no_list_and_no_sample),
        cmocka_unit_test(a_day_of_churn_leaves_nothing_behind),
        cmocka_unit_test(without_the_library_there_is_no_source_and_no_complaint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
