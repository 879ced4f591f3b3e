/*
 * Machines with AMD's and Intel's GPUs on which things go wrong: cards that go and come back, files
 * that vanish or hold garbage, counters that go back, processes that outlive themselves. The books
 * balance through all of it, and what was recorded replays to the same ledger.
 */
#include "drm_fixture.h"
#include "nvml_fixture.h"

#include <inttypes.h>
#include <math.h>
#include <sys/inotify.h>

/* A copy, for a test to change. */
static struct fake_script script_like(const char *name)
{
    return *fake_script_find(name);
}

static double active_j(const struct rig *rig, uint32_t pid)
{
    return (double)active_uj_of(rig, 0, pid) / 1e6;
}

static void expect_near(const char *what, double value, double expected, double tolerance)
{
    if (fabs(value - expected) > tolerance * expected)
        fail_msg("%s: %f, not %f", what, value, expected);
}

static void keep_device(void *watcher, const struct sample *sample)
{
    if (sample->kind == SAMPLE_DEVICE)
        snprintf(watcher, 64, "%u %s", sample->gpu, sample->device.uuid);
}

static void a_card_that_was_removed_comes_back_as_the_same(void **state)
{
    const struct fake_script *script = fake_script_find("mi210");
    struct fake_machine machine;
    char seen[64] = "";
    struct rig rig;

    (void)state;
    open_machine(&rig, &machine, script);
    rig.see = keep_device;
    rig.watcher = seen;
    play(&rig, 20 * SECOND);
    assert_int_equal(rig.unit_count, 1);
    assert_string_equal(seen, "0 AMD-1f0a2b3c4d5e6f70");
    fake_machine_unplug(&machine, 0);
    play(&rig, 10 * SECOND);
    assert_int_equal(rig.unit_count, 0);
    seen[0] = '\0';
    fake_machine_plug(&machine, 0, rig.elapsed_us);
    play_whole(&rig, 30 * SECOND);
    assert_int_equal(rig.unit_count, 1);
    assert_string_equal(seen, "0 AMD-1f0a2b3c4d5e6f70");
    /* Of the time without it, nothing is known but what the counter shows afterwards. */
    assert_true(meter_of(&rig, 0)->energy_uj <=
                fake_counter_uj(script, 0, last_us(&rig)) - fake_counter_uj(script, 0, 0));
    assert_true(meter_of(&rig, 0)->energy_uj >= 40 * (45 + 120) * JOULE);
    close_machine(&rig);
}

/* What a test does to a file of the first board, or of the machine. */
enum spoil { VANISH, EMPTY, GARBAGE, HUGE_NUMBER, NEGATIVE, CUT_OFF, FUTURE, BROKEN, DIRECTORY };
static const char *const spoil_words[] = {"gone", "empty",   "garbage", "huge",     "negative",
                                          "cut",  "version", "EIO",     "directory"};

static void spoil_file(const struct rig *rig, const char *path, enum spoil spoil)
{
    static const char *const texts[] = {[EMPTY] = "",
                                        [GARBAGE] = "\xff\x01 no number\n\n\t:::",
                                        [HUGE_NUMBER] = "99999999999999999999999999\n",
                                        [NEGATIVE] = "-1\n"};
    char whole[FAKE_PATH_BYTES + 64];
    uint8_t header[4];
    int fd;

    snprintf(whole, sizeof(whole), "%s/%s", rig->root, path);
    switch (spoil) {
    case CUT_OFF:
        assert_int_equal(truncate(whole, 60), 0);
        break;
    case FUTURE:
        fd = open(whole, O_RDWR | O_CLOEXEC);
        assert_int_equal(pread(fd, header, sizeof(header), 0), sizeof(header));
        header[3] = 42;
        assert_int_equal(pwrite(fd, header, sizeof(header), 0), sizeof(header));
        close(fd);
        break;
    case BROKEN: /* the first byte of its own memory is never there: EIO */
        assert_int_equal(unlink(whole), 0);
        assert_int_equal(symlink("/proc/self/mem", whole), 0);
        break;
    case VANISH:
        assert_int_equal(unlink(whole), 0);
        break;
    case DIRECTORY:
        assert_int_equal(unlink(whole), 0);
        assert_int_equal(mkdir(whole, 0755), 0);
        break;
    default:
        tree_write(rig->root, path, texts[spoil]);
    }
}

static void mend_file(const struct rig *rig, const char *path)
{
    char whole[FAKE_PATH_BYTES + 64];

    snprintf(whole, sizeof(whole), "%s/%s", rig->root, path);
    if (rmdir(whole) < 0 && errno == ENOTDIR)
        unlink(whole);
}

/* Good for 10 s, spoiled for 10 s, good for 10 s. */
static void play_spoiled(struct rig *rig, const char *path, enum spoil spoil)
{
    play(rig, 10 * SECOND);
    rig->machine->spared[0] = path;
    spoil_file(rig, path, spoil);
    play(rig, 10 * SECOND);
    rig->machine->spared[0] = NULL;
    mend_file(rig, path);
    play_whole(rig, 10 * SECOND);
}

#define AMD_FILE(name) "sys/devices/pci0000:00/0000:00:01.1/0000:63:00.0/" name
#define ARC_FILE(name) "sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0/" name
#define KFD_FILE(name) "sys/class/kfd/kfd/" name

