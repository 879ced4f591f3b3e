/*
 * DCGM's profiling fields in place of GPM: the scripted board of mps-partitions, with its GPM taken
 * away and told by a host engine instead.
 */
#include "script_fixture.h"

#include "../fakes/dcgm/fake_dcgm.h"
#include "model/report.h"
#include "sources/dcgm/dcgm.h"
#include "sources/runner.h"

#define UUID  "GPU-00000000-0000-4000-8000-000000000000"
#define BLANK 140737488355328.0

enum { SECONDS = 44, READINGS_MAX = 512 };

/* The fields of the ids that a G record has: 1 2 3 4 5 7 10 11 12 13 (dcgm_fields.h, nvml.h). */
static const struct {
    const char *id;
    uint16_t field;
} fields[] = {{"1", 1001}, {"2", 1002},  {"3", 1003},  {"4", 1016},  {"5", 1004},
              {"7", 1014}, {"10", 1005}, {"11", 1006}, {"12", 1007}, {"13", 1008}};

/* What /proc/net/tcp shows: the host engine, between others. */
#define HEADING                                                                                    \
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
#define ROW(address, state, uid)                                                                   \
    "   0: " address " 00000000:0000 " state " 00000000:00000000 00:00000000 00000000 " uid        \
    "        0 1674 1 000000005f212af2 100 0 0 10 0\n"
#define SSH           ROW("00000000:0016", "0A", "    0")
#define ENGINE(uid)   ROW("0100007F:15B3", "0A", uid)
#define ENGINE_OF_ALL ROW("00000000:15B3", "0A", "    0")
#define RUNNING       HEADING ENGINE("    0")
#define CONNECTED     ROW("0100007F:15B3", "01", "    0")

static struct {
    void *library;
    typeof(fake_dcgm_reset) *reset;
    typeof(fake_dcgm_set_engine) *set_engine;
    typeof(fake_dcgm_set_value) *set_value;
    typeof(fake_dcgm_wait_hanging) *wait_hanging;
    typeof(fake_dcgm_watched) *watched;
    typeof(fake_dcgm_init_count) *init_count;
} fake;

struct board {
    struct rig rig; /* first: `move` has only this */
    struct script script;
    char path[32]; /* of the scenario without GPM */
    struct {
        uint64_t t_us;
        double values[ARRAY_SIZE(fields)];
    } readings[READINGS_MAX];
    size_t count, next;
    void *dcgm; /* NULL: not open */
    unsigned opened;
    size_t samples; /* of GPM, that the board passed on */
};

static int load_fake(void **state)
{
    (void)state;
    fake.library = dlopen(FAKE_DCGM, RTLD_NOW | RTLD_LOCAL);
    if (!fake.library)
        fail_msg("%s", dlerror());
    fake.reset = (typeof(fake.reset))dlsym(fake.library, "fake_dcgm_reset");
    fake.set_engine = (typeof(fake.set_engine))dlsym(fake.library, "fake_dcgm_set_engine");
    fake.set_value = (typeof(fake.set_value))dlsym(fake.library, "fake_dcgm_set_value");
    fake.wait_hanging = (typeof(fake.wait_hanging))dlsym(fake.library, "fake_dcgm_wait_hanging");
    fake.watched = (typeof(fake.watched))dlsym(fake.library, "fake_dcgm_watched");
    fake.init_count = (typeof(fake.init_count))dlsym(fake.library, "fake_dcgm_init_count");
    return 0;
}

static void keep_reading(struct board *board, struct span line)
{
    assert_true(board->count < READINGS_MAX);
    board->readings[board->count].t_us = number(&line);
    (void)span_cut(&line, ' ');
    (void)span_cut(&line, ' ');
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        char text[128], *value;

        value = strchr(word(&line, text), '=');
        *value++ = '\0';
        assert_string_equal(text, fields[i].id);
        board->readings[board->count].values[i] = strtod(value, NULL) / 100;
    }
    board->count++;
}

