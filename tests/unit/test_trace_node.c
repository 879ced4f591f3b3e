/* sources/trace/record, with the writer and the reader around it: the node's own records come
 * back as they were, and reports of usage as a whole or not at all. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/buffer.h"
#include "core/fs.h"
#include "core/macros.h"
#include "sources/source.h"
#include "sources/trace.h"

#define HEADER TRACE_HEADER "\n"
#define CONTAINER                                                                                  \
    "0123456789abcdef0123456789abcdef"                                                             \
    "0123456789abcdef0123456789abcdef"
#define POD "12345678-1234-1234-1234-123456789abc"

enum { CAP_BYTES = 64 << 20 };

struct trace {
    int fd;
    struct trace_reader *reader;
    struct batch batch;
    struct error err;
};

static struct trace open_trace(const char *text, size_t len)
{
    struct trace trace = {.fd = memfd_create("trace", MFD_CLOEXEC)};
    char path[32];

    assert_true(trace.fd >= 0);
    assert_int_equal(fs_write_all(trace.fd, text, len), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", trace.fd);
    assert_int_equal(trace_reader_open(path, &trace.reader, &trace.err), 0);
    batch_init(&trace.batch);
    return trace;
}

static int read_all(struct trace *trace)
{
    int r;

    while ((r = trace_reader_next(trace->reader, &trace->batch, &trace->err)) > 0)
        ;
    return r;
}

static void close_trace(struct trace *trace)
{
    trace_reader_close(trace->reader);
    batch_done(&trace->batch);
    close(trace->fd);
}

#define WORKLOAD(k, i, container, pod, cpu, memory)                                                \
    {                                                                                              \
        .kind = (k), .id = (i), .container_id = (container), .pod_uid = (pod), .cpu_us = (cpu),    \
        .memory_bytes = (memory)                                                                   \
    }

static const struct sample_workload workloads[] = {
    WORKLOAD(WORKLOAD_POD, CONTAINER, CONTAINER, POD, 5, 6),
    WORKLOAD(WORKLOAD_SLURM, "31", "", "", UINT64_MAX, UINT64_MAX),
    WORKLOAD(WORKLOAD_UNIT, "a b%\n\x7f\xff.service", "", "", 0, 0),
    WORKLOAD(WORKLOAD_USER, "-", "", "", 1, 0),
    WORKLOAD(WORKLOAD_SYSTEM, "", "", "", 1, 0),
    WORKLOAD(WORKLOAD_OTHER, "other", "", "", 1, 0),
    {.kind = WORKLOAD_LSF,
     .id = "7[2]",
     .container_id = "",
     .pod_uid = "",
     .has_traffic = true,
     .traffic_bytes = UINT64_MAX},
};

#define READING(t, s, k, i, uj, lost, is_integrated)                                               \
    {                                                                                              \
        .kind = SAMPLE_METER, .t_us = (t), .meter = {                                              \
            .source = (s),                                                                         \
            .kind = (k),                                                                           \
            .id = (i),                                                                             \
            .counter_uj = (uj),                                                                    \
            .breaks = (lost),                                                                      \
            .integrated = (is_integrated)                                                          \
        }                                                                                          \
    }

#define LONG_32  "0123456789abcdef0123456789abcdef"
#define LONG_128 LONG_32 LONG_32 LONG_32 LONG_32
#define LONG_512 LONG_128 LONG_128 LONG_128 LONG_128

static const struct sample_names pod_names = {
    WORKLOAD_POD,
    CONTAINER,
    {"train", "ml", "train", "worker", "trainer:1", "", "", "", "", "", ""},
};
static const struct sample_names job_names = {
    WORKLOAD_SLURM,
    "31",
    {"31", "", "", "", "", "alice", "-", "31", "a b=%\n\x7f\xff", LONG_512, "account,job_name"},
};
static const struct sample_names no_names = {
    WORKLOAD_USER, "a b", {"", "", "", "", "", "", "", "", "", "", ""}};

static const struct sample samples[] = {
    READING(9, "rapl", METER_PACKAGE, "0-die-1", 123456789, 7, false),
    READING(8, "cray", METER_NODE, "cray", 0, 0, false),
    READING(9, "hwmon", METER_MODULE, "a b", 1, UINT32_MAX, true),
    {.kind = SAMPLE_NODE_POWER, .t_us = 9, .node_power = {"ipmi", 350000}},
    {.kind = SAMPLE_NODE_POWER, .t_us = 2, .node_power = {"cray", 100000000}},
    {.kind = SAMPLE_USAGE, .t_us = 10, .usage = {.is_first = true, .memory_bytes = 5}},
    {.kind = SAMPLE_USAGE,
     .t_us = 10,
     .usage = {.busy_us = 1,
               .capacity_us = 2,
               .memory_used_bytes = 3,
               .memory_bytes = UINT64_MAX,
               .has_traffic = true,
               .other_traffic_bytes = 77,
               .count = ARRAY_SIZE(workloads),
               .workloads = workloads}},
    READING(11, "rapl", METER_DRAM, "", 5, 0, false),
    {.kind = SAMPLE_METER,
     .t_us = 12,
     .meter = {.source = "model",
               .kind = METER_PACKAGE,
               .id = "model",
               .counter_uj = 9,
               .integrated = true,
               .modelled = true,
               .idle_uj = 4}},
    {.kind = SAMPLE_NAMES, .t_us = 13, .names = &pod_names},
    {.kind = SAMPLE_NAMES, .t_us = 3, .names = &job_names},
    {.kind = SAMPLE_NAMES, .t_us = 14, .names = &no_names},
    {.kind = SAMPLE_USAGE, .t_us = 99, .usage = {.is_first = true, .is_blind = true}},
    {.kind = SAMPLE_USAGE, .t_us = 99, .usage = {.is_blind = true, .busy_us = 3}},
};

static void assert_same_usage(const struct sample_usage *a, const struct sample_usage *b)
{
    assert_int_equal(a->is_first, b->is_first);
    assert_int_equal(a->is_blind, b->is_blind);
    assert_int_equal(a->busy_us, b->busy_us);
    assert_int_equal(a->capacity_us, b->capacity_us);
    assert_int_equal(a->memory_used_bytes, b->memory_used_bytes);
    assert_int_equal(a->memory_bytes, b->memory_bytes);
    assert_int_equal(a->has_traffic, b->has_traffic);
    assert_int_equal(a->other_traffic_bytes, b->other_traffic_bytes);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->workloads[i].kind, b->workloads[i].kind);
        assert_string_equal(a->workloads[i].id, b->workloads[i].id);
        assert_string_equal(a->workloads[i].container_id, b->workloads[i].container_id);
        assert_string_equal(a->workloads[i].pod_uid, b->workloads[i].pod_uid);
        assert_int_equal(a->workloads[i].cpu_us, b->workloads[i].cpu_us);
        assert_int_equal(a->workloads[i].memory_bytes, b->workloads[i].memory_bytes);
        assert_int_equal(a->workloads[i].has_traffic, b->workloads[i].has_traffic);
        assert_int_equal(a->workloads[i].traffic_bytes, b->workloads[i].traffic_bytes);
    }
}

static void assert_same(const struct sample *a, const struct sample *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->gpu, 0);
    assert_int_equal(a->t_us, b->t_us);
    if (a->kind == SAMPLE_METER) {
        assert_string_equal(a->meter.source, b->meter.source);
        assert_int_equal(a->meter.kind, b->meter.kind);
        assert_string_equal(a->meter.id, b->meter.id);
        assert_int_equal(a->meter.counter_uj, b->meter.counter_uj);
        assert_int_equal(a->meter.breaks, b->meter.breaks);
        assert_int_equal(a->meter.integrated, b->meter.integrated);
        assert_int_equal(a->meter.modelled, b->meter.modelled);
        assert_int_equal(a->meter.idle_uj, b->meter.idle_uj);
    } else if (a->kind == SAMPLE_NODE_POWER) {
        assert_string_equal(a->node_power.source, b->node_power.source);
        assert_int_equal(a->node_power.power_mw, b->node_power.power_mw);
    } else if (a->kind == SAMPLE_NAMES) {
        assert_int_equal(a->names->kind, b->names->kind);
        assert_string_equal(a->names->id, b->names->id);
        for (int i = 0; i < WORKLOAD_TEXTS; i++)
            assert_string_equal(a->names->texts[i], b->names->texts[i]);
    } else {
        assert_same_usage(&a->usage, &b->usage);
    }
}

static void every_sample_comes_back_as_it_was(void **state)
{
    struct trace_writer writer = {0};
    struct buffer text;
    struct trace trace;

    (void)state;
    buffer_init(&text, CAP_BYTES);
    trace_write_header(&text);
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
        trace_write_sample(&writer, &samples[i], &text, NULL);
    trace = open_trace(text.data, text.len);
    if (read_all(&trace) != 0)
        fail_msg("%s", trace.err.text);
    assert_int_equal(trace.batch.count, ARRAY_SIZE(samples));
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
        assert_same(&trace.batch.samples[i], &samples[i]);
    close_trace(&trace);
    buffer_done(&text);
}

/* Nothing but what the books need: a node without meters of its own has none for workloads. */
static void workloads_are_written_only_where_a_meter_is_divided_among_them(void **state)
{
    struct trace_writer writer = {0};
    struct sample written;
    struct buffer text;

    (void)state;
    buffer_init(&text, CAP_BYTES);
    assert_true(samples[6].usage.count > 0);
    assert_true(trace_write_sample(&writer, &samples[6], &text, &written));
    assert_int_equal(written.usage.count, 0);
    buffer_char(&text, '\0');
    assert_string_equal(text.data, "10 C 1 2 3 18446744073709551615 0 t=77\n");
    buffer_done(&text);
}