static void whatever_a_file_holds_the_books_balance_and_the_energy_is_there_afterwards(void **state)
{
    static const struct {
        const char *machine, *path;
    } files[] = {
        {"mi210", AMD_FILE("gpu_metrics")},
        {"mi210", AMD_FILE("hwmon/hwmon2/power1_average")},
        {"mi210", AMD_FILE("hwmon/hwmon2/power1_cap")},
        {"mi210", AMD_FILE("gpu_busy_percent")},
        {"mi210", AMD_FILE("mem_info_vram_used")},
        {"mi210", AMD_FILE("mem_info_vram_total")},
        {"mi210", AMD_FILE("power/runtime_status")},
        {"mi210", KFD_FILE("topology/generation_id")},
        {"mi210", KFD_FILE("topology/nodes/1/properties")},
        {"mi210", KFD_FILE("topology/nodes/1/gpu_id")},
        {"mi210", KFD_FILE("proc/101/vram_20000")},
        {"mi210", KFD_FILE("proc/101/sdma_20000")},
        {"mi210", KFD_FILE("proc/101/stats_20000/cu_occupancy")},
        {"mi210", KFD_FILE("proc/101/queues/0/gpuid")},
        {"mi210", "proc/101/fdinfo/7"},
        {"mi210", "proc/101/stat"},
        {"mi210", "proc/101/cgroup"},
        {"arc-i915", ARC_FILE("hwmon/hwmon2/energy1_input")},
        {"arc-i915", ARC_FILE("hwmon/hwmon2/power1_max")},
        {"arc-i915", "proc/101/fdinfo/7"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        for (enum spoil spoil = VANISH; spoil <= DIRECTORY; spoil++) {
            const struct fake_script *script = fake_script_find(files[i].machine);
            bool is_table = strstr(files[i].path, "gpu_metrics");
            struct fake_machine machine;
            struct rig rig;

            if (!is_table && (spoil == CUT_OFF || spoil == FUTURE))
                continue;
            print_message("%s: %s\n", files[i].path, spoil_words[spoil]);
            open_machine(&rig, &machine, script);
            play_spoiled(&rig, files[i].path, spoil);
            check_energy(&rig, 0, 0);
            close_machine(&rig);
        }
}

static void a_client_that_two_processes_have_counts_once(void **state)
{
    const struct fake_script *script = fake_script_find("arc-i915");
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    open_machine(&rig, &machine, script);
    play_whole(&rig, 40 * SECOND);
    assert_true(active_j(&rig, 103) == 0);
    expect_near("the first", active_j(&rig, 102) + active_j(&rig, 101),
                fake_truth_j(&script->processes[0], last_us(&rig)) +
                    fake_truth_j(&script->processes[1], last_us(&rig)),
                0.05);
    close_machine(&rig);
}

/* The first of them ends, and the other one goes on with it. */
static void a_client_is_followed_to_the_process_that_is_left_with_it(void **state)
{
    struct fake_script script = script_like("arc-i915");
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    script.processes[0] = (struct fake_process){.pid = 101,
                                                .name = "parent",
                                                .cgroup = "/system.slice/parent.service",
                                                .client_of = 102,
                                                .from_ms = 5000,
                                                .until_ms = 15000};
    script.processes[1].from_ms = 5000;
    script.processes[2].pid = 0;
    open_machine(&rig, &machine, &script);
    play_whole(&rig, 40 * SECOND);
    expect_near("both", active_j(&rig, 101) + active_j(&rig, 102),
                fake_truth_j(&script.processes[1], last_us(&rig)), 0.05);
    assert_true(active_j(&rig, 102) > 15 * 30);
    close_machine(&rig);
}

/* Overwrites the time of an engine in the description of a client. */
static void set_engine(const struct rig *rig, const char *path, const char *key, uint64_t ns)
{
    char whole[128], text[4096], made[4608];
    const char *at, *rest;
    size_t len;

    snprintf(whole, sizeof(whole), "%s/%s", rig->root, path);
    assert_int_equal(fs_read_at(AT_FDCWD, whole, text, sizeof(text), &len), 0);
    at = strstr(text, key);
    assert_non_null(at);
    rest = strchr(at, '\n');
    snprintf(made, sizeof(made), "%.*s%s\t%llu ns%s", (int)(at - text), text, key,
             (unsigned long long)ns, rest);
    tree_write(rig->root, path, made);
}

static void an_engine_that_counts_back_has_done_nothing_until_it_is_past_where_it_was(void **state)
{
    const struct fake_script *script = fake_script_find("arc-i915");
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    open_machine(&rig, &machine, script);
    play(&rig, 7 * SECOND);
    machine.spared[0] = "proc/101/fdinfo/7";
    set_engine(&rig, "proc/101/fdinfo/7", "drm-engine-render:", 1000);
    play(&rig, SECOND);
    machine.spared[0] = NULL;
    play_whole(&rig, 32 * SECOND);
    check_energy(&rig, 0, 0);
    expect_near("both", active_j(&rig, 101) + active_j(&rig, 102),
                fake_truth_j(&script->processes[0], last_us(&rig)) +
                    fake_truth_j(&script->processes[1], last_us(&rig)),
                0.1);
    close_machine(&rig);
}

static void who_has_ended_pays_nothing_more_though_kfd_still_has_its_memory(void **state)
{
    struct fake_script script = script_like("mi210");
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    script.processes[0].until_ms = 20000;
    script.processes[0].kfd_until_ms = 40000;
    open_machine(&rig, &machine, &script);
    play_whole(&rig, 60 * SECOND);
    check_energy(&rig, 0, 0);
    for (size_t i = 0; i < 2; i++)
        expect_near(script.processes[i].name, active_j(&rig, script.processes[i].pid),
                    fake_truth_j(&script.processes[i], last_us(&rig)), 0.1);
    close_machine(&rig);
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
    struct fake_script script = script_like("mi210");
    struct fake_machine machine;
    struct snapshot *snapshot;
    struct rig rig;
    double energy_j[2] = {0};
    static const char *const units[] = {"train.service", "again.service"};

    (void)state;
    script.processes[0].until_ms = 20000;
    script.processes[1] = script.processes[0];
    script.processes[1].name = "again";
    script.processes[1].cgroup = "/system.slice/again.service";
    script.processes[1].from_ms = 20300; /* three polls later */
    script.processes[1].until_ms = 0;
    script.processes[2].pid = 0;
    open_machine(&rig, &machine, &script);
    play_whole(&rig, 50 * SECOND);
    check_energy(&rig, 0, 0);
    snapshot = books(&rig);
    for (size_t i = 0; i < snapshot->workload_count; i++)
        for (size_t k = 0; k < ARRAY_SIZE(units); k++)
            if (strcmp(snapshot->workloads[i].id, units[k]) == 0)
                energy_j[k] += (double)account_total_uj(&snapshot->workloads[i].account) / 1e6;
    close_books(snapshot);
    /* With what is idle, of which they are the only payers. */
    expect_near("the first", energy_j[0], 15 * (45 + 120), 0.08);
    expect_near("the second", energy_j[1], 29.7 * (45 + 120), 0.08);
    close_machine(&rig);
}

/* How often the files of a board were opened since the last call. */
static unsigned count_opened(int fd)
{
    char events[16384] __attribute__((aligned(8)));
    unsigned count = 0;
    ssize_t len;

    while ((len = read(fd, events, sizeof(events))) > 0)
        for (ssize_t at = 0; at < len;) {
            const struct inotify_event *event = (const void *)(events + at);

            count++;
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    return count;
}

/* Those that the driver asks the device for. */
static int watch_files(const struct rig *rig)
{
    static const char *const names[] = {"gpu_metrics",
                                        "gpu_busy_percent",
                                        "mem_busy_percent",
                                        "hwmon/hwmon2/power1_average",
                                        "hwmon/hwmon2/freq1_input",
                                        "hwmon/hwmon2/temp1_input"};
    char path[FAKE_PATH_BYTES], whole[FAKE_PATH_BYTES + 64];
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(whole, sizeof(whole), "%s/%s", rig->root,
                 fake_board_path(rig->machine, 0, names[i], path));
        /* The machine writes; only readers look. */
        assert_true(inotify_add_watch(fd, whole, IN_CLOSE_NOWRITE) >= 0);
    }
    return fd;
}

static void a_card_that_is_suspended_is_not_woken(void **state)
{
    const struct fake_script *script = fake_script_find("radeon");

    (void)state;
    for (int is_at_first = 0; is_at_first < 2; is_at_first++) {
        struct fake_machine machine;
        struct rig rig;
        unsigned opened;
        int fd;

        make_machine(&rig, &machine, script);
        fd = watch_files(&rig);
        if (!is_at_first) {
            rig_add_source(&rig, &drm_source);
            play(&rig, 5 * SECOND);
            assert_true(count_opened(fd) > 0);
        }
        fake_machine_suspend(&machine, 0, true);
        if (is_at_first)
            rig_add_source(&rig, &drm_source);
        play(&rig, 15 * SECOND);
        if ((opened = count_opened(fd)) > 0)
            fail_msg("%s: %u reads", is_at_first ? "suspended at first" : "suspended", opened);
        fake_machine_suspend(&machine, 0, false);
        play_whole(&rig, 10 * SECOND);
        assert_true(count_opened(fd) > 0);
        close(fd);
        close_machine(&rig);
    }
}

struct layouts {
    size_t samples, instances;
    char profile[16];
};

static void keep_layout(void *watcher, const struct sample *sample)
{
    struct layouts *layouts = watcher;

    if (sample->kind != SAMPLE_LAYOUT)
        return;
    layouts->samples++;
    layouts->instances = sample->layout.count;
    if (sample->layout.count > 0)
        snprintf(layouts->profile, sizeof(layouts->profile), "%s", sample->layout.items[0].profile);
}

static void a_board_that_is_partitioned_while_we_run_is_read_as_partitions(void **state)
{
    const struct fake_script *script = fake_script_find("mi300x-change");
    struct layouts layouts = {0};
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    open_machine(&rig, &machine, script);
    rig.see = keep_layout;
    rig.watcher = &layouts;
    play(&rig, 30 * SECOND);
    assert_int_equal(layouts.instances, 0);
    fake_machine_partition(&machine, 0, 8, rig.elapsed_us);
    play(&rig, 2 * SECOND);
    assert_int_equal(layouts.instances, 8);
    assert_string_equal(layouts.profile, "CPX");
    play_whole(&rig, 28 * SECOND);
    check_energy(&rig, 0, 0);
    expect_near("the whole", active_j(&rig, 101),
                fake_truth_j(&script->processes[0], last_us(&rig)), 0.05);
    expect_near("a part", active_j(&rig, 102), fake_truth_j(&script->processes[1], last_us(&rig)),
                0.1);
    close_machine(&rig);
}

struct samples {
    size_t energy, integral, idle, busy, lost;
};

static void count_samples(void *watcher, const struct sample *sample)
{
    struct samples *samples = watcher;

    samples->energy += sample->kind == SAMPLE_ENERGY;
    samples->integral += sample->kind == SAMPLE_INTEGRAL;
    samples->idle += sample->kind == SAMPLE_UTILISATION && sample->utilisation.gpu_percent == 0;
    samples->busy += sample->kind == SAMPLE_UTILISATION && sample->utilisation.gpu_percent > 0;
    samples->lost += sample->kind == SAMPLE_LOST;
}

static void every_window_shows_its_own_work_however_late_the_polls_are(void **state)
{
    static const uint64_t steps_us[] = {99000, 99900, 100000, 100100, 103000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(steps_us); i++) {
        struct fake_script script = script_like("arc-i915");
        struct samples samples = {0};
        struct fake_machine machine;
        struct rig rig;

        script.processes[0].load = (struct fake_load){.steps = {{0, 1000}}};
        script.processes[1].pid = 0;
        open_machine(&rig, &machine, &script);
        rig.step_us = steps_us[i];
        play(&rig, 8 * SECOND); /* it begins after 5 */
        rig.see = count_samples;
        rig.watcher = &samples;
        play(&rig, 60 * SECOND);
        if (samples.idle > 0 || samples.busy < 55)
            fail_msg("polls of %" PRIu64 " us: %zu of %zu windows look idle", steps_us[i],
                     samples.idle, samples.idle + samples.busy);
        close_machine(&rig);
    }
}

static void a_counter_that_cannot_be_read_at_first_is_still_the_meter(void **state)
{
    struct samples samples = {0};
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, fake_script_find("mi210"));
    machine.spared[0] = AMD_FILE("gpu_metrics");
    spoil_file(&rig, AMD_FILE("gpu_metrics"), EMPTY);
    rig.see = count_samples;
    rig.watcher = &samples;
    rig_add_source(&rig, &drm_source);
    play(&rig, 3 * SECOND);
    assert_int_equal(samples.energy + samples.integral, 0);
    machine.spared[0] = NULL;
    play(&rig, 10 * SECOND);
    assert_true(samples.energy >= 9);
    assert_int_equal(samples.integral, 0);
    close_machine(&rig);
}

static void a_card_without_a_readable_counter_is_integrated_after_a_while(void **state)
{
    struct samples samples = {0};
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, fake_script_find("mi210"));
    machine.spared[0] = AMD_FILE("gpu_metrics");
    spoil_file(&rig, AMD_FILE("gpu_metrics"), EMPTY);
    rig.see = count_samples;
    rig.watcher = &samples;
    rig_add_source(&rig, &drm_source);
    play(&rig, 20 * SECOND);
    assert_int_equal(samples.energy, 0);
    assert_true(samples.integral >= 15);
    machine.spared[0] = NULL; /* the two are never mixed */
    play(&rig, 10 * SECOND);
    assert_int_equal(samples.energy, 0);
    close_machine(&rig);
}