/* Takes GPM out of a scenario. */
static void strip_scenario(struct board *board, const char *scenario)
{
    char *data;
    size_t len;
    struct span rest;
    int in = open(scenario, O_RDONLY | O_CLOEXEC), out;

    strcpy(board->path, "/tmp/dcgmXXXXXX");
    out = mkstemp(board->path);
    assert_true(in >= 0 && out >= 0);
    assert_int_equal(fs_read_fd(in, 16 << 20, &data, &len), 0);
    rest = (struct span){data, len};
    while (rest.len > 0) {
        struct span line = span_cut(&rest, '\n');

        if (memmem(line.data, line.len, " G 0 ", 5))
            keep_reading(board, line);
        else
            assert_true(fs_write_all(out, line.data, line.len) == 0 &&
                        fs_write_all(out, "\n", 1) == 0);
    }
    free(data);
    close(in);
    close(out);
}

/* What the collector does: opens the source if it can be, reads it, closes it when it is gone. */
static void read_dcgm(struct board *board)
{
    struct error err = {""};
    struct batch batch;

    batch_init(&batch);
    if (!board->dcgm && board->rig.elapsed_us % SECOND == 0 &&
        dcgm_source.open(&board->rig.context, &board->dcgm, &err) == 0)
        board->opened++;
    if (board->dcgm && dcgm_source.read(board->dcgm, &batch, &err) == -ENODEV) {
        dcgm_source.close(board->dcgm);
        board->dcgm = NULL;
    }
    assert_int_equal(batch.count, 0);
    batch_done(&batch);
}

/* The host engine updates, then DCGM's thread reads. */
static void move_board(struct rig *rig)
{
    struct board *board = (struct board *)rig;
    uint64_t now_us = START_US + rig->elapsed_us;

    move_nvml(rig);
    while (board->next < board->count && board->readings[board->next].t_us <= now_us) {
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
            fake.set_value(fields[i].field, board->readings[board->next].values[i],
                           board->readings[board->next].t_us);
        board->next++;
    }
    read_dcgm(board);
}

static void count_gpm(void *watcher, const struct sample *sample)
{
    struct board *board = watcher;

    board->samples += sample->kind == SAMPLE_GPM && sample->gpm.valid;
}

static struct board *open_board(enum fake_dcgm_engine engine)
{
    struct board *board = calloc(1, sizeof(*board));

    assert_non_null(board);
    fake.reset(engine, UUID);
    strip_scenario(board, SCENARIOS "mps-partitions.trace");
    open_rig_by(&board->rig, FAKE_NVML, board->path, rig_defaults());
    tree_write(board->rig.root, "proc/net/tcp", HEADING SSH ENGINE("    0") CONNECTED);
    board->rig.host.program_secret = (struct program_secret){{1, 2}};
    board->rig.context.dcgm_library = FAKE_DCGM;
    board->rig.move = move_board;
    board->rig.see = count_gpm;
    board->rig.watcher = board;
    board->script = read_script(&board->rig, board->path, START_US + SECONDS * SECOND);
    return board;
}

/* The part of the energy that is booked to the wrong process. */
static double finish(struct board *board)
{
    double wrong;

    play(&board->rig, SECONDS * SECOND + STEP_US - board->rig.elapsed_us);
    assert_int_equal(pipeline_finish(board->rig.pipeline), 0);
    assert_int_equal(board->rig.errors, 0);
    assert_int_equal(meter_of(&board->rig, 0)->energy_uj,
                     board->script.last_uj[0] - board->script.first_uj[0]);
    wrong = wrong_part(&board->rig, &board->script, 0);
    if (board->dcgm)
        dcgm_source.close(board->dcgm);
    assert_int_equal(fake.init_count(), 0);
    assert_int_equal(fake.watched(), 0);
    close_rig(&board->rig);
    unlink(board->path);
    free(board);
    return wrong;
}

static void a_board_without_gpm_is_divided_by_the_profiling_fields_of_the_host_engine(void **state)
{
    struct board *board = open_board(FAKE_DCGM_RUNS);
    double wrong;

    (void)state;
    play(&board->rig, 20 * SECOND);
    assert_int_equal(fake.watched(), ARRAY_SIZE(fields));
    assert_true(board->samples > 10);
    assert_int_equal(board->opened, 1);
    wrong = finish(board);
    if (wrong > 0.03) /* by GPM at most 0.02, see test_nvml_pages.c */
        fail_msg("%f of the energy is booked to the wrong process", wrong);
}

static void without_a_host_engine_its_energy_is_booked_as_before(void **state)
{
    struct board *board = open_board(FAKE_DCGM_ABSENT);
    double wrong;

    (void)state;
    play(&board->rig, 20 * SECOND);
    assert_int_equal(board->samples, 0);
    assert_true(board->opened > 10); /* it is looked for */
    wrong = finish(board);
    assert_true(wrong > 0.1);
}