static void a_wall_clock_that_is_set_back_does_not_spoil_the_order_of_reports(void **state)
{
    struct sample report = samples[6];
    struct trace_writer writer = {0};
    struct buffer text;
    struct trace trace;

    (void)state;
    buffer_init(&text, CAP_BYTES);
    trace_write_header(&text);
    trace_write_sample(&writer, &samples[0], &text, NULL);
    trace_write_sample(&writer, &report, &text, NULL);
    report.t_us = 1;
    trace_write_sample(&writer, &report, &text, NULL);
    trace = open_trace(text.data, text.len);
    assert_int_equal(read_all(&trace), 0);
    assert_int_equal(trace.batch.samples[2].t_us, 10);
    assert_int_equal(trace.batch.samples[2].usage.count, ARRAY_SIZE(workloads));
    close_trace(&trace);
    buffer_done(&text);
}

/* So that traces hold the meters of a source that is new. */
static void every_source_of_a_meter_is_known(void **state)
{
    (void)state;
    for (const struct source_ops *const *source = source_table; *source; source++) {
        struct error err = {""};
        struct batch batch;
        char line[64];

        if ((*source)->is_no_meter)
            continue;
        batch_init(&batch);
        snprintf(line, sizeof(line), "1 J %s node x 5 0", (*source)->name);
        if (trace_parse_line(span_of(line), &batch, &err) != 1)
            fail_msg("'%s' is not known", (*source)->name);
        assert_string_equal(batch.samples[0].meter.source, (*source)->name);
        batch_done(&batch);
    }
}