/* Its power contains the processors, which RAPL counts. */
static void an_apu_is_not_booked_twice_though_its_table_is_newer_or_cannot_be_read(void **state)
{
    (void)state;
    for (int is_newer = 0; is_newer < 2; is_newer++) {
        struct samples samples = {0};
        struct fake_machine machine;
        char table[FAKE_PATH_BYTES], label[FAKE_PATH_BYTES];
        struct rig rig;

        make_machine(&rig, &machine, fake_script_find("apu"));
        fake_board_path(&machine, 0, "gpu_metrics", table);
        tree_write(rig.root, "sys/class/powercap/intel-rapl:0/name", "package-0\n");
        tree_write(rig.root, "sys/class/powercap/intel-rapl:0/energy_uj", "123456\n");
        machine.spared[0] = table;
        spoil_file(&rig, table, is_newer ? FUTURE : EMPTY);
        tree_write(rig.root, fake_board_path(&machine, 0, "hwmon/hwmon2/in1_label", label),
                   "vddnb\n");
        rig.see = count_samples;
        rig.watcher = &samples;
        rig_add_source(&rig, &drm_source);
        play(&rig, 20 * SECOND);
        assert_int_equal(samples.energy + samples.integral, 0);
        close_machine(&rig);
    }
}

/* A reset is not the end of 32 bits in a table whose counter has 64. */
static void a_wide_counter_that_begins_anew_is_not_taken_for_a_full_one(void **state)
{
    enum { FIRST_J = 64900 }; /* 2^32 counts are 65,536 J */
    struct fake_script script = script_like("mi300x-spx");
    uint64_t before_uj, after_uj;
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    script.boards[0].first_uj = FIRST_J * JOULE;
    open_machine(&rig, &machine, &script);
    play(&rig, 4 * SECOND);
    before_uj = fake_counter_uj(&script, 0, last_us(&rig));
    assert_true(before_uj < 65536 * JOULE);
    before_uj -= FIRST_J * JOULE;
    script.boards[0].first_uj = 0;
    play_whole(&rig, 10 * SECOND);
    after_uj = fake_counter_uj(&script, 0, last_us(&rig));
    assert_true(meter_of(&rig, 0)->energy_uj <= before_uj + after_uj);
    close_machine(&rig);
}