static void an_older_host_engine_is_asked_for_the_fields_that_it_knows(void **state)
{
    struct board *board = open_board(FAKE_DCGM_FEW_FIELDS);
    double wrong;

    (void)state;
    play(&board->rig, 20 * SECOND);
    assert_int_equal(fake.watched(), 8);
    wrong = finish(board);
    if (wrong > 0.06)
        fail_msg("%f of the energy is booked to the wrong process", wrong);
}

static void boards_that_cannot_be_profiled_get_no_counters_and_nothing_is_down(void **state)
{
    struct board *board = open_board(FAKE_DCGM_NO_PROFILING);

    (void)state;
    play(&board->rig, 20 * SECOND);
    assert_int_equal(board->opened, 1);
    assert_int_equal(board->samples, 0);
    assert_true(finish(board) > 0.1);
}

static void a_host_engine_that_dies_is_looked_for_and_used_again_when_it_is_back(void **state)
{
    struct board *board = open_board(FAKE_DCGM_RUNS);
    size_t before;

    (void)state;
    play(&board->rig, 24 * SECOND);
    fake.set_engine(FAKE_DCGM_ABSENT);
    play(&board->rig, SECOND);
    before = board->samples;
    play(&board->rig, 4 * SECOND);
    assert_int_equal(board->samples, before);
    fake.set_engine(FAKE_DCGM_RUNS);
    play(&board->rig, 4 * SECOND);
    assert_true(board->samples > before + 5);
    (void)finish(board);
}

static void a_host_engine_that_hangs_holds_up_neither_the_energy_nor_the_end(void **state)
{
    struct board *board = open_board(FAKE_DCGM_RUNS);
    struct source_unit unit = {.ops = &dcgm_source, .name = "dcgm", .interval_us = 1000};
    struct runner *runner;
    struct error err;
    int wake_fd = memfd_create("wake", MFD_CLOEXEC);

    (void)state;
    board->rig.move = move_nvml;
    play(&board->rig, 5 * SECOND);
    fake.set_engine(FAKE_DCGM_HANGS);
    assert_int_equal(dcgm_source.open(&board->rig.context, &unit.state, &err), 0);
    assert_int_equal(runner_start(&unit, &clock_system, 1000, wake_fd, &runner), 0);
    fake.wait_hanging();
    play(&board->rig, 10 * SECOND);
    assert_int_equal(board->samples, 0);
    assert_false(runner_stop(runner, 1000)); /* it is left behind, and closes itself */
    fake.set_engine(FAKE_DCGM_ABSENT);
    while (fake.init_count() > 0)
        sched_yield();
    (void)finish(board);
    close(wake_fd);
}

/* When DCGM is asked. */
#define BEGAN_US (START_US + 8 * SECOND)

static void blank_and_repeated_values_are_none(void **state)
{
    struct board *board = open_board(FAKE_DCGM_RUNS);
    struct sample_gpm mean;
    uint64_t t_us;

    (void)state;
    board->count = 0; /* nothing but this: */
    play(&board->rig, BEGAN_US + STEP_US - START_US);
    fake.set_value(1001, 0.5, BEGAN_US);
    fake.set_value(1002, 0.25, BEGAN_US);
    read_dcgm(board); /* begins */
    assert_true(gpu_counters_take(&board->rig.counters, 0, &t_us, &mean));
    assert_int_equal(mean.valid, 0);
    read_dcgm(board); /* the same again */
    assert_false(gpu_counters_take(&board->rig.counters, 0, &t_us, &mean));
    fake.set_value(1001, 0.75, BEGAN_US + STEP_US);
    for (size_t i = 0; i < 4; i++) /* blank, not found, not supported, not permitted */
        fake.set_value((uint16_t)(1003 + i), BLANK + (double)i, BEGAN_US + STEP_US);
    fake.set_value(1007, NAN, BEGAN_US + STEP_US);
    read_dcgm(board);
    fake.set_value(1001, 0.25, BEGAN_US + 2 * STEP_US);
    read_dcgm(board);
    assert_true(gpu_counters_take(&board->rig.counters, 0, &t_us, &mean));
    assert_int_equal(t_us, BEGAN_US + 2 * STEP_US);
    assert_int_equal(mean.valid, 3);
    assert_int_equal(mean.millipercent[0], 50000); /* the mean of two */
    assert_int_equal(mean.millipercent[1], 25000);
    (void)finish(board);
}

