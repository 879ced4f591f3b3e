/* sources/trace/replay: everything that is due, once, in today's time, and over again. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fs.h"
#include "core/macros.h"
#include "sources/source.h"

#define HEADER "wattribute-trace 1\n"
#define GPU0   "gpu 0 uuid=GPU-0\n"
#define GPU1   "gpu 1 uuid=GPU-1\n"

/* From 1000 s to 1000.4 s of long ago; with the seam of 100 ms a round takes 500 ms. */
#define ROUND_US 500000
static const char short_trace[] = HEADER GPU0 "1000000000 E 0 100\n"
                                              "1000000000 R 0 c 1 7:8\n"
                                              "1000100000 E 0 110\n"
                                              "1000250000 S 0 7 1000200000 99 1 0 0\n"
                                              "1000300000 N 0 7 999000000 /a name\n"
                                              "1000400000 E 0 140\n";
enum { SHORT_RECORDS = 6 };

/* When the tests begin: 2026, so that times must be shifted to be right. */
static const uint64_t BEGIN_US = 1785000000000000;

/* A wall clock that can be stepped apart from the monotonic one. */
struct two_clocks {
    struct clock clock;
    uint64_t real_us, mono_us;
};

static uint64_t read_real(const struct clock *clock)
{
    return ((const struct two_clocks *)clock)->real_us;
}

static uint64_t read_mono(const struct clock *clock)
{
    return ((const struct two_clocks *)clock)->mono_us;
}

struct player {
    int fd;
    void *state;
    struct batch batch;
};

static int try_open(const char *trace, const struct clock *clock, struct player *player,
                    struct error *err)
{
    struct source_context context = {.clock = clock, .interval_us = 1000000};
    char path[32];

    *player = (struct player){.fd = memfd_create("trace", MFD_CLOEXEC)};
    assert_true(player->fd >= 0);
    assert_int_equal(fs_write_all(player->fd, trace, strlen(trace)), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", player->fd);
    context.replay_path = path;
    batch_init(&player->batch);
    return replay_source.open(&context, &player->state, err);
}

static struct player play(const char *trace, const struct clock *clock)
{
    struct error err = {""};
    struct player player;

    if (try_open(trace, clock, &player, &err) != 0)
        fail_msg("%s", err.text);
    return player;
}

static void end(struct player *player)
{
    replay_source.close(player->state);
    batch_done(&player->batch);
    close(player->fd);
}

/* Reads what is due; its number. The samples before it are gone. */
static size_t read_due(struct player *player)
{
    struct error err = {""};

    batch_reset(&player->batch);
    if (replay_source.read(player->state, &player->batch, &err) != 0)
        fail_msg("%s", err.text);
    return player->batch.count;
}

static void nothing_is_played_before_its_time_and_everything_once_at_it(void **state)
{
    static const struct {
        uint64_t after_us;
        size_t count;
        enum sample_kind last;
    } cases[] = {
        {0, 3, SAMPLE_LIST}, /* the gpu line and the two records of the first instant */
        {0, 0, 0},
        {99999, 0, 0},
        {100000, 1, SAMPLE_ENERGY},
        {100000, 0, 0},
        {249999, 0, 0},
        {250000, 1, SAMPLE_LABEL},
        {399999, 1, SAMPLE_PROCESS},
        {400000, 1, SAMPLE_ENERGY},
        {499999, 0, 0},
        {500000, 2, SAMPLE_LIST},
        {600000, 1, SAMPLE_ENERGY},
    };
    struct clock_manual manual;
    struct player player;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(short_trace, &manual.clock);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        manual.now_us = BEGIN_US + cases[i].after_us;
        if (read_due(&player) != cases[i].count)
            fail_msg("step %zu: %zu samples", i, player.batch.count);
        if (cases[i].count > 0)
            assert_int_equal(player.batch.samples[cases[i].count - 1].kind, cases[i].last);
    }
    end(&player);
}

static void times_are_shifted_to_the_start_of_the_play(void **state)
{
    struct clock_manual manual;
    struct player player;
    const struct sample *samples;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(short_trace, &manual.clock);
    manual.now_us += 400000;
    assert_int_equal(read_due(&player), 1 + SHORT_RECORDS);
    samples = player.batch.samples;
    assert_int_equal(samples[1].t_us, BEGIN_US);
    assert_int_equal(samples[2].t_us, BEGIN_US);
    assert_int_equal(samples[2].list.entries[0].pid, 7);
    assert_int_equal(samples[2].list.entries[0].memory_bytes, 8);
    assert_int_equal(samples[3].t_us, BEGIN_US + 100000);
    assert_int_equal(samples[4].t_us, BEGIN_US + 250000);
    assert_int_equal(samples[4].label.at_us, BEGIN_US + 200000);
    assert_int_equal(samples[5].t_us, BEGIN_US + 300000);
    /* Started one second before the trace began. */
    assert_int_equal(samples[5].process.start_us, BEGIN_US - 1000000);
    assert_string_equal(samples[5].process.name, "name");
    assert_int_equal(samples[6].t_us, BEGIN_US + 400000);
    end(&player);
}