/* amdgpu before Linux 5.19. */
static void clients_without_times_share_what_the_card_did(void **state)
{
    struct fake_script script = script_like("radeon");
    struct fake_chip chip = *script.boards[0].chip;
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    chip.has_old_fdinfo = true;
    script.boards[0].chip = &chip;
    script.boards[0].first_uj = JOULE;
    for (unsigned i = 0; i < 2; i++)
        script.processes[i] = (struct fake_process){.pid = 101 + i,
                                                    .name = "game",
                                                    .cgroup = "/system.slice/game.service",
                                                    .engine = "gfx",
                                                    .from_ms = 5000,
                                                    .watts = 100,
                                                    .load = {.steps = {{0, 500}}},
                                                    .memory_bytes = (uint64_t)1 << 30};
    script.processes[2].pid = 0;
    open_machine(&rig, &machine, &script);
    play_whole(&rig, 40 * SECOND);
    check_energy(&rig, 0, 0);
    assert_true(meter_of(&rig, 0)->unowned_uj[UNOWNED_UNATTRIBUTED] < 50 * JOULE);
    for (unsigned i = 0; i < 2; i++)
        expect_near("half", active_j(&rig, 101 + i),
                    fake_truth_j(&script.processes[i], last_us(&rig)), 0.1);
    close_machine(&rig);
}

