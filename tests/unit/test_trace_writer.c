/* sources/trace/record: every line that it writes is read back as the sample that it was. */
#include "unit.h"

#include <string.h>

#include "core/macros.h"
#include "sources/trace.h"

static const struct sample_listed entries[] = {{7, 1 << 20}, {8, SAMPLE_MEMORY_UNKNOWN}};

static const struct sample samples[] = {
    {.kind = SAMPLE_DEVICE,
     .gpu = 3,
     .device = {.uuid = "GPU-3", .name = "NVIDIA H200", .driver = "580", .power_limit_mw = 700000}},
    {.kind = SAMPLE_ENERGY, .gpu = 3, .t_us = 10, .counter_uj = 1234000},
    {.kind = SAMPLE_INTEGRAL, .gpu = 3, .t_us = 11, .counter_uj = 1234567},
    {.kind = SAMPLE_POWER, .gpu = 3, .t_us = 12, .power_mw = 98765},
    {.kind = SAMPLE_UTILISATION, .gpu = 3, .t_us = 13, .utilisation = {99, 50, 1980, 40}},
    {.kind = SAMPLE_LABEL, .gpu = 3, .t_us = 14, .label = {7, 9, 99, 20, 3, 4, true}},
    {.kind = SAMPLE_LABEL, .gpu = 3, .t_us = 14, .label = {7, 9, 99, 20, 3, 4, false}},
    {.kind = SAMPLE_LIST, .gpu = 3, .t_us = 15, .list = {SAMPLE_LIST_MPS, 2, entries}},
    {.kind = SAMPLE_LIST, .gpu = 3, .t_us = 15, .list = {SAMPLE_LIST_GRAPHICS, 0, entries}},
    {.kind = SAMPLE_PROCESS,
     .gpu = 3,
     .t_us = 16,
     .process = {7, 1000, 5, "a b%\n\xff", "/x y", {0}}},
    {.kind = SAMPLE_PROCESS,
     .gpu = 3,
     .t_us = 16,
     .process = {8, SAMPLE_UID_UNKNOWN, 0, "", "", {0}}},
    {.kind = SAMPLE_PROCESS, .gpu = 3, .t_us = 16, .process = {9, 0, 0, "-", "%2D", {0}}},
    {.kind = SAMPLE_PROCESS,
     .gpu = 3,
     .t_us = 16,
     .process = {9, 0, 0, "python3", "/", {UINT64_MAX, 1}}},
    {.kind = SAMPLE_PROCESS,
     .gpu = 3,
     .t_us = 16,
     .process = {9, SAMPLE_UID_UNKNOWN, 0, "python3", "/", {0, 7}}},
    {.kind = SAMPLE_GPM,
     .gpu = 3,
     .t_us = 17,
     .gpm = {0x3ff, {99609, 1, 10, 100, 1000, 10000, 100000, 12345, 0, 50}}},
    {.kind = SAMPLE_GPM, .gpu = 3, .t_us = 18, .gpm = {1 << 1 | 1 << 9, {[1] = 7, [9] = 8000}}},
    {.kind = SAMPLE_GPM, .gpu = 3, .t_us = 19},
    {.kind = SAMPLE_LOST, .gpu = 3, .t_us = 20},
};