static void a_trace_of_the_future_is_shifted_back(void **state)
{
    static const char trace[] = HEADER GPU0 "1794725358000000 E 0 1\n"
                                            "1794725358100000 N 0 7 0 - -\n";
    struct clock_manual manual;
    struct player player;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(trace, &manual.clock);
    manual.now_us += 100000;
    assert_int_equal(read_due(&player), 3);
    assert_int_equal(player.batch.samples[1].t_us, BEGIN_US);
    assert_int_equal(player.batch.samples[2].t_us, BEGIN_US + 100000);
    /* Unknown stays unknown. */
    assert_int_equal(player.batch.samples[2].process.start_us, 0);
    end(&player);
}

static void the_counter_goes_on_across_the_seam(void **state)
{
    struct clock_manual manual;
    struct player player;
    uint64_t last_us = 0, last_uj = 0, energy_records = 0;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(short_trace, &manual.clock);
    for (size_t round = 0; round < 100; round++) {
        manual.now_us = BEGIN_US + round * ROUND_US + ROUND_US - 1;
        assert_int_equal(read_due(&player), SHORT_RECORDS + (round == 0));
        for (size_t i = 0; i < player.batch.count; i++) {
            const struct sample *sample = &player.batch.samples[i];

            if (sample->kind == SAMPLE_LABEL)
                assert_int_equal(sample->label.at_us, BEGIN_US + round * ROUND_US + 200000);
            if (sample->kind == SAMPLE_PROCESS)
                assert_int_equal(sample->process.start_us, BEGIN_US + round * ROUND_US - 1000000);
            if (sample->kind != SAMPLE_ENERGY)
                continue;
            assert_true(sample->t_us > last_us);
            assert_true(sample->counter_uj >= last_uj);
            assert_true(sample->counter_uj - last_uj <= 30000 || last_us == 0);
            last_us = sample->t_us;
            last_uj = sample->counter_uj;
            energy_records++;
        }
        /* A round adds what the trace holds: 40 mJ. */
        assert_int_equal(last_uj, 100000 + (round + 1) * 40000);
    }
    assert_int_equal(energy_records, 300);
    end(&player);
}

static void rounds_that_were_missed_are_all_played_in_order(void **state)
{
    struct clock_manual manual;
    struct player player;
    uint64_t last_us = 0;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(short_trace, &manual.clock);
    manual.now_us += 10 * ROUND_US - 1;
    assert_int_equal(read_due(&player), 1 + 10 * SHORT_RECORDS);
    for (size_t i = 1; i < player.batch.count; i++) {
        assert_true(player.batch.samples[i].t_us >= last_us);
        last_us = player.batch.samples[i].t_us;
    }
    assert_int_equal(last_us, BEGIN_US + 9 * ROUND_US + 400000);
    assert_int_equal(read_due(&player), 0);
    end(&player);
}

static void each_gpu_has_its_own_counter_and_is_described_once(void **state)
{
    static const char trace[] = HEADER GPU0 "1000000000 E 0 100\n" GPU1 "1000000000 E 1 5000\n"
                                            "1000100000 E 0 101\n"
                                            "1000100000 E 1 5200\n";
    struct clock_manual manual;
    struct player player;
    uint64_t last_uj[2] = {0};
    size_t described = 0;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(trace, &manual.clock);
    manual.now_us += 3 * 200000 - 1; /* three rounds, each with its seam */
    assert_int_equal(read_due(&player), 2 + 3 * 4);
    for (size_t i = 0; i < player.batch.count; i++) {
        const struct sample *sample = &player.batch.samples[i];

        if (sample->kind == SAMPLE_DEVICE) {
            described++;
        } else {
            assert_true(sample->counter_uj >= last_uj[sample->gpu]);
            last_uj[sample->gpu] = sample->counter_uj;
        }
    }
    assert_int_equal(described, 2);
    assert_int_equal(last_uj[0], 100000 + 3 * 1000);
    assert_int_equal(last_uj[1], 5000000 + 3 * 200000);
    end(&player);
}

static void a_counter_that_the_trace_resets_is_not_lifted(void **state)
{
    static const char trace[] = HEADER GPU0 "1000000000 E 0 500\n1000100000 E 0 7\n";
    struct clock_manual manual;
    struct player player;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(trace, &manual.clock);
    manual.now_us += 400000 - 1;
    assert_int_equal(read_due(&player), 5);
    assert_int_equal(player.batch.samples[3].counter_uj, 500000);
    assert_int_equal(player.batch.samples[4].counter_uj, 7000);
    end(&player);
}

