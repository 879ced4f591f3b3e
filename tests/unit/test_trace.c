/* sources/trace/record: a line of a trace becomes exactly one sample, or an error. */
#include "trace_lines.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"

#define TIME_MAX    "1152921504606846976" /* 2^60 */
#define TIME_ABOVE  "1152921504606846977"
#define COUNTER_MAX "1125899906842624" /* 2^50 */
#define NONE        SAMPLE_NO_INSTANCE

static void energy_is_read_in_millijoules(void **state)
{
    static const struct {
        const char *line;
        uint64_t t_us;
        uint32_t gpu;
        uint64_t counter_uj;
    } cases[] = {
        {"1794725358284932 E 0 15503172", 1794725358284932, 0, 15503172000},
        {"0 E 63 0", 0, 63, 0},
        {TIME_MAX " E 1 " COUNTER_MAX, 1ULL << 60, 1, (1ULL << 50) * 1000},
        {"007 E 00 001", 7, 0, 1000},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct batch batch;
        const struct sample *sample = parse_line(&batch, cases[i].line);

        assert_int_equal(sample->kind, SAMPLE_ENERGY);
        assert_int_equal(sample->t_us, cases[i].t_us);
        assert_int_equal(sample->gpu, cases[i].gpu);
        assert_int_equal(sample->counter_uj, cases[i].counter_uj);
        batch_done(&batch);
    }
}

static void power_is_the_first_of_three_numbers(void **state)
{
    struct batch batch;
    const struct sample *sample = parse_line(&batch, "5 P 2 123162 120000 100000000");

    (void)state;
    assert_int_equal(sample->kind, SAMPLE_POWER);
    assert_int_equal(sample->t_us, 5);
    assert_int_equal(sample->gpu, 2);
    assert_int_equal(sample->power_mw, 123162);
    batch_done(&batch);
}

static void utilisation_has_four_fields_with_their_limits(void **state)
{
    struct batch batch;
    const struct sample *sample = parse_line(&batch, "5 U 0 99 12 1980 64");

    (void)state;
    assert_int_equal(sample->kind, SAMPLE_UTILISATION);
    assert_int_equal(sample->utilisation.gpu_percent, 99);
    assert_int_equal(sample->utilisation.memory_percent, 12);
    assert_int_equal(sample->utilisation.sm_clock_mhz, 1980);
    assert_int_equal(sample->utilisation.temperature_c, 64);
    batch_done(&batch);
    sample = parse_line(&batch, "5 U 0 100 100 1000000 1000");
    assert_int_equal(sample->utilisation.gpu_percent, 100);
    assert_int_equal(sample->utilisation.memory_percent, 100);
    assert_int_equal(sample->utilisation.sm_clock_mhz, 1000000);
    assert_int_equal(sample->utilisation.temperature_c, 1000);
    batch_done(&batch);
}

static void a_label_keeps_even_the_garbage_that_drivers_answer(void **state)
{
    struct batch batch;
    const struct sample *sample =
        parse_line(&batch, "9 S 0 4242 1794725358200000 99 10 1 2"); /* one of each */

    (void)state;
    assert_int_equal(sample->kind, SAMPLE_LABEL);
    assert_int_equal(sample->t_us, 9);
    assert_int_equal(sample->label.pid, 4242);
    assert_int_equal(sample->label.at_us, 1794725358200000);
    assert_int_equal(sample->label.sm_percent, 99);
    assert_int_equal(sample->label.memory_percent, 10);
    assert_int_equal(sample->label.encoder_percent, 1);
    assert_int_equal(sample->label.decoder_percent, 2);
    assert_false(sample->label.in_proc);
    batch_done(&batch);
    sample = parse_line(&batch, "9 S 0 2147483647 " TIME_MAX " 65535 65535 65535 65535");
    assert_int_equal(sample->label.pid, INT32_MAX);
    assert_int_equal(sample->label.at_us, 1ULL << 60);
    assert_int_equal(sample->label.sm_percent, 65535);
    assert_int_equal(sample->label.decoder_percent, 65535);
    batch_done(&batch);
}