static void assert_same(const struct sample *a, const struct sample *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->gpu, b->gpu);
    assert_int_equal(a->t_us, b->t_us);
    switch (a->kind) {
    case SAMPLE_DEVICE:
        assert_string_equal(a->device.uuid, b->device.uuid);
        assert_string_equal(a->device.name, b->device.name);
        assert_string_equal(a->device.driver, b->device.driver);
        assert_int_equal(a->device.power_limit_mw, b->device.power_limit_mw);
        break;
    case SAMPLE_LIST:
        assert_int_equal(a->list.kind, b->list.kind);
        assert_int_equal(a->list.count, b->list.count);
        for (size_t i = 0; i < a->list.count; i++) {
            assert_int_equal(a->list.entries[i].pid, b->list.entries[i].pid);
            assert_int_equal(a->list.entries[i].memory_bytes, b->list.entries[i].memory_bytes);
        }
        break;
    case SAMPLE_PROCESS:
        assert_int_equal(a->process.pid, b->process.pid);
        assert_int_equal(a->process.uid, b->process.uid);
        assert_int_equal(a->process.start_us, b->process.start_us);
        assert_string_equal(a->process.name, b->process.name);
        assert_string_equal(a->process.cgroup, b->process.cgroup);
        assert_int_equal(a->process.program.exact, b->process.program.exact);
        assert_int_equal(a->process.program.coarse, b->process.program.coarse);
        break;
    case SAMPLE_LABEL:
        assert_int_equal(a->label.pid, b->label.pid);
        assert_int_equal(a->label.at_us, b->label.at_us);
        assert_int_equal(a->label.sm_percent, b->label.sm_percent);
        assert_int_equal(a->label.decoder_percent, b->label.decoder_percent);
        assert_int_equal(a->label.in_proc, b->label.in_proc);
        break;
    case SAMPLE_UTILISATION:
        assert_memory_equal(&a->utilisation, &b->utilisation, sizeof(a->utilisation));
        break;
    case SAMPLE_GPM:
        assert_int_equal(a->gpm.valid, b->gpm.valid);
        assert_memory_equal(a->gpm.millipercent, b->gpm.millipercent, sizeof(a->gpm.millipercent));
        break;
    case SAMPLE_LOST:
        break;
    default:
        assert_int_equal(a->counter_uj, b->counter_uj); /* and power_mw: the same word */
    }
}

static void every_sample_comes_back_as_it_was(void **state)
{
    struct trace_writer writer = {0};
    struct buffer lines;
    struct batch batch;
    struct span rest;
    struct error err = {""};

    (void)state;
    buffer_init(&lines, 1 << 20);
    batch_init(&batch);
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
        trace_write_sample(&writer, &samples[i], &lines);
    rest = (struct span){lines.data, lines.len};
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        if (trace_parse_line(span_cut(&rest, '\n'), &batch, &err) != 1)
            fail_msg("sample %zu: %s", i, err.text);
        assert_same(&batch.samples[i], &samples[i]);
    }
    assert_int_equal(rest.len, 0);
    batch_done(&batch);
    buffer_done(&lines);
}

static void a_wall_clock_that_is_set_back_does_not_spoil_the_order(void **state)
{
    const struct sample early = {.kind = SAMPLE_ENERGY, .gpu = 3, .t_us = 5, .counter_uj = 9000};
    struct trace_writer writer = {0};
    struct buffer lines;

    (void)state;
    buffer_init(&lines, 1 << 20);
    trace_write_sample(&writer, &samples[0], &lines);
    trace_write_sample(&writer, &samples[1], &lines);
    lines.len = 0;
    trace_write_sample(&writer, &early, &lines);
    assert_int_equal(lines.len, strlen("10 E 3 9\n"));
    assert_memory_equal(lines.data, "10 E 3 9\n", lines.len);
    buffer_done(&lines);
}

static void what_comes_before_its_device_and_a_second_description_are_left_out(void **state)
{
    struct trace_writer writer = {0};
    struct buffer lines;

    (void)state;
    buffer_init(&lines, 1 << 20);
    trace_write_sample(&writer, &samples[1], &lines);
    assert_int_equal(lines.len, 0);
    trace_write_sample(&writer, &samples[0], &lines);
    assert_true(lines.len > 0);
    lines.len = 0;
    trace_write_sample(&writer, &samples[0], &lines);
    assert_int_equal(lines.len, 0);
    buffer_done(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_comes_back_as_it_was),
        cmocka_unit_test(a_wall_clock_that_is_set_back_does_not_spoil_the_order),
        cmocka_unit_test(what_comes_before_its_device_and_a_second_description_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