static void a_counter_that_jumps_for_a_moment_loses_nothing(void **state)
{
    static const struct {
        const char *machine;
        uint64_t first_uj;
    } cases[] = {
        {"mi210", ((uint64_t)1 << 50) * 15}, /* wider than its counter may be */
        {"mi210", 0},
        {"mi300x-spx", ((uint64_t)1 << 50) * 15},
        {"mi300x-spx", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fake_script script = script_like(cases[i].machine);
        uint64_t first_uj = 1000000 * JOULE;
        struct fake_machine machine;
        struct rig rig;

        if (strcmp(cases[i].machine, "mi210") == 0)
            first_uj = 10000 * JOULE; /* narrow */
        script.boards[0].first_uj = first_uj;
        open_machine(&rig, &machine, &script);
        play(&rig, 10 * SECOND);
        script.boards[0].first_uj = cases[i].first_uj;
        play(&rig, 12 * SECOND / 10);
        script.boards[0].first_uj = first_uj;
        play(&rig, 8 * SECOND / 10); /* windows end at whole seconds */
        play_whole(&rig, 10 * SECOND);
        check_energy(&rig, 0, 0);
        close_machine(&rig);
    }
}

/* All but what it drew while it was not known that it would stay there. */
static void a_counter_that_begins_anew_is_followed_from_there(void **state)
{
    struct fake_script script = script_like("mi300x-spx");
    struct fake_machine machine;
    uint64_t before_uj, after_uj;
    struct rig rig;

    (void)state;
    script.boards[0].first_uj = 1000000 * JOULE;
    open_machine(&rig, &machine, &script);
    play(&rig, 10 * SECOND);
    before_uj = fake_counter_uj(&script, 0, last_us(&rig)) - fake_counter_uj(&script, 0, 0);
    script.boards[0].first_uj = 0;
    play_whole(&rig, 20 * SECOND);
    after_uj =
        fake_counter_uj(&script, 0, last_us(&rig)) - fake_counter_uj(&script, 0, 11 * SECOND);
    assert_true(meter_of(&rig, 0)->energy_uj >= before_uj + after_uj - 2 * JOULE * 750);
    assert_true(meter_of(&rig, 0)->energy_uj <=
                fake_counter_uj(&script, 0, last_us(&rig)) - fake_counter_uj(&script, 0, 0));
    close_machine(&rig);
}

static void a_driver_that_was_bound_anew_is_read_again(void **state)
{
    const struct fake_script *script = fake_script_find("arc-i915");
    struct samples samples = {0};
    struct fake_machine machine;
    uint64_t before_uj;
    struct rig rig;

    (void)state;
    open_machine(&rig, &machine, script);
    rig.see = count_samples;
    rig.watcher = &samples;
    play(&rig, 10 * SECOND);
    before_uj = meter_of(&rig, 0)->energy_uj;
    /* The device stays, and another directory comes in the place of the driver's. */
    tree_remove(rig.root, ARC_FILE("hwmon/hwmon2"));
    tree_write(rig.root, ARC_FILE("hwmon/hwmon2/name"), "i915\n");
    play_whole(&rig, 30 * SECOND);
    assert_int_equal(samples.lost, 1);
    assert_true(meter_of(&rig, 0)->energy_uj > before_uj + 15 * script->boards[0].idle_w * JOULE);
    close_machine(&rig);
}

static void no_table_is_read_to_find_the_dies_of_a_board(void **state)
{
    struct fake_machine machine;
    struct batch batch;
    struct error err;
    struct rig rig;
    int fd;

    (void)state;
    make_machine(&rig, &machine, fake_script_find("mi250"));
    fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    for (unsigned board = 0; board < 2; board++) {
        char path[FAKE_PATH_BYTES], whole[FAKE_PATH_BYTES + 64];

        snprintf(whole, sizeof(whole), "%s/%s", rig.root,
                 fake_board_path(&machine, board, "gpu_metrics", path));
        assert_true(inotify_add_watch(fd, whole, IN_OPEN) >= 0);
    }
    rig_add_source(&rig, &drm_source);
    batch_init(&batch);
    assert_int_equal(drm_source.read(rig.sources[0].state, &batch, &err), 0);
    batch_done(&batch);
    assert_int_equal(rig.unit_count, 1);
    assert_int_equal(count_opened(fd), 0);
    play(&rig, SECOND); /* its own thread does */
    assert_true(count_opened(fd) > 0);
    close(fd);
    close_machine(&rig);
}

/* Their other dies are elsewhere, such as in a virtual machine. */
static void dies_of_two_boards_are_not_one(void **state)
{
    static const struct {
        unsigned gone[2];
        size_t gone_count;
        unsigned first;    /* of which the energy must be there */
        size_t unit_count; /* a die alone, and a die or a board */
    } cases[] = {{{1, 3}, 2, 2, 2}, {{0}, 1, 2, 2}, {{2}, 1, 0, 2}};
    struct fake_script script = script_like("mi250");

    (void)state;
    for (size_t i = 0; i < 2; i++)
        script.boards[2 + i] = script.boards[i];
    script.boards[2].pci = "0000:42:00.0";
    script.boards[3].pci = "0000:45:00.0";
    script.boards[2].unique_id = 0x3f0a2b3c4d5e6f71;
    script.boards[3].unique_id = 0x3f0a2b3c4d5e6f72;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fake_machine machine;
        uint64_t energy_uj = 0;
        struct rig rig;

        make_machine(&rig, &machine, &script);
        for (size_t k = 0; k < cases[i].gone_count; k++)
            fake_machine_unplug(&machine, cases[i].gone[k]);
        rig_add_source(&rig, &drm_source);
        play_whole(&rig, 40 * SECOND);
        assert_int_equal(rig.unit_count, cases[i].unit_count);
        for (int gpu = 0; gpu < 3; gpu++)
            energy_uj =
                MAX(energy_uj, rig.pipeline->gpus[gpu] ? meter_of(&rig, gpu)->energy_uj : 0);
        /* All but that of the first 10 s, when the next search was due. */
        assert_true(energy_uj >= fake_counter_uj(&script, cases[i].first, last_us(&rig)) -
                                     fake_counter_uj(&script, cases[i].first, 12 * SECOND));
        close_machine(&rig);
    }
}

