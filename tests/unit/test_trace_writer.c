/* sources/trace/record: every line that it writes is read back as the sample that it was. */
#include "unit.h"

#include <string.h>

#include "core/macros.h"
#include "sources/trace.h"

#define NONE SAMPLE_NO_INSTANCE

static const struct sample_listed entries[] = {
    {7, 1 << 20, NONE, NONE},
    {8, SAMPLE_MEMORY_UNKNOWN, NONE, NONE},
    {9, 0, 0, 0},
    {9, 1, 13, NONE},
};

static const struct sample_instance instances[] = {
    {0,
     0,
     0,
     "MIG-1f6cd21d-2a06-5dab-90de-9f31ec7a9d3b",
     "7g.80gb",
     7,
     7,
     132,
     85899345920,
     {true, 19, 2, 1}},
    {13, 7, 63, "MIG-GPU-3/13/7", "1c.3g.40gb+me", 3, 1, 16, UINT64_MAX, {0}},
    {NONE - 1, NONE - 1, UINT32_MAX, "", ": -%", 255, 255, 65535, 0, {0}},
    {1, 1, 1, "a:b c", "-", 0, 0, 0, 0, {0}},
};

static const struct sample_vgpu vgpus[] = {
    {3251634178, "9f31ec7a-90de-5dab", true, "c2a06dab-1f6c", 8 << 20},
    {0, "4: -", false, "", SAMPLE_MEMORY_UNKNOWN},
};

static const struct sample_busy_process busy_processes[] = {{7, 0}, {INT32_MAX, 1ULL << 50}};

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
    {.kind = SAMPLE_LIST, .gpu = 3, .t_us = 15, .list = {SAMPLE_LIST_MPS, 4, entries}},
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
     .gpm = {0x3ff, {99609, 1, 10, 100, 1000, 10000, 100000, 12345, 0, 50}, NONE}},
    {.kind = SAMPLE_GPM, .gpu = 3, .t_us = 18, .gpm = {1 << 1 | 1 << 9, {[1] = 7, [9] = 8000}, 0}},
    {.kind = SAMPLE_GPM, .gpu = 3, .t_us = 19, .gpm.instance = NONE - 1},
    {.kind = SAMPLE_LAYOUT, .gpu = 3, .t_us = 19, .layout = {true, 7, 132, 4, instances}},
    {.kind = SAMPLE_LAYOUT, .gpu = 3, .t_us = 19, .layout = {true, 255, 65535, 0, instances}},
    {.kind = SAMPLE_LAYOUT, .gpu = 3, .t_us = 19, .layout = {false, 0, 0, 0, instances}},
    {.kind = SAMPLE_GAUGE,
     .gpu = 3,
     .t_us = 19,
     .gauge = {GPU_GAUGE_MEMORY_TOTAL_BYTES, UINT64_MAX, NONE - 1}},
    {.kind = SAMPLE_GAUGE, .gpu = 3, .t_us = 19, .gauge = {GPU_GAUGE_MEMORY_RESERVED_BYTES, 1, 0}},
    {.kind = SAMPLE_GAUGE, .gpu = 3, .t_us = 19, .gauge = {GPU_GAUGE_MEMORY_USED_BYTES, 2, 0}},
    {.kind = SAMPLE_GAUGE, .gpu = 3, .t_us = 19, .gauge = {GPU_GAUGE_MEMORY_FREE_BYTES, 0, 1}},
    {.kind = SAMPLE_VGPUS, .gpu = 3, .t_us = 19, .vgpus = {2, vgpus}},
    {.kind = SAMPLE_VGPUS, .gpu = 3, .t_us = 19, .vgpus = {0, vgpus}},
    {.kind = SAMPLE_VGPU_USE, .gpu = 3, .t_us = 19, .vgpu_use = {3251634178, 9, 65535, 20, 3, 4}},
    {.kind = SAMPLE_BUSY, .gpu = 3, .t_us = 19, .busy = {200000, 2, busy_processes, true}},
    {.kind = SAMPLE_BUSY, .gpu = 3, .t_us = 19, .busy = {1ULL << 50, 0, busy_processes, false}},
    {.kind = SAMPLE_LOST, .gpu = 3, .t_us = 20},
};