static void a_gpm_record_holds_the_metrics_that_are_used_in_thousandths_of_a_percent(void **state)
{
    /* In the order of sample_gpm_ids: 1, 2, 3, 4, 5, 7, 10, 11, 12, 13. */
    static const struct {
        const char *line;
        uint16_t valid;
        uint32_t millipercent[SAMPLE_GPM_COUNT];
    } cases[] = {
        {"5 G 0 1=99.609", 1 << 0, {99609}},
        {"5 G 0 13=100 1=0", 1 << 9 | 1 << 0, {[9] = 100000}},
        {"5 G 0 1=1 2=2 3=3 4=4 5=5 7=7 10=10 11=11 12=12 13=13",
         0x3ff,
         {1000, 2000, 3000, 4000, 5000, 7000, 10000, 11000, 12000, 13000}},
        /* Digits that are finer than thousandths are cut off, those that are missing are 0. */
        {"5 G 0 1=0.0009 2=99.9999 3=0.05 4=7.5 5=7.", 0x1f, {0, 99999, 50, 7500, 7000}},
        {"5 G 0 1=1.00000000000000000000000000000000000000009", 1 << 0, {1000}},
        {"5 G 0 1=100.000 2=100.0009", 0x3, {100000, 100000}},
        /* The driver had no answer, or garbage: absent, not 0. */
        {"5 G 0 1=nan 2=3", 1 << 1, {[1] = 3000}},
        {"5 G 0 1=100.001 2=65535 3=3", 1 << 2, {[2] = 3000}},
        /* Unused metrics. */
        {"5 G 0 6=1 8=1 9=1 0=1 14=1 4294967295=nan 2=3", 1 << 1, {[1] = 3000}},
        {"5 G 0", 0, {0}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct batch batch;
        const struct sample *sample = parse_line(&batch, cases[i].line);

        assert_int_equal(sample->kind, SAMPLE_GPM);
        assert_int_equal(sample->t_us, 5);
        assert_int_equal(sample->gpm.valid, cases[i].valid);
        for (size_t m = 0; m < SAMPLE_GPM_COUNT; m++)
            if (sample->gpm.millipercent[m] != cases[i].millipercent[m])
                fail_msg("'%s': metric %zu is %u", cases[i].line, m, sample->gpm.millipercent[m]);
        batch_done(&batch);
    }
}

static void a_list_holds_each_entry_in_order(void **state)
{
    static const struct {
        const char *line;
        enum sample_list_kind kind;
        size_t count;
        struct sample_listed entries[3];
    } cases[] = {
        {"1 R 0 c 0", SAMPLE_LIST_COMPUTE, 0, {{0}}},
        {"1 R 0 c 1 7:1", SAMPLE_LIST_COMPUTE, 1, {{7, 1, NONE, NONE}}},
        {"1 R 0 m 2 1:0 2:1000", SAMPLE_LIST_MPS, 2, {{1, 0, NONE, NONE}, {2, 1000, NONE, NONE}}},
        {"1 R 0 c 3 1:2:0:0 3:4:13:7 5:6:4294967295:4294967295",
         SAMPLE_LIST_COMPUTE,
         3,
         {{1, 2, 0, 0}, {3, 4, 13, 7}, {5, 6, NONE, NONE}}},
        {"1 R 0 g 3 2147483647:18446744073709551615 0:0 3:4",
         SAMPLE_LIST_GRAPHICS,
         3,
         {{INT32_MAX, SAMPLE_MEMORY_UNKNOWN, NONE, NONE}, {0, 0, NONE, NONE}, {3, 4, NONE, NONE}}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct batch batch;
        const struct sample *sample = parse_line(&batch, cases[i].line);

        assert_int_equal(sample->kind, SAMPLE_LIST);
        assert_int_equal(sample->list.kind, cases[i].kind);
        assert_int_equal(sample->list.count, cases[i].count);
        for (size_t e = 0; e < cases[i].count; e++) {
            assert_int_equal(sample->list.entries[e].pid, cases[i].entries[e].pid);
            assert_int_equal(sample->list.entries[e].memory_bytes,
                             cases[i].entries[e].memory_bytes);
            assert_int_equal(sample->list.entries[e].gpu_instance,
                             cases[i].entries[e].gpu_instance);
            assert_int_equal(sample->list.entries[e].compute_instance,
                             cases[i].entries[e].compute_instance);
        }
        batch_done(&batch);
    }
}

static void a_process_is_named_with_percent_codes(void **state)
{
    static const struct {
        const char *line;
        uint32_t pid;
        uint64_t start_us;
        const char *cgroup, *name;
        uint32_t uid;
    } cases[] = {
        {"1 N 0 7 0 - - 0", 7, 0, "", "", 0},
        {"1 N 0 7 0 0::/a%0A b 4294967294", 7, 0, "0::/a\n", "b", 4294967294},
        {"1 N 0 7 0 - -", 7, 0, "", "", SAMPLE_UID_UNKNOWN},
        {"1 N 0 7 1794725358284932 /a/b python3", 7, 1794725358284932, "/a/b", "python3",
         SAMPLE_UID_UNKNOWN},
        {"1 N 0 7 0 0::/a.service//1000/b python3", 7, 0, "0::/a.service//1000/b", "python3",
         SAMPLE_UID_UNKNOWN},
        {"1 N 0 7 0 /a%20b two%20words%25", 7, 0, "/a b", "two words%", SAMPLE_UID_UNKNOWN},
        {"1 N 0 7 0 %2f%2F%41 %C3%A9%c3%a9", 7, 0, "//A", "\xc3\xa9\xc3\xa9", SAMPLE_UID_UNKNOWN},
        {"1 N 0 7 0 %01 %0A%7f%FF", 7, 0, "\x01", "\n\x7f\xff", SAMPLE_UID_UNKNOWN},
        {"1 N 0 7 0 -- -x", 7, 0, "--", "-x", SAMPLE_UID_UNKNOWN},
        {"1 N 0 2147483647 " TIME_MAX " \xff\" \\", INT32_MAX, 1ULL << 60, "\xff\"", "\\",
         SAMPLE_UID_UNKNOWN},
        {"1 N 0 0 0 %250A %2525", 0, 0, "%0A", "%25", SAMPLE_UID_UNKNOWN}, /* decoded once */
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct batch batch;
        const struct sample *sample = parse_line(&batch, cases[i].line);

        assert_int_equal(sample->kind, SAMPLE_PROCESS);
        assert_int_equal(sample->process.pid, cases[i].pid);
        assert_int_equal(sample->process.start_us, cases[i].start_us);
        assert_string_equal(sample->process.cgroup, cases[i].cgroup);
        assert_string_equal(sample->process.name, cases[i].name);
        assert_int_equal(sample->process.uid, cases[i].uid);
        batch_done(&batch);
    }
}

static void a_process_may_have_the_keys_of_its_program(void **state)
{
    static const struct {
        const char *line;
        uint32_t uid;
        struct program_key program;
    } cases[] = {
        {"1 N 0 7 0 - - 5 x=1 c=18446744073709551615", 5, {1, UINT64_MAX}},
        {"1 N 0 7 0 - - x=12 c=34", SAMPLE_UID_UNKNOWN, {12, 34}},
        {"1 N 0 7 0 - - 5 x=12", 5, {12, 0}},
        {"1 N 0 7 0 - - c=34", SAMPLE_UID_UNKNOWN, {0, 34}},
        {"1 N 0 7 0 - x=1 5", 5, {0, 0}}, /* a name */
        {"1 N 0 7 0 - - 5", 5, {0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct batch batch;
        const struct sample *sample = parse_line(&batch, cases[i].line);

        assert_int_equal(sample->process.uid, cases[i].uid);
        assert_int_equal(sample->process.program.exact, cases[i].program.exact);
        assert_int_equal(sample->process.program.coarse, cases[i].program.coarse);
        batch_done(&batch);
    }
}

static void a_device_is_described_by_keys_in_any_order(void **state)
{
    static const struct {
        const char *line;
        uint32_t gpu;
        const char *uuid, *name, *driver;
        uint64_t power_limit_mw, memory_bytes;
    } cases[] = {
        {"gpu 0 uuid=GPU-1 name=NVIDIA_H200 driver=580.159.04 power_limit_mw=700000 "
         "memory_bytes=150754820096",
         0, "GPU-1", "NVIDIA H200", "580.159.04", 700000, 150754820096},
        {"gpu 63 memory_bytes=18446744073709551615 power_limit_mw=100000000 uuid=x", 63, "x", "",
         "", 100000000, UINT64_MAX},
        {"gpu 1 uuid=a=b later=1 flag =", 1, "a=b", "", "", 0, 0},
        {"gpu 1 uuid=old uuid=new name=", 1, "new", "", "", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct batch batch;
        const struct sample *sample = parse_line(&batch, cases[i].line);

        assert_int_equal(sample->kind, SAMPLE_DEVICE);
        assert_int_equal(sample->gpu, cases[i].gpu);
        assert_string_equal(sample->device.uuid, cases[i].uuid);
        assert_string_equal(sample->device.name, cases[i].name);
        assert_string_equal(sample->device.driver, cases[i].driver);
        assert_int_equal(sample->device.power_limit_mw, cases[i].power_limit_mw);
        assert_int_equal(sample->device.memory_bytes, cases[i].memory_bytes);
        batch_done(&batch);
    }
}

static void kinds_that_are_not_known_are_skipped_whatever_they_hold(void **state)
{
    static const char *const lines[] = {
        "1 M 0 1 2 3", "1 g 0 1=nan 2=3.5", "1 e 0 x", "1 EE 0 1", "1 Z", "1 gpu 99", "1 ?  ",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct error err = {""};
        struct batch batch;

        batch_init(&batch);
        if (trace_parse_line(span_of(lines[i]), &batch, &err) != 0)
            fail_msg("'%s': %s", lines[i], err.text);
        assert_int_equal(batch.count, 0);
        assert_null(batch.arena.chunks);
        batch_done(&batch);
    }
}

static void a_bad_line_adds_nothing_and_its_error_names_the_fault(void **state)
{
    static const struct bad_line cases[] = {
        {"", "expected a time"},
        {" ", "expected a time"},
        {" 1 E 0 1", "expected a time"},
        {"x E 0 1", "got 'x'"},
        {"-1 E 0 1", "got '-1'"},
        {"1.5 E 0 1", "got '1.5'"},
        {TIME_ABOVE " E 0 1", "expected a time"},
        {"99999999999999999999999 E 0 1", "expected a time"},
        {"GPU 0 uuid=x", "got 'GPU'"},
        {"gpux 0 uuid=x", "got 'gpux'"},
        {"1", "kind of the record is missing"},
        {"1 ", "kind of the record is missing"},
        {"1  E 0 1", "kind of the record is missing"},
        /* E */
        {"1 E", "gpu index"},
        {"1 E x 1", "gpu index"},
        {"1 E 64 1", "at most 63, got '64'"},
        {"1 E -1 1", "gpu index"},
        {"1 E 0", "energy counter"},
        {"1 E 0 x", "energy counter"},
        {"1 E 0 -5", "energy counter"},
        {"1 E 0 1.5", "energy counter"},
        {"1 E 0 1125899906842625", "energy counter"},
        {"1 E 0 5 ", "more fields"}, /* a blank at the end */
        {"1 E 0 1 2", "more fields than a record of kind E has"},
        {"1 E 0  1", "energy counter"},
        {"1 E 0 1\r", "energy counter"},
        {"1 E 0 1\t", "energy counter"},
        /* P */
        {"1 P 0", "power"},
        {"1 P 0 1", "average power"},
        {"1 P 0 1 2", "instant power"},
        {"1 P 0 100000001 2 3", "at most 100000000, got '100000001'"},
        {"1 P 0 1 100000001 3", "average power"},
        {"1 P 0 1 2 100000001", "instant power"},
        {"1 P 0 1 2 3 4", "more fields"},
        /* U */
        {"1 U 0 101 0 0 0", "utilisation: expected a number of at most 100"},
        {"1 U 0 0 256 0 0", "memory utilisation"},
        {"1 U 0 0 0 1000001 0", "SM clock"},
        {"1 U 0 0 0 0 1001", "temperature"},
        {"1 U 0 0 0 0", "temperature"},
        {"1 U 0 0 0 0 -1", "temperature"},
        {"1 U 0 0 0 0 0 0", "more fields"},
        /* S */
        {"1 S 0 2147483648 1 0 0 0 0", "pid"},
        {"1 S 0 1 " TIME_ABOVE " 0 0 0 0", "sample time"},
        {"1 S 0 1 1 65536 0 0 0", "sm: expected a number of at most 65535"},
        {"1 S 0 1 1 0 65536 0 0", "mem"},
        {"1 S 0 1 1 0 0 65536 0", "enc"},
        {"1 S 0 1 1 0 0 0 65536", "dec"},
        {"1 S 0 1 1 0 0 0", "dec"},
        {"1 S 0 1 1 0 0 0 0 0", "more fields"},
        /* G */
        {"1 G 0 x", "GPM: expected ID=PERCENT or ID=nan"},
        {"1 G 0 1", "GPM: expected"},
        {"1 G 0 1=", "GPM: expected"},
        {"1 G 0 =1", "GPM: expected"},
        {"1 G 0 1=x", "GPM: expected"},
        {"1 G 0 1=1 2", "GPM: expected"},
        {"1 G 0 1=1  2=1", "GPM: expected"},
        {"1 G 0 1=-1", "GPM: expected"},
        {"1 G 0 1=.5", "GPM: expected"},
        {"1 G 0 1=1e2", "GPM: expected"},
        {"1 G 0 1=1.5.5", "GPM: expected"},
        {"1 G 0 1=1.-5", "GPM: expected"},
        {"1 G 0 1=inf", "GPM: expected"},
        {"1 G 0 1=NaN", "GPM: expected"},
        {"1 G 0 1=65536", "GPM: expected"},
        {"1 G 0 4294967296=1", "GPM: expected"},
        {"1 G 0 6=x", "GPM: expected"}, /* whether it is used or not */
        {"1 G 0 1=1 ", "more fields"},
        {"1 G 64 1=1", "gpu index"},
        /* R */
        {"1 R 0", "expected c, m or g"},
        {"1 R 0 x 0", "expected c, m or g, got 'x'"},
        {"1 R 0 cm 0", "expected c, m or g"},
        {"1 R 0 c", "list length"},
        {"1 R 0 c -1", "list length"},
        {"1 R 0 c 1", "1 entries do not fit"},
        {"1 R 0 c 2 1:0", "2 entries do not fit"},
        {"1 R 0 c 2 1:0 2", "2 entries do not fit"},
        {"1 R 0 c 2 1:0 2:", "2 entries do not fit"},
        {"1 R 0 c 0 1:0", "more fields"},
        {"1 R 0 c 1 1:0 2:0", "more fields"},
        {"1 R 0 c 1 1000", "list entry 1: expected pid:bytes"},
        {"1 R 0 c 1 :100", "list entry 1"},
        {"1 R 0 c 1 100:", "list entry 1"},
        {"1 R 0 c 1 1:x", "list entry 1"},
        {"1 R 0 c 1 1:2:3", "list entry 1"},
        {"1 R 0 c 2 100:1 x:200", "list entry 2"},
        {"1 R 0 c 1 2147483648:0", "list entry 1"},
        {"1 R 0 c 1 1:18446744073709551616", "list entry 1"},
        /* N */
        {"1 N 0", "pid"},
        {"1 N 0 2147483648 0 - -", "pid"},
        {"1 N 0 1 " TIME_ABOVE " - -", "start time"},
        {"1 N 0 1 0", "cgroup is missing"},
        {"1 N 0 1 0 /a", "process name is missing"},
        {"1 N 0 1 0  b", "cgroup is missing"},
        {"1 N 0 1 0 /a b c", "user id"},
        {"1 N 0 1 0 /a b 4294967295", "user id"},
        {"1 N 0 1 0 /a b 0 0", "more fields"},
        {"1 N 0 7 0 - - 5 x=0", "exact program key: 0 is no key; leave it out"},
        {"1 N 0 7 0 - - 5 x=1 c=0", "coarse program key: 0 is no key"},
        {"1 N 0 7 0 - - 5 x=", "exact program key: expected a number"},
        {"1 N 0 7 0 - - 5 x=-1", "exact program key: expected a number"},
        {"1 N 0 7 0 - - 5 x=0x1f", "exact program key: expected a number"},
        {"1 N 0 7 0 - - 5 x=18446744073709551616", "at most 18446744073709551615, got '1844"},
        {"1 N 0 7 0 - - 5 x=1 c=99999999999999999999", "coarse program key: expected a number"},
        {"1 N 0 7 0 - - 5 x=1 x=1", "more fields"},
        {"1 N 0 7 0 - - 5 x=1 c=1 c=1", "more fields"},
        {"1 N 0 7 0 - - 5 c=1 x=1", "more fields"},
        {"1 N 0 7 0 - - x=1 5", "more fields"},
        {"1 N 0 7 0 - - 5 y=1", "more fields"},
        {"1 N 0 1 0 % b", "cgroup: expected %XX"},
        {"1 N 0 1 0 %4 b", "cgroup: expected %XX"},
        {"1 N 0 1 0 /a%2", "cgroup: expected %XX"},
        {"1 N 0 1 0 /a b%", "process name: expected %XX"},
        {"1 N 0 1 0 /a b%4", "process name: expected %XX"},
        {"1 N 0 1 0 /a %gg", "process name: expected %XX"},
        {"1 N 0 1 0 /a %4g", "process name: expected %XX"},
        {"1 N 0 1 0 /a x%00y", "not 00"},
        /* gpu */
        {"gpu", "gpu index"},
        {"gpu 64 uuid=x", "gpu index"},
        {"gpu x uuid=x", "gpu index"},
        {"gpu 0", "uuid=... is missing"},
        {"gpu 0 uuid", "uuid=... is missing"},
        {"gpu 0 uuid=", "uuid=... is missing"},
        {"gpu 0 name=x", "uuid=... is missing"},
        {"gpu 0 uuid=x power_limit_mw=", "power_limit_mw: expected a number"},
        {"gpu 0 uuid=x power_limit_mw=700W", "power_limit_mw: expected a number"},
        {"gpu 0 uuid=x power_limit_mw=100000001", "at most 100000000, got"},
        {"gpu 0 uuid=x memory_bytes=-1", "memory_bytes: expected a number"},
        {"gpu 0 uuid=x memory_bytes=18446744073709551616", "memory_bytes: expected a number"},
    };

    (void)state;
    assert_bad_lines(cases, ARRAY_SIZE(cases));
}

static void a_nul_byte_is_refused_wherever_it_stands(void **state)
{
    static const char line[] = "1 N 0 7 0 /a name";

    (void)state;
    for (size_t at = 0; at < sizeof(line) - 1; at++) {
        struct error err = {""};
        char broken[sizeof(line)];
        struct batch batch;

        memcpy(broken, line, sizeof(line));
        broken[at] = '\0';
        batch_init(&batch);
        assert_int_equal(trace_parse_line((struct span){broken, sizeof(line) - 1}, &batch, &err),
                         -EBADMSG);
        assert_non_null(strstr(err.text, "NUL"));
        assert_int_equal(batch.count, 0);
        batch_done(&batch);
    }
}

static void a_line_ends_where_its_span_ends(void **state)
{
    static const char line[] = "1 E 0 12345";
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_int_equal(trace_parse_line((struct span){line, 8}, &batch, NULL), 1);
    assert_int_equal(batch.samples[0].counter_uj, 12000);
    batch_done(&batch);
}

static void a_length_that_the_line_cannot_hold_allocates_nothing(void **state)
{
    static const struct {
        const char *line, *why;
    } cases[] = {
        {"1 R 0 c 65536", "do not fit"},
        {"1 R 0 c 65536 1:0 2:0", "do not fit"},
        {"1 R 0 c 65537", "at most 65536"},
        {"1 R 0 c 4294967297 1:0", "at most 65536"},
        {"1 R 0 c 18446744073709551615 1:0", "at most 65536"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct error err = {""};
        struct batch batch;

        batch_init(&batch);
        assert_int_equal(trace_parse_line(span_of(cases[i].line), &batch, &err), -EBADMSG);
        assert_non_null(strstr(err.text, cases[i].why));
        assert_null(batch.arena.chunks);
        assert_int_equal(batch.arena.used_bytes, 0);
        batch_done(&batch);
    }
}

/* `count` entries of the least length, "0:0" each, under a length of `stated`. */
static int parse_long_list(size_t stated, size_t count, struct batch *batch, struct error *err)
{
    struct buffer line;
    int r;

    buffer_init(&line, 1 << 20);
    buffer_str(&line, "1 R 0 c ");
    buffer_u64(&line, stated);
    for (size_t i = 0; i < count; i++)
        buffer_str(&line, " 0:0");
    assert_false(buffer_failed(&line));
    r = trace_parse_line((struct span){line.data, line.len}, batch, err);
    buffer_done(&line);
    return r;
}

static void the_longest_list_is_read_and_one_entry_more_is_refused(void **state)
{
    struct error err = {""};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_int_equal(parse_long_list(65536, 65536, &batch, &err), 1);
    assert_int_equal(batch.samples[0].list.count, 65536);
    batch_reset(&batch);
    assert_int_equal(parse_long_list(65537, 65537, &batch, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "at most 65536"));
    assert_int_equal(parse_long_list(65535, 65536, &batch, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "more fields"));
    assert_int_equal(batch.count, 0);
    batch_done(&batch);
}

static void a_batch_without_memory_or_room_is_not_the_lines_fault(void **state)
{
    const struct sample sample = {.kind = SAMPLE_POWER};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_non_null(arena_alloc(&batch.arena, BATCH_ARENA_CAP_BYTES));
    assert_int_equal(trace_parse_line(span_of("1 R 0 c 1 1:0"), &batch, NULL), -ENOMEM);
    assert_int_equal(trace_parse_line(span_of("1 N 0 1 0 a b"), &batch, NULL), -ENOMEM);
    assert_int_equal(trace_parse_line(span_of("gpu 0 uuid=x"), &batch, NULL), -ENOMEM);
    assert_int_equal(batch.count, 0);
    assert_int_equal(trace_parse_line(span_of("1 E 0 1"), &batch, NULL), 1);
    while (batch.count < BATCH_SAMPLES_MAX)
        if (batch_add(&batch, &sample) != 0)
            fail();
    assert_int_equal(trace_parse_line(span_of("1 E 0 1"), &batch, NULL), -EFBIG);
    assert_int_equal(trace_parse_line(span_of("1 Z 0 1"), &batch, NULL), 0);
    batch_done(&batch);
}

static void a_long_word_is_quoted_in_part(void **state)
{
    char line[4096];
    struct error err = {""};
    struct batch batch;

    (void)state;
    memset(line, 'x', sizeof(line) - 1);
    line[sizeof(line) - 1] = '\0';
    batch_init(&batch);
    assert_int_equal(trace_parse_line(span_of(line), &batch, &err), -EBADMSG);
    assert_true(strlen(err.text) < 200);
    assert_non_null(strstr(err.text, "xxxx'"));
    batch_done(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_is_read_in_millijoules),
        cmocka_unit_test(power_is_the_first_of_three_numbers),
        cmocka_unit_test(utilisation_has_four_fields_with_their_limits),
        cmocka_unit_test(a_label_keeps_even_the_garbage_that_drivers_answer),
        cmocka_unit_test(a_gpm_record_holds_the_metrics_that_are_used_in_thousandths_of_a_percent),
        cmocka_unit_test(a_list_holds_each_entry_in_order),
        cmocka_unit_test(a_process_is_named_with_percent_codes),
        cmocka_unit_test(a_process_may_have_the_keys_of_its_program),
        cmocka_unit_test(a_device_is_described_by_keys_in_any_order),
        cmocka_unit_test(kinds_that_are_not_known_are_skipped_whatever_they_hold),
        cmocka_unit_test(a_bad_line_adds_nothing_and_its_error_names_the_fault),
        cmocka_unit_test(a_nul_byte_is_refused_wherever_it_stands),
        cmocka_unit_test(a_line_ends_where_its_span_ends),
        cmocka_unit_test(a_length_that_the_line_cannot_hold_allocates_nothing),
        cmocka_unit_test(the_longest_list_is_read_and_one_entry_more_is_refused),
        cmocka_unit_test(a_batch_without_memory_or_room_is_not_the_lines_fault),
        cmocka_unit_test(a_long_word_is_quoted_in_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