static void unknown_meters_sources_and_owners_are_skipped_whatever_they_hold(void **state)
{
    static const char *const lines[] = {
        "1 J turbine package 0 5 0",
        "1 J cgroups package 0 5 0",
        "1 J rapl flux 0 5 0",
        "1 J rapl gpu 0 5 0",
        "1 J turbine flux x y z",
        "1 J",
        "1 J rapl",
        "1 W turbine none",
        "1 W",
        "1 O king 1 name=x",
        "1 O process 1 name=x",
        "1 O system root name=x",
        "1 O retired 1 name=x",
        "1 O",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct error err = {""};
        struct batch batch;

        batch_init(&batch);
        assert_int_equal(trace_parse_line(span_of(lines[i]), &batch, &err), 0);
        assert_int_equal(batch.count, 0);
        batch_done(&batch);
    }
}

static void unknown_texts_of_names_are_ignored(void **state)
{
    static const char line[] = "1 O user 1000 colour=red name=ann shoe=%zz bare name=bob";
    struct error err = {""};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_int_equal(trace_parse_line(span_of(line), &batch, &err), 1);
    assert_string_equal(batch.samples[0].names->texts[WORKLOAD_TEXT_NAME], "bob");
    assert_string_equal(batch.samples[0].names->texts[WORKLOAD_TEXT_USER], "");
    batch_done(&batch);
}