static void assert_same_layout(const struct sample_layout *a, const struct sample_layout *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->slices, b->slices);
    assert_int_equal(a->sm_count, b->sm_count);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct sample_instance *x = &a->items[i], *y = &b->items[i];

        assert_int_equal(x->gpu_instance, y->gpu_instance);
        assert_int_equal(x->compute_instance, y->compute_instance);
        assert_int_equal(x->index, y->index);
        assert_string_equal(x->uuid, y->uuid);
        assert_string_equal(x->profile, y->profile);
        assert_int_equal(x->slices, y->slices);
        assert_int_equal(x->compute_slices, y->compute_slices);
        assert_int_equal(x->sm_count, y->sm_count);
        assert_int_equal(x->memory_bytes, y->memory_bytes);
        assert_int_equal(x->placement.is_known, y->placement.is_known);
        assert_int_equal(x->placement.profile, y->placement.profile);
        assert_int_equal(x->placement.start, y->placement.start);
        assert_int_equal(x->placement.size, y->placement.size);
    }
}

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
            assert_int_equal(a->list.entries[i].gpu_instance, b->list.entries[i].gpu_instance);
            assert_int_equal(a->list.entries[i].compute_instance,
                             b->list.entries[i].compute_instance);
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
        assert_int_equal(a->gpm.instance, b->gpm.instance);
        break;
    case SAMPLE_LAYOUT:
        assert_same_layout(&a->layout, &b->layout);
        break;
    case SAMPLE_GAUGE:
        assert_int_equal(a->gauge.gauge, b->gauge.gauge);
        assert_int_equal(a->gauge.value, b->gauge.value);
        assert_int_equal(a->gauge.instance, b->gauge.instance);
        break;
    case SAMPLE_VGPUS:
        assert_int_equal(a->vgpus.count, b->vgpus.count);
        for (size_t i = 0; i < a->vgpus.count; i++) {
            assert_int_equal(a->vgpus.items[i].vgpu, b->vgpus.items[i].vgpu);
            assert_string_equal(a->vgpus.items[i].vm, b->vgpus.items[i].vm);
            assert_int_equal(a->vgpus.items[i].vm_is_uuid, b->vgpus.items[i].vm_is_uuid);
            assert_string_equal(a->vgpus.items[i].uuid, b->vgpus.items[i].uuid);
            assert_int_equal(a->vgpus.items[i].memory_bytes, b->vgpus.items[i].memory_bytes);
        }
        break;
    case SAMPLE_BUSY:
        assert_int_equal(a->busy.interval_us, b->busy.interval_us);
        assert_int_equal(a->busy.count, b->busy.count);
        for (size_t i = 0; i < a->busy.count; i++) {
            assert_int_equal(a->busy.entries[i].pid, b->busy.entries[i].pid);
            assert_int_equal(a->busy.entries[i].busy_us, b->busy.entries[i].busy_us);
        }
        break;
    case SAMPLE_VGPU_USE:
        assert_int_equal(a->vgpu_use.vgpu, b->vgpu_use.vgpu);
        assert_int_equal(a->vgpu_use.at_us, b->vgpu_use.at_us);
        assert_int_equal(a->vgpu_use.sm_percent, b->vgpu_use.sm_percent);
        assert_int_equal(a->vgpu_use.memory_percent, b->vgpu_use.memory_percent);
        assert_int_equal(a->vgpu_use.encoder_percent, b->vgpu_use.encoder_percent);
        assert_int_equal(a->vgpu_use.decoder_percent, b->vgpu_use.decoder_percent);
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
        trace_write_sample(&writer, &samples[i], &lines, NULL);
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
    struct sample written;
    struct buffer lines;

    (void)state;
    buffer_init(&lines, 1 << 20);
    trace_write_sample(&writer, &samples[0], &lines, NULL);
    trace_write_sample(&writer, &samples[1], &lines, NULL);
    lines.len = 0;
    assert_true(trace_write_sample(&writer, &early, &lines, &written));
    assert_int_equal(lines.len, strlen("10 E 3 9\n"));
    assert_memory_equal(lines.data, "10 E 3 9\n", lines.len);
    assert_int_equal(written.t_us, 10);
    assert_int_equal(written.counter_uj, 9000);
    buffer_done(&lines);
}

static void what_comes_before_its_device_and_a_second_description_are_left_out(void **state)
{
    struct trace_writer writer = {0};
    struct buffer lines;

    (void)state;
    buffer_init(&lines, 1 << 20);
    assert_false(trace_write_sample(&writer, &samples[1], &lines, NULL));
    assert_int_equal(lines.len, 0);
    assert_true(trace_write_sample(&writer, &samples[0], &lines, NULL));
    assert_true(lines.len > 0);
    lines.len = 0;
    assert_false(trace_write_sample(&writer, &samples[0], &lines, NULL));
    assert_int_equal(lines.len, 0);
    buffer_done(&lines);
}

static void of_gauges_only_the_memory_of_instances_is_written(void **state)
{
    const struct sample of_board = {
        .kind = SAMPLE_GAUGE, .gpu = 3, .gauge = {GPU_GAUGE_MEMORY_USED_BYTES, 1, NONE}};
    const struct sample other = {
        .kind = SAMPLE_GAUGE, .gpu = 3, .gauge = {GPU_GAUGE_SM_CLOCK_MHZ, 1, 1}};
    struct trace_writer writer = {0};
    struct buffer lines;

    (void)state;
    buffer_init(&lines, 1 << 20);
    trace_write_sample(&writer, &samples[0], &lines, NULL);
    lines.len = 0;
    assert_false(trace_write_sample(&writer, &of_board, &lines, NULL));
    assert_false(trace_write_sample(&writer, &other, &lines, NULL));
    assert_int_equal(lines.len, 0);
    buffer_done(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_gauges_only_the_memory_of_instances_is_written),
        cmocka_unit_test(every_sample_comes_back_as_it_was),
        cmocka_unit_test(a_wall_clock_that_is_set_back_does_not_spoil_the_order),
        cmocka_unit_test(what_comes_before_its_device_and_a_second_description_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