static void a_die_that_cannot_be_read_at_first_is_part_of_its_board(void **state)
{
    struct layouts layouts = {0};
    char table[FAKE_PATH_BYTES];
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, fake_script_find("mi250"));
    fake_board_path(&machine, 1, "gpu_metrics", table);
    machine.spared[0] = table;
    spoil_file(&rig, table, EMPTY);
    rig.see = keep_layout;
    rig.watcher = &layouts;
    rig_add_source(&rig, &drm_source);
    play(&rig, 5 * SECOND);
    assert_int_equal(rig.unit_count, 1);
    machine.spared[0] = NULL;
    play_whole(&rig, 30 * SECOND);
    assert_int_equal(rig.unit_count, 1);
    assert_int_equal(layouts.instances, 2);
    close_machine(&rig);
}

/* xe shows it when the firmware's telemetry cannot be read. */
static void a_counter_that_shows_0_is_not_read(void **state)
{
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    open_machine(&rig, &machine, fake_script_find("arc-i915"));
    play(&rig, 10 * SECOND);
    machine.spared[0] = ARC_FILE("hwmon/hwmon2/energy1_input");
    tree_write(rig.root, machine.spared[0], "0\n");
    play(&rig, 3 * SECOND);
    machine.spared[0] = NULL;
    play_whole(&rig, 10 * SECOND);
    check_energy(&rig, 0, 0);
    close_machine(&rig);
}

static void a_counter_that_never_counts_gives_way_to_that_of_the_package(void **state)
{
    struct fake_script script = script_like("arc-i915");
    struct fake_chip chip = *script.boards[0].chip;
    struct fake_machine machine;
    uint64_t counted_uj;
    struct rig rig;

    (void)state;
    chip.has_package_energy = true;
    script.boards[0].chip = &chip;
    make_machine(&rig, &machine, &script);
    machine.spared[0] = ARC_FILE("hwmon/hwmon2/energy1_input");
    tree_write(rig.root, machine.spared[0], "0\n");
    rig_add_source(&rig, &drm_source);
    play_whole(&rig, 20 * SECOND);
    counted_uj = fake_counter_uj(&script, 0, last_us(&rig)) - fake_counter_uj(&script, 0, 0);
    expect_near("the package", (double)meter_of(&rig, 0)->energy_uj, 0.9 * (double)counted_uj,
                0.001);
    close_machine(&rig);
}