#define METER "1 J rapl package 0 0 0\n"

static void what_is_wrong_is_named_with_its_line_and_nothing_of_it_is_kept(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *why;
    } cases[] = {
        {"1 J rapl package\n", 2, "meter is missing"},
        {"1 J rapl package 0\n", 2, "energy: expected a number"},
        {"1 J rapl package 0 -1 0\n", 2, "energy: expected a number"},
        {"1 J rapl package 0 1125899906842624001 0\n", 2, "energy: expected a number of at most"},
        {"1 J rapl package 0 1\n", 2, "breaks: expected"},
        {"1 J rapl package 0 1 4294967296\n", 2, "breaks: expected"},
        {"1 J rapl package 0 1 0 x\n", 2, "more fields"},
        {"1 J rapl package 0 1 0 i i\n", 2, "more fields"},
        {"1 J rapl package 0 1 0 \n", 2, "more fields"},
        {"1 J rapl package %00 1 0\n", 2, "meter: expected %XX"},
        {"1 W ipmi\n", 2, "power: expected"},
        {"1 W ipmi 100000001\n", 2, "power: expected"},
        {"1 W ipmi 1 2\n", 2, "more fields"},
        {"1 C 1 2 3 4\n", 2, "number of workloads"},
        {"1 C 1 2 3 4 65537\n", 2, "number of workloads: expected a number of at most 65536"},
        {"1 C 1 2 3 4 0 x\n", 2, "more fields"},
        {"1 D user 1 - - 0 0\n", 2, "a workload without a report"},
        {METER "1 C 1 2 3 4 1\n", 4, "cut short"},
        {METER "1 C 1 2 3 4 2\n1 D user 1 - - 0 0\n", 5, "cut short"},
        {METER "1 C 1 2 3 4 2\n1 D user 1 - - 0 0\n" METER, 5, "expected the next workload"},
        {METER "1 C 1 2 3 4 1\n2 D user 1 - - 0 0\n", 4, "expected the next workload"},
        {METER "1 C 1 2 3 4 1\n1 D\n", 4, "expected the next workload"},
        {METER "1 C 1 2 3 4 1\n\n", 4, "expected the next workload"},
        {METER "1 C 1 2 3 4 1\n1 D king 1 - - 0 0\n", 4, "expected a kind of workload"},
        {METER "1 C 1 2 3 4 1\n1 D retired 1 - - 0 0\n", 4, "expected a kind of workload"},
        {METER "1 C 1 2 3 4 1\n1 D retired 1 - - 0 0\n", 4, "expected a kind of workload"},
        {METER "1 C 1 2 3 4 1\n1 D process 1 - - 0 0\n", 4, "expected a kind of workload"},
        {METER "1 C 1 2 3 4 1\n1 D user 1 - - 0\n", 4, "memory: expected"},
        {METER "1 C 1 2 3 4 1\n1 D user 1 - - x 0\n", 4, "CPU time: expected"},
        {METER "1 C 1 2 3 4 1\n1 D user 1 - - 0 0 0\n", 4, "more fields"},
        {METER "1 C 1 2 3 4 1\n1 D pod x " CONTAINER "0 - 0 0\n", 4, "container: longer than 64"},
        {METER "1 C 1 2 3 4 1\n1 D pod x - " POD POD POD POD " 0 0\n", 4, "pod: longer than 127"},
        {METER "1 C 1 2 3 4 0\n1 D user 1 - - 0 0\n", 4, "a workload without a report"},
        {METER "2 C 1 2 3 4 0\n1 C 1 2 3 4 0\n", 4, "out of order"},
        {"1 O user\n", 2, "id is missing"},
        {"1 O user 1 name=\n", 2, "name is missing"},
        {"1 O user 1 name=%00\n", 2, "name: expected %XX"},
        {"1 O user 1 name=a \n", 2, "more fields"},
        {"1 O user 1 job_name=" LONG_512 "x\n", 2, "job_name: longer than 512 bytes"},
        {"1 O unit " LONG_512 " name=x\n", 2, "id: longer than 511 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct buffer text;
        struct trace trace;
        char where[32];

        buffer_init(&text, CAP_BYTES);
        buffer_str(&text, HEADER);
        buffer_str(&text, cases[i].text);
        trace = open_trace(text.data, text.len);
        snprintf(where, sizeof(where), ", line %u: ", cases[i].line);
        if (read_all(&trace) != -EBADMSG || !strstr(trace.err.text, where) ||
            !strstr(trace.err.text, cases[i].why))
            fail_msg("expected%s%s, got: %s\n%s", where, cases[i].why, trace.err.text,
                     cases[i].text);
        for (size_t s = 0; s < trace.batch.count; s++)
            if (trace.batch.samples[s].kind == SAMPLE_USAGE)
                assert_int_equal(trace.batch.samples[s].usage.count, 0);
        close_trace(&trace);
        buffer_done(&text);
    }
}