static void a_trace_of_one_instant_plays_once_a_seam(void **state)
{
    struct clock_manual manual;
    struct player player;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(HEADER GPU0 "1000000000 E 0 100\n1000000000 P 0 1 1 1\n", &manual.clock);
    assert_int_equal(read_due(&player), 3);
    assert_int_equal(read_due(&player), 0);
    manual.now_us += 99999;
    assert_int_equal(read_due(&player), 0);
    manual.now_us += 1;
    assert_int_equal(read_due(&player), 2);
    assert_int_equal(player.batch.samples[0].t_us, BEGIN_US + 100000);
    assert_int_equal(player.batch.samples[0].counter_uj, 100000);
    manual.now_us += 1000000;
    assert_int_equal(read_due(&player), 20);
    end(&player);
}

static void steps_of_the_wall_clock_do_not_matter(void **state)
{
    /* Years ahead, back to the epoch, and to and fro. */
    static const uint64_t walls_us[] = {1995000000000000, 0, 1785000000000000, 1};
    struct two_clocks clocks = {{read_real, read_mono}, BEGIN_US, 55};
    struct player player = play(short_trace, &clocks.clock);
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        count += read_due(&player);
        for (size_t s = 0; s < player.batch.count; s++)
            if (player.batch.samples[s].kind != SAMPLE_DEVICE)
                assert_true(player.batch.samples[s].t_us >= BEGIN_US &&
                            player.batch.samples[s].t_us <= BEGIN_US + i * 100000);
        clocks.real_us = walls_us[i % ARRAY_SIZE(walls_us)];
        clocks.mono_us += 100000;
    }
    assert_int_equal(count, 1 + SHORT_RECORDS);
    end(&player);
}

static void a_bad_trace_is_refused_at_the_start_however_late_the_fault(void **state)
{
    static const struct {
        const char *trace;
        int r;
        const char *why;
    } cases[] = {
        {"not a trace\n", -EBADMSG, "line 1: not a trace"},
        {HEADER, -EBADMSG, "line 2: the trace has no record"},
        {HEADER GPU0, -EBADMSG, "no record that can be played"},
        {HEADER "5 M 0 1 2 3\n", -EBADMSG, "no record that can be played"},
        {HEADER GPU0 "1000000000 E 0 1\n1000000001 E 0 2\n1000000002 E 0 x\n", -EBADMSG,
         "line 5: energy counter"},
        {HEADER GPU0 "1000000000 E 0 1\n1000000001 E 0", -EBADMSG, "line 4: the last line"},
    };
    struct clock_manual manual;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {""};
        struct player player;

        assert_int_equal(try_open(cases[i].trace, &manual.clock, &player, &err), cases[i].r);
        if (!strstr(err.text, cases[i].why))
            fail_msg("expected '%s', got '%s'", cases[i].why, err.text);
        assert_null(player.state);
        end(&player);
    }
}

static void a_missing_file_is_an_error_and_no_file_is_not(void **state)
{
    struct source_context context = {.clock = &clock_system, .interval_us = 1000000};
    struct error err = {"untouched"};
    void *source = NULL;

    (void)state;
    assert_int_equal(replay_source.open(&context, &source, &err), -ENODEV);
    assert_string_equal(err.text, "untouched");
    context.replay_path = "/nowhere/x.trace";
    assert_int_equal(replay_source.open(&context, &source, &err), -ENOENT);
    assert_non_null(strstr(err.text, "cannot open trace '/nowhere/x.trace'"));
    assert_null(source);
}

static void a_file_that_breaks_while_it_plays_is_an_error_that_keeps_what_came_before(void **state)
{
    struct clock_manual manual;
    struct player player;
    struct error err = {""};

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(short_trace, &manual.clock);
    manual.now_us += ROUND_US - 1;
    assert_int_equal(read_due(&player), 1 + SHORT_RECORDS);
    /* Somebody cuts the file in the middle of its third record. The second round was already read
     * into a buffer, to see that it is not due. */
    assert_int_equal(ftruncate(player.fd, (off_t)strlen(HEADER GPU0) + 45), 0);
    manual.now_us += 2 * ROUND_US;
    batch_reset(&player.batch);
    assert_int_equal(replay_source.read(player.state, &player.batch, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "line 5: the last line is not whole"));
    assert_int_equal(player.batch.count, SHORT_RECORDS + 2);
    assert_int_equal(player.batch.samples[SHORT_RECORDS].t_us, BEGIN_US + 2 * ROUND_US);
    end(&player);
}