static void a_counter_that_the_driver_makes_after_the_card_is_found(void **state)
{
    static const char name[] = ARC_FILE("hwmon/hwmon2/name");
    const struct fake_script *script = fake_script_find("arc-i915");
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, script);
    tree_remove(rig.root, name);
    rig_add_source(&rig, &drm_source);
    play(&rig, 3 * SECOND);
    tree_write(rig.root, name, "i915\n");
    play_whole(&rig, 20 * SECOND);
    assert_true(meter_of(&rig, 0)->energy_uj >= fake_counter_uj(script, 0, last_us(&rig)) -
                                                    fake_counter_uj(script, 0, 12 * SECOND));
    close_machine(&rig);
}

static void see_implausible_power(void *watcher, const struct sample *sample)
{
    unsigned *seen = watcher;

    *seen += sample->kind == SAMPLE_POWER && sample->power_mw > 1000000;
}

static void power_that_no_board_draws_is_not_passed_on(void **state)
{
    struct fake_machine machine;
    char file[FAKE_PATH_BYTES];
    unsigned seen = 0;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, fake_script_find("apu"));
    for (size_t i = 0; i < 2; i++)
        tree_write(rig.root,
                   fake_board_path(&machine, 0,
                                   i ? "hwmon/hwmon2/power1_input" : "hwmon/hwmon2/power1_average",
                                   file),
                   "4294967295000000\n");
    machine.spared[0] = "power1_input";
    machine.spared[1] = "power1_average";
    rig.see = see_implausible_power;
    rig.watcher = &seen;
    rig_add_source(&rig, &drm_source);
    play(&rig, 10 * SECOND);
    assert_int_equal(seen, 0);
    close_machine(&rig);
}

struct uuids {
    char of[2][64];
};

static void keep_uuids(void *watcher, const struct sample *sample)
{
    struct uuids *uuids = watcher;

    if (sample->kind == SAMPLE_DEVICE && sample->gpu < 2)
        snprintf(uuids->of[sample->gpu], sizeof(uuids->of[0]), "%s", sample->device.uuid);
}

static void two_boards_with_one_unique_id_are_two_gpus(void **state)
{
    struct fake_script script = script_like("mi210");
    struct uuids uuids = {0};
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    script.boards[1] = script.boards[0];
    script.boards[1].pci = "0000:83:00.0";
    open_machine(&rig, &machine, &script);
    rig.see = keep_uuids;
    rig.watcher = &uuids;
    play_whole(&rig, 20 * SECOND);
    assert_string_equal(uuids.of[0], "AMD-1f0a2b3c4d5e6f70");
    assert_string_equal(uuids.of[1], "PCI-0000:83:00.0");
    check_energy(&rig, 0, 0);
    check_energy(&rig, 1, 1);
    close_machine(&rig);
}

/* 32 bits are full after 65 kJ, which this board does not draw in a minute. */
static void a_narrow_counter_that_cannot_be_read_for_20_s_has_not_lost_its_count(void **state)
{
    struct fake_machine machine;
    char table[FAKE_PATH_BYTES];
    struct rig rig;

    (void)state;
    open_machine(&rig, &machine, fake_script_find("radeon"));
    play(&rig, 10 * SECOND);
    machine.spared[0] = fake_board_path(&machine, 0, "gpu_metrics", table);
    spoil_file(&rig, table, EMPTY);
    play(&rig, 20 * SECOND);
    machine.spared[0] = NULL;
    play_whole(&rig, 10 * SECOND);
    check_energy(&rig, 0, 0);
    close_machine(&rig);
}

static void cards_without_a_number_are_reported(void **state)
{
    struct fake_script script = script_like("mi210");
    struct fake_machine machine;
    struct rig rig;

    (void)state;
    script.boards[1] = script.boards[0];
    script.boards[1].pci = "0000:83:00.0";
    make_machine(&rig, &machine, &script);
    for (unsigned i = 0; i < SAMPLE_GPU_MAX - 1; i++) {
        char path[96];

        snprintf(path, sizeof(path), "sys/bus/pci/devices/0001:%02x:00.0/vendor", i);
        tree_write(rig.root, path, "0x10de\n");
        snprintf(path, sizeof(path), "sys/bus/pci/devices/0001:%02x:00.0/class", i);
        tree_write(rig.root, path, "0x030200\n");
    }
    rig_add_source(&rig, &drm_source);
    play(&rig, 5 * SECOND);
    assert_int_equal(rig.unit_count, 1);
    assert_int_equal(rig.errors, 5);
    close_machine(&rig);
}