static void an_id_is_as_long_as_the_books_can_hold_and_no_longer(void **state)
{
    (void)state;
    for (size_t len = WORKLOAD_ID_BYTES - 1; len <= WORKLOAD_ID_BYTES; len++) {
        char id[WORKLOAD_ID_BYTES + 1] = "";
        const struct sample_workload workload = WORKLOAD(WORKLOAD_UNIT, id, "", "", 1, 1);
        struct sample report = samples[6];
        struct trace_writer writer = {.has_meter = true};
        struct buffer text;
        struct trace trace;

        memset(id, '%', len); /* three bytes each in the file */
        report.usage.workloads = &workload;
        report.usage.count = 1;
        buffer_init(&text, CAP_BYTES);
        trace_write_header(&text);
        trace_write_sample(&writer, &report, &text, NULL);
        trace = open_trace(text.data, text.len);
        assert_int_equal(read_all(&trace), len < WORKLOAD_ID_BYTES ? 0 : -EBADMSG);
        if (len < WORKLOAD_ID_BYTES)
            assert_same(&trace.batch.samples[0], &report);
        close_trace(&trace);
        buffer_done(&text);
    }
}

/* It is larger than the reader's buffer, and is put back before it is read. */
static void a_report_of_many_workloads_comes_when_it_is_due(void **state)
{
    enum { MANY = 20000 };
    struct trace_writer writer = {.has_meter = true};
    struct buffer text;
    struct trace trace;

    (void)state;
    buffer_init(&text, CAP_BYTES);
    buffer_str(&text, HEADER);
    trace_write_sample(&writer, &samples[0], &text, NULL);
    buffer_str(&text, "50 C 1 2 3 4 20000\n");
    for (unsigned i = 0; i < MANY; i++) {
        char line[64];

        snprintf(line, sizeof(line), "50 D user %u - - %u 7\n", i, i);
        buffer_str(&text, line);
    }
    trace_write_sample(
        &writer, &(struct sample){.kind = SAMPLE_NODE_POWER, .t_us = 60, .node_power = {"ipmi", 1}},
        &text, NULL);
    trace = open_trace(text.data, text.len);
    assert_int_equal(trace_reader_next(trace.reader, &trace.batch, &trace.err), 1);
    for (int again = 0; again < 3; again++)
        assert_int_equal(trace_reader_next_before(trace.reader, 50, &trace.batch, &trace.err),
                         -EAGAIN);
    assert_int_equal(trace_reader_next_before(trace.reader, 51, &trace.batch, &trace.err), 1);
    assert_int_equal(trace.batch.count, 2);
    assert_int_equal(trace.batch.samples[1].usage.count, MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(trace.batch.samples[1].usage.workloads[i].cpu_us, i);
    assert_int_equal(read_all(&trace), 0);
    assert_int_equal(trace.batch.count, 3);
    close_trace(&trace);
    buffer_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_comes_back_as_it_was),
        cmocka_unit_test(workloads_are_written_only_where_a_meter_is_divided_among_them),
        cmocka_unit_test(a_wall_clock_that_is_set_back_does_not_spoil_the_order_of_reports),
        cmocka_unit_test(every_source_of_a_meter_is_known),
        cmocka_unit_test(unknown_meters_sources_and_owners_are_skipped_whatever_they_hold),
        cmocka_unit_test(unknown_texts_of_names_are_ignored),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line_and_nothing_of_it_is_kept),
        cmocka_unit_test(an_id_is_as_long_as_the_books_can_hold_and_no_longer),
        cmocka_unit_test(a_report_of_many_workloads_comes_when_it_is_due),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