static void values_of_another_time_are_none_and_do_not_keep_later_ones_out(void **state)
{
    static const uint64_t times[] = {1, BEGAN_US - 2 * SECOND, BEGAN_US + 2 * SECOND, INT64_MAX,
                                     UINT64_MAX};
    struct board *board = open_board(FAKE_DCGM_RUNS);
    struct sample_gpm mean;
    uint64_t t_us;

    (void)state;
    board->count = 0;
    play(&board->rig, BEGAN_US + STEP_US - START_US);
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        fake.set_value(1001, 0.5, times[i]);
        read_dcgm(board);
        assert_false(gpu_counters_take(&board->rig.counters, 0, &t_us, &mean));
    }
    for (uint64_t i = 1; i < 3; i++) {
        fake.set_value(1001, 0.5, BEGAN_US + i * STEP_US);
        read_dcgm(board);
        assert_true(gpu_counters_take(&board->rig.counters, 0, &t_us, &mean));
        assert_int_equal(mean.valid, i == 1 ? 0 : 1);
        assert_int_equal(t_us, BEGAN_US + i * STEP_US);
    }
    (void)finish(board);
}

static void a_clock_that_was_set_back_keeps_no_values_out(void **state)
{
    struct board *board = open_board(FAKE_DCGM_RUNS);
    struct sample_gpm mean;
    uint64_t t_us;

    (void)state;
    board->count = 0;
    play(&board->rig, BEGAN_US + STEP_US - START_US);
    fake.set_value(1001, 0.5, BEGAN_US);
    read_dcgm(board);
    assert_true(gpu_counters_take(&board->rig.counters, 0, &t_us, &mean));
    board->rig.clock.now_us -= 3600 * SECOND;
    for (uint64_t i = 1; i < 3; i++) {
        fake.set_value(1001, 0.5, BEGAN_US - 3600 * SECOND + i * STEP_US);
        read_dcgm(board);
        assert_true(gpu_counters_take(&board->rig.counters, 0, &t_us, &mean));
        assert_int_equal(mean.valid, i == 1 ? 0 : 1); /* the first only begins */
    }
    board->rig.clock.now_us += 3600 * SECOND;
    (void)finish(board);
}

static void a_host_engine_without_the_board_gives_nothing_and_nothing_is_down(void **state)
{
    struct board *board = open_board(FAKE_DCGM_RUNS);

    (void)state;
    fake.reset(FAKE_DCGM_RUNS, "GPU-another");
    play(&board->rig, 20 * SECOND);
    assert_int_equal(board->opened, 1);
    assert_int_equal(board->samples, 0);
    assert_true(finish(board) > 0.1);
}

static void the_watch_ends_when_the_board_does_not_want_it(void **state)
{
    struct board *board = open_board(FAKE_DCGM_RUNS);

    (void)state;
    play(&board->rig, 20 * SECOND);
    assert_int_equal(fake.watched(), ARRAY_SIZE(fields));
    gpu_counters_want(&board->rig.counters, 1, "GPU-another"); /* stays connected */
    gpu_counters_want(&board->rig.counters, 0, NULL);
    read_dcgm(board);
    assert_int_equal(fake.watched(), 0);
    assert_int_equal(fake.init_count(), 1);
    play(&board->rig, 2 * SECOND); /* it wants it again */
    assert_int_equal(fake.watched(), ARRAY_SIZE(fields));
    assert_int_equal(board->opened, 1);
    (void)finish(board);
}

static bool is_wanted(struct rig *rig)
{
    char uuid[GPU_COUNTERS_UUID_BYTES];

    return gpu_counters_wanted(&rig->counters, 0, uuid);
}

static void a_board_in_mig_mode_is_not_asked_for(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "a100-mig.trace");
    for (int i = 0; i < 10; i++) {
        play(&rig, SECOND);
        assert_false(is_wanted(&rig));
    }
    close_rig(&rig);
}