static void the_nodes_own_records_are_played_too_and_a_report_as_a_whole(void **state)
{
    static const char trace[] = HEADER "1000000000 J rapl package 0 5 0\n"
                                       "1000000000 C 0 0 0 0 1 f\n"
                                       "1000000000 D user 1 - - 0 0\n"
                                       "1000100000 W ipmi 300\n"
                                       "1000200000 J rapl package 0 25 0\n"
                                       "1000200000 C 9 10 0 0 2\n"
                                       "1000200000 D user 1 - - 7 0\n"
                                       "1000200000 D user 2 - - 1 0\n";
    struct clock_manual manual;
    struct player player;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(trace, &manual.clock);
    assert_int_equal(read_due(&player), 2);
    assert_int_equal(player.batch.samples[1].usage.count, 1);
    manual.now_us += 199999;
    assert_int_equal(read_due(&player), 1);
    assert_int_equal(player.batch.samples[0].t_us, BEGIN_US + 100000);
    manual.now_us += 1;
    for (int round = 0; round < 3; round++) {
        const struct sample *samples = player.batch.samples;

        assert_int_equal(read_due(&player), round == 0 ? 2 : 5);
        samples += player.batch.count - 2;
        assert_int_equal(samples[0].meter.counter_uj, 25); /* as if the source were opened again */
        assert_int_equal(samples[1].t_us, manual.now_us);
        assert_int_equal(samples[1].usage.workloads[1].cpu_us, 1);
        manual.now_us += 300000;
    }
    end(&player);
}

static void a_trace_that_begins_at_time_zero_keeps_its_seam(void **state)
{
    static const char trace[] = HEADER GPU0 "0 E 0 100\n100000 E 0 110\n";
    struct clock_manual manual;
    struct player player;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(trace, &manual.clock);
    read_due(&player);
    assert_int_equal(player.batch.count, 2);
    end(&player);
}

static void names_come_first_and_once_however_late_they_are_in_the_trace(void **state)
{
    static const char trace[] = HEADER GPU0 "1000000000 E 0 100\n"
                                            "1000100000 E 0 110\n"
                                            "900000000 O user 1 name=ann\n"
                                            "2000000000 O user 1 name=bob\n";
    struct clock_manual manual;
    struct player player;

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    player = play(trace, &manual.clock);
    assert_int_equal(read_due(&player), 4);
    assert_int_equal(player.batch.samples[0].kind, SAMPLE_NAMES);
    assert_string_equal(player.batch.samples[0].names->texts[WORKLOAD_TEXT_NAME], "ann");
    assert_string_equal(player.batch.samples[1].names->texts[WORKLOAD_TEXT_NAME], "bob");
    assert_int_equal(player.batch.samples[2].kind, SAMPLE_DEVICE);
    for (int round = 0; round < 3; round++) {
        manual.now_us += 200000; /* names have no part in how long a round takes */
        assert_int_equal(read_due(&player), 2);
        assert_int_equal(player.batch.samples[0].kind, SAMPLE_ENERGY);
    }
    end(&player);
}

static void a_trace_of_names_alone_cannot_be_played(void **state)
{
    struct clock_manual manual;
    struct player player;
    struct error err = {""};

    (void)state;
    clock_manual_init(&manual, BEGIN_US);
    assert_int_equal(try_open(HEADER "1 O user 1 name=ann\n", &manual.clock, &player, &err),
                     -EBADMSG);
    assert_non_null(strstr(err.text, "holds no record that can be played"));
    batch_done(&player.batch);
    close(player.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_played_before_its_time_and_everything_once_at_it),
        cmocka_unit_test(times_are_shifted_to_the_start_of_the_play),
        cmocka_unit_test(a_trace_of_the_future_is_shifted_back),
        cmocka_unit_test(the_counter_goes_on_across_the_seam),
        cmocka_unit_test(rounds_that_were_missed_are_all_played_in_order),
        cmocka_unit_test(each_gpu_has_its_own_counter_and_is_described_once),
        cmocka_unit_test(a_counter_that_the_trace_resets_is_not_lifted),
        cmocka_unit_test(a_trace_of_one_instant_plays_once_a_seam),
        cmocka_unit_test(steps_of_the_wall_clock_do_not_matter),
        cmocka_unit_test(a_bad_trace_is_refused_at_the_start_however_late_the_fault),
        cmocka_unit_test(a_missing_file_is_an_error_and_no_file_is_not),
        cmocka_unit_test(a_file_that_breaks_while_it_plays_is_an_error_that_keeps_what_came_before),
        cmocka_unit_test(a_trace_that_begins_at_time_zero_keeps_its_seam),
        cmocka_unit_test(the_nodes_own_records_are_played_too_and_a_report_as_a_whole),
        cmocka_unit_test(names_come_first_and_once_however_late_they_are_in_the_trace),
        cmocka_unit_test(a_trace_of_names_alone_cannot_be_played),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