static void what_an_unseen_client_draws_is_not_idle(void **state)
{
    struct fake_script script = script_like("arc-i915");
    struct fake_machine machine;
    uint64_t idle_uj, truth_uj;
    struct rig rig;

    (void)state;
    script.processes[0].from_ms = 20000;
    script.processes[0].load = (struct fake_load){.steps = {{0, 1000}}};
    script.processes[1].pid = 0;
    open_machine(&rig, &machine, &script);
    play(&rig, 20 * SECOND); /* the next step starts it */
    machine.spared[0] = "proc/101/fdinfo/7";
    play(&rig, rig.step_us);
    tree_remove(rig.root, "proc/101/fd/7");
    play_whole(&rig, 30 * SECOND);
    truth_uj = (uint64_t)(fake_truth_j(&script.processes[0], last_us(&rig)) * 1e6);
    idle_uj = (last_us(&rig) / SECOND) * script.boards[0].idle_w * JOULE;
    assert_true(truth_uj > idle_uj);
    assert_true(meter_of(&rig, 0)->unowned_uj[UNOWNED_IDLE] < idle_uj + idle_uj / 5);
    close_machine(&rig);
}

static void move_both(struct rig *rig)
{
    move_nvml(rig);
    move_machine(rig);
}

static void gpus_of_two_vendors_have_numbers_of_their_own_those_of_nvidia_first(void **state)
{
    const struct fake_script *script = fake_script_find("mi210");
    struct fake_machine machine;
    struct snapshot *snapshot;
    struct rig rig;

    (void)state;
    make_machine(&rig, &machine, script);
    load_nvml(&rig, FAKE_NVML, SCENARIOS "time-slicing.trace");
    rig.context.nvml_library = FAKE_NVML;
    rig.move = move_both;
    tree_write(rig.root, "sys/bus/pci/devices/0000:99:00.0/vendor", "0x10de\n");
    tree_write(rig.root, "sys/bus/pci/devices/0000:99:00.0/class", "0x030200\n");
    /* Its audio, which is no GPU. */
    tree_write(rig.root, "sys/bus/pci/devices/0000:99:00.1/vendor", "0x10de\n");
    tree_write(rig.root, "sys/bus/pci/devices/0000:99:00.1/class", "0x040300\n");
    rig_add_source(&rig, &drm_source);
    rig_add_source(&rig, &nvml_source);
    play_whole(&rig, 15 * SECOND);
    assert_int_equal(rig.errors, 0);
    snapshot = books(&rig);
    assert_int_equal(snapshot->gpu_count, 2);
    assert_memory_equal(snapshot->gpus[0].uuid, "GPU-", 4);
    assert_string_equal(snapshot->gpus[1].uuid, "AMD-1f0a2b3c4d5e6f70");
    close_books(snapshot);
    check_energy(&rig, 1, 0);
    check_page(&rig, "drm/two-vendors.txt");
    close_machine(&rig);
    unload_nvml(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_card_that_was_removed_comes_back_as_the_same),
        cmocka_unit_test(a_client_that_two_processes_have_counts_once),
        cmocka_unit_test(a_client_is_followed_to_the_process_that_is_left_with_it),
        cmocka_unit_test(an_engine_that_counts_back_has_done_nothing_until_it_is_past_where_it_was),
        cmocka_unit_test(who_has_ended_pays_nothing_more_though_kfd_still_has_its_memory),
        cmocka_unit_test(a_pid_that_is_used_again_is_another_process),
        cmocka_unit_test(a_card_that_is_suspended_is_not_woken),
        cmocka_unit_test(a_board_that_is_partitioned_while_we_run_is_read_as_partitions),
        cmocka_unit_test(every_window_shows_its_own_work_however_late_the_polls_are),
        cmocka_unit_test(a_counter_that_cannot_be_read_at_first_is_still_the_meter),
        cmocka_unit_test(a_card_without_a_readable_counter_is_integrated_after_a_while),
        cmocka_unit_test(an_apu_is_not_booked_twice_though_its_table_is_newer_or_cannot_be_read),
        cmocka_unit_test(a_wide_counter_that_begins_anew_is_not_taken_for_a_full_one),
        cmocka_unit_test(clients_without_times_share_what_the_card_did),
        cmocka_unit_test(a_counter_that_jumps_for_a_moment_loses_nothing),
        cmocka_unit_test(a_counter_that_begins_anew_is_followed_from_there),
        cmocka_unit_test(a_driver_that_was_bound_anew_is_read_again),
        cmocka_unit_test(no_table_is_read_to_find_the_dies_of_a_board),
        cmocka_unit_test(dies_of_two_boards_are_not_one),
        cmocka_unit_test(a_die_that_cannot_be_read_at_first_is_part_of_its_board),
        cmocka_unit_test(a_counter_that_shows_0_is_not_read),
        cmocka_unit_test(a_counter_that_never_counts_gives_way_to_that_of_the_package),
        cmocka_unit_test(a_counter_that_the_driver_makes_after_the_card_is_found),
        cmocka_unit_test(power_that_no_board_draws_is_not_passed_on),
        cmocka_unit_test(two_boards_with_one_unique_id_are_two_gpus),
        cmocka_unit_test(a_narrow_counter_that_cannot_be_read_for_20_s_has_not_lost_its_count),
        cmocka_unit_test(cards_without_a_number_are_reported),
        cmocka_unit_test(what_an_unseen_client_draws_is_not_idle),
        cmocka_unit_test(gpus_of_two_vendors_have_numbers_of_their_own_those_of_nvidia_first),
        cmocka_unit_test(
            whatever_a_file_holds_the_books_balance_and_the_energy_is_there_afterwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