/* Its last process ends after 10 s. */
static void a_board_is_profiled_while_it_has_processes_and_a_minute_longer(void **state)
{
    struct rig rig;

    (void)state;
    open_rig(&rig, FAKE_NVML, SCENARIOS "churn.trace");
    play(&rig, 8 * SECOND);
    assert_true(is_wanted(&rig));
    play(&rig, 52 * SECOND);
    assert_true(is_wanted(&rig));
    play(&rig, 15 * SECOND);
    assert_false(is_wanted(&rig));
    close_rig(&rig);
}

static void a_board_with_gpm_is_not_asked_for_and_nothing_is_loaded(void **state)
{
    struct rig rig;
    struct error err = {""};
    void *dcgm;

    (void)state;
    fake.reset(FAKE_DCGM_RUNS, UUID);
    open_rig(&rig, FAKE_NVML, SCENARIOS "mps-partitions.trace");
    tree_write(rig.root, "proc/net/tcp", RUNNING);
    rig.context.dcgm_library = FAKE_DCGM;
    play(&rig, 5 * SECOND);
    assert_int_equal(dcgm_source.open(&rig.context, &dcgm, &err), -ENODEV);
    assert_string_equal(err.text, "");
    close_rig(&rig);
}

/* One with nothing but /proc/net/tcp. */
static struct host make_host(char *root, const char *table)
{
    struct host host = {.sysfs_fd = -1, .rootfs_fd = -1};

    assert_non_null(mkdtemp(root));
    tree_write(root, "net/tcp", table);
    host.procfs_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return host;
}

static void remove_host(const char *root, const struct host *host)
{
    close(host->procfs_fd);
    tree_remove(root, "");
}

static void only_root_is_believed_to_be_the_host_engine(void **state)
{
    static const struct {
        const char *table, *error;
    } cases[] = {
        {HEADING SSH ENGINE("    0"), ""},
        {HEADING ENGINE_OF_ALL SSH, ""},
        {HEADING SSH ENGINE(" 1000"), "not root but user 1000 listens at 127.0.0.1:5555"},
        {HEADING SSH CONNECTED, "nobody listens at 127.0.0.1:5555"},
        {HEADING SSH, "nobody listens at 127.0.0.1:5555"},
        {HEADING, "nobody listens at 127.0.0.1:5555"},
        {"", "nobody listens at 127.0.0.1:5555"},
        {HEADING "   0: 0100007F:15B3 00000000:0000 0A 0:0",
         "cannot tell who listens at 127.0.0.1:5555: Invalid argument"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char root[] = "/tmp/dcgmXXXXXX";
        struct host host = make_host(root, cases[i].table);
        struct error err = {""};
        int r = dcgm_find_engine(&host, &err);

        assert_string_equal(err.text, cases[i].error);
        assert_int_equal(r, cases[i].error[0] ? -ENODEV : 0);
        remove_host(root, &host);
    }
}

static void other_libraries_and_versions_are_refused_with_a_text(void **state)
{
    char root[] = "/tmp/dcgmXXXXXX";
    struct host host = make_host(root, RUNNING);
    const struct source_context context = {.host = &host};
    struct dcgm dcgm = {.context = &context};
    struct error err = {""};

    (void)state;
    assert_int_equal(dcgm_library_open("/nonexistent/libdcgm.so.4", &dcgm.library, &err), -ENODEV);
    assert_int_equal(dcgm_library_open(FAKE_DCGM_OTHER, &dcgm.library, &err), -ENOTSUP);
    assert_string_equal(err.text,
                        "libdcgm has no dcgmEntitiesGetLatestValues: not a version 3 or 4 "
                        "of DCGM?");
    fake.reset(FAKE_DCGM_OTHER_ENGINE, UUID);
    assert_int_equal(dcgm_library_open(FAKE_DCGM, &dcgm.library, &err), 0);
    assert_int_equal(dcgm_connect(&dcgm, &err), -ENODEV);
    assert_string_equal(err.text, "the host engine at 127.0.0.1:5555 and libdcgm have different "
                                  "versions: API version mismatch");
    dcgm_disconnect(&dcgm);
    dcgm_library_close(&dcgm.library);
    remove_host(root, &host);
}

static const struct finding *check(enum fake_dcgm_engine engine, const char *wanted,
                                   const char *table, struct report *report)
{
    char root[] = "/tmp/dcgmXXXXXX";
    struct host host = make_host(root, table);
    struct gpu_counters counters;
    const struct source_context context = {
        .host = &host, .clock = &clock_system, .dcgm_library = FAKE_DCGM, .counters = &counters};

    fake.reset(engine, UUID);
    gpu_counters_init(&counters);
    gpu_counters_want(&counters, 0, wanted);
    *report = (struct report){.gpus = 1};
    dcgm_source.check(&context, report);
    assert_int_equal(fake.init_count(), 0);
    remove_host(root, &host);
    return &report->findings[report->count - 1];
}

static void check_says_what_is_missing_and_how_to_enable_it(void **state)
{
    static const struct {
        enum fake_dcgm_engine engine;
        const char *wanted;
        enum verdict verdict;
        const char *what, *detail, *remedy;
        const char *table;
    } cases[] = {
        {FAKE_DCGM_RUNS, NULL, VERDICT_OK, "dcgm", "not used", NULL, RUNNING},
        {FAKE_DCGM_RUNS, UUID, VERDICT_OK, "dcgm: gpu 0", "10 profiling fields", NULL, RUNNING},
        {FAKE_DCGM_FEW_FIELDS, UUID, VERDICT_OK, "dcgm: gpu 0", "8 profiling fields", NULL,
         RUNNING},
        {FAKE_DCGM_ABSENT, UUID, VERDICT_LIMITED, "dcgm", "no host engine answers at 127.0.0.1",
         "systemctl enable --now nvidia-dcgm", RUNNING},
        {FAKE_DCGM_OTHER_ENGINE, UUID, VERDICT_LIMITED, "dcgm", "different versions", "nvidia-dcgm",
         RUNNING},
        {FAKE_DCGM_NO_PROFILING, UUID, VERDICT_LIMITED, "dcgm: gpu 0", "Profiling is not supported",
         "run the host engine as root", RUNNING},
        {FAKE_DCGM_RUNS, "GPU-other", VERDICT_LIMITED, "dcgm: gpu 0", "does not have GPU-other",
         "run the host engine", RUNNING},
        {FAKE_DCGM_RUNS, UUID, VERDICT_LIMITED, "dcgm", "nobody listens", "nvidia-dcgm", HEADING},
        {FAKE_DCGM_RUNS, UUID, VERDICT_LIMITED, "dcgm", "user 1000 listens", "nvidia-dcgm",
         HEADING ENGINE(" 1000")},
    };
    struct report *report = malloc(sizeof(*report));

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct finding *last =
            check(cases[i].engine, cases[i].wanted, cases[i].table, report);

        assert_int_equal(last->verdict, cases[i].verdict);
        assert_string_equal(last->what, cases[i].what);
        assert_non_null(strstr(last->detail, cases[i].detail));
        if (cases[i].remedy)
            assert_non_null(strstr(last->remedy, cases[i].remedy));
        else
            assert_null(last->remedy);
    }
    free(report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_without_gpm_is_divided_by_the_profiling_fields_of_the_host_engine),
        cmocka_unit_test(without_a_host_engine_its_energy_is_booked_as_before),
        cmocka_unit_test(an_older_host_engine_is_asked_for_the_fields_that_it_knows),
        cmocka_unit_test(boards_that_cannot_be_profiled_get_no_counters_and_nothing_is_down),
        cmocka_unit_test(a_host_engine_that_dies_is_looked_for_and_used_again_when_it_is_back),
        cmocka_unit_test(a_host_engine_that_hangs_holds_up_neither_the_energy_nor_the_end),
        cmocka_unit_test(blank_and_repeated_values_are_none),
        cmocka_unit_test(values_of_another_time_are_none_and_do_not_keep_later_ones_out),
        cmocka_unit_test(a_clock_that_was_set_back_keeps_no_values_out),
        cmocka_unit_test(a_host_engine_without_the_board_gives_nothing_and_nothing_is_down),
        cmocka_unit_test(the_watch_ends_when_the_board_does_not_want_it),
        cmocka_unit_test(a_board_in_mig_mode_is_not_asked_for),
        cmocka_unit_test(a_board_is_profiled_while_it_has_processes_and_a_minute_longer),
        cmocka_unit_test(only_root_is_believed_to_be_the_host_engine),
        cmocka_unit_test(a_board_with_gpm_is_not_asked_for_and_nothing_is_loaded),
        cmocka_unit_test(other_libraries_and_versions_are_refused_with_a_text),
        cmocka_unit_test(check_says_what_is_missing_and_how_to_enable_it),
    };

    return cmocka_run_group_tests(tests, load_fake, NULL);
}
