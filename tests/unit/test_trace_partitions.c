/* sources/trace/partitions: the records of MIG instances and vGPUs, and what is refused in them. */
#include "trace_lines.h"

#include <errno.h>
#include <string.h>

#include "core/buffer.h"
#include "core/macros.h"

static void a_layout_holds_the_board_and_each_instance_in_order(void **state)
{
    struct batch batch;
    const struct sample *sample =
        parse_line(&batch, "5 B 2 1 7 98 2 1:0:0:3:1:14:21474836480:1c.3g.20gb:MIG-4c "
                           "0:1:13:4:4:56:0:4g.20gb%2Bme:-:20:6:1");
    const struct sample_instance *first = &sample->layout.items[0];
    const struct sample_instance *second = &sample->layout.items[1];

    (void)state;
    assert_int_equal(sample->kind, SAMPLE_LAYOUT);
    assert_int_equal(sample->gpu, 2);
    assert_int_equal(sample->t_us, 5);
    assert_int_equal(sample->layout.kind, LAYOUT_MIG);
    assert_int_equal(sample->layout.slices, 7);
    assert_int_equal(sample->layout.sm_count, 98);
    assert_int_equal(sample->layout.count, 2);
    assert_int_equal(first->gpu_instance, 1);
    assert_int_equal(first->compute_instance, 0);
    assert_int_equal(first->index, 0);
    assert_int_equal(first->slices, 3);
    assert_int_equal(first->compute_slices, 1);
    assert_int_equal(first->sm_count, 14);
    assert_int_equal(first->memory_bytes, 21474836480);
    assert_string_equal(first->profile, "1c.3g.20gb");
    assert_string_equal(first->uuid, "MIG-4c");
    assert_false(first->placement.is_known);
    assert_int_equal(second->gpu_instance, 0);
    assert_int_equal(second->compute_instance, 1);
    assert_int_equal(second->index, 13);
    assert_string_equal(second->profile, "4g.20gb+me");
    assert_string_equal(second->uuid, "");
    assert_true(second->placement.is_known);
    assert_int_equal(second->placement.profile, 20);
    assert_int_equal(second->placement.start, 6);
    assert_int_equal(second->placement.size, 1);
    batch_done(&batch);
    sample = parse_line(&batch, "5 B 0 0 0 0 0");
    assert_int_equal(sample->layout.kind, LAYOUT_WHOLE);
    assert_int_equal(sample->layout.count, 0);
    batch_done(&batch);
}

static void gpm_is_of_the_board_or_of_an_instance(void **state)
{
    struct batch batch;
    const struct sample *sample = parse_line(&batch, "5 G 0 i=0 1=50");

    (void)state;
    assert_int_equal(sample->gpm.instance, 0);
    assert_int_equal(sample->gpm.valid, 1);
    assert_int_equal(sample->gpm.millipercent[0], 50000);
    batch_done(&batch);
    assert_int_equal(parse_line(&batch, "5 G 0 1=50")->gpm.instance, SAMPLE_NO_INSTANCE);
    batch_done(&batch);
}

static void memory_of_an_instance_has_four_words(void **state)
{
    static const struct {
        const char *line;
        struct sample_gauge gauge;
    } cases[] = {
        {"5 K 0 13 total 18446744073709551615", {GPU_GAUGE_MEMORY_TOTAL_BYTES, UINT64_MAX, 13}},
        {"5 K 0 0 reserved 0", {GPU_GAUGE_MEMORY_RESERVED_BYTES, 0, 0}},
        {"5 K 0 1 used 7", {GPU_GAUGE_MEMORY_USED_BYTES, 7, 1}},
        {"5 K 0 4294967294 free 8", {GPU_GAUGE_MEMORY_FREE_BYTES, 8, SAMPLE_NO_INSTANCE - 1}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct batch batch;
        const struct sample *sample = parse_line(&batch, cases[i].line);

        assert_int_equal(sample->kind, SAMPLE_GAUGE);
        assert_int_equal(sample->gauge.gauge, cases[i].gauge.gauge);
        assert_int_equal(sample->gauge.value, cases[i].gauge.value);
        assert_int_equal(sample->gauge.instance, cases[i].gauge.instance);
        batch_done(&batch);
    }
}

static void vgpus_are_listed_with_their_machines_and_used_by_the_drivers_time(void **state)
{
    struct batch batch;
    const struct sample *sample = parse_line(
        &batch, "5 V 1 2 3251634178:1024:u:9f31-ec7a:c2a0 7:18446744073709551615:d:12:-");

    (void)state;
    assert_int_equal(sample->kind, SAMPLE_VGPUS);
    assert_int_equal(sample->vgpus.count, 2);
    assert_int_equal(sample->vgpus.items[0].vgpu, 3251634178);
    assert_int_equal(sample->vgpus.items[0].memory_bytes, 1024);
    assert_true(sample->vgpus.items[0].vm_is_uuid);
    assert_string_equal(sample->vgpus.items[0].vm, "9f31-ec7a");
    assert_string_equal(sample->vgpus.items[0].uuid, "c2a0");
    assert_int_equal(sample->vgpus.items[1].memory_bytes, SAMPLE_MEMORY_UNKNOWN);
    assert_false(sample->vgpus.items[1].vm_is_uuid);
    assert_string_equal(sample->vgpus.items[1].vm, "12");
    assert_string_equal(sample->vgpus.items[1].uuid, "");
    batch_done(&batch);
    sample = parse_line(&batch, "9 Y 1 3251634178 8 1 2 3 65535");
    assert_int_equal(sample->kind, SAMPLE_VGPU_USE);
    assert_int_equal(sample->t_us, 9);
    assert_int_equal(sample->vgpu_use.vgpu, 3251634178);
    assert_int_equal(sample->vgpu_use.at_us, 8);
    assert_int_equal(sample->vgpu_use.sm_percent, 1);
    assert_int_equal(sample->vgpu_use.memory_percent, 2);
    assert_int_equal(sample->vgpu_use.encoder_percent, 3);
    assert_int_equal(sample->vgpu_use.decoder_percent, 65535);
    batch_done(&batch);
}

static void a_bad_line_adds_nothing_and_its_error_names_the_fault(void **state)
{
    static const struct bad_line cases[] = {
        {"1 B 0", "kind of partitions"},
        {"1 B 0 3 7 98 0", "kind of partitions: expected a number of at most 2"},
        {"1 B 0 1 256 98 0", "slices"},
        {"1 B 0 1 7 65536 0", "SMs"},
        {"1 B 0 1 7 98", "number of instances"},
        {"1 B 0 1 7 98 65", "number of instances"},
        {"1 B 0 1 7 98 1", "1 entries do not fit"},
        {"1 B 0 0 0 0 1 1:0:0:1:1:14:5:1g.5gb:MIG-1", "not partitioned"},
        {"1 B 0 1 7 98 0 1:0:0:1:1:14:5:1g.5gb:MIG-1", "more fields"},
        {"1 B 0 1 7 98 1 4294967295:0:0:1:1:14:5:1g.5gb:MIG-1", "instance: expected"},
        {"1 B 0 1 7 98 1 1:4294967295:0:1:1:14:5:1g.5gb:MIG-1", "instance: expected"},
        {"1 B 0 1 7 98 1 1:0:0:256:1:14:5:1g.5gb:MIG-1", "instance: expected"},
        {"1 B 0 1 7 98 1 1:0:0:1:256:14:5:1g.5gb:MIG-1", "instance: expected"},
        {"1 B 0 1 7 98 1 1:0:0:1:1:65536:5:1g.5gb:MIG-1", "instance: expected"},
        {"1 B 0 1 7 98 1 1:0:0:1:1:14:x:1g.5gb:MIG-1", "instance: expected"},
        {"1 B 0 1 7 98 1 1:0:0:1:1:14:5::MIG-1", "profile is missing"},
        {"1 B 0 1 7 98 1 1:0:0:1:1:14:5:1g.5gb", "UUID of an instance is missing"},
        {"1 B 0 1 7 98 1 1:0:0:1:1:14:5:1g.5gb:", "UUID of an instance is missing"},
        {"1 B 0 1 7 98 1 1:0:0:1:1:14:5:%zz:MIG-1", "profile: expected %XX"},
        {"1 G 0 i=4294967295 1=5", "GPU instance"},
        {"1 G 0 i= 1=5", "GPU instance"},
        {"1 G 0 1=5 i=0", "GPM: expected"},
        {"1 R 0 c 1 1:2:", "list entry 1: expected pid:bytes or pid:bytes:instance:instance"},
        {"1 R 0 c 1 1:2:3:", "list entry 1"},
        {"1 R 0 c 1 1:2:3:4:5", "list entry 1"},
        {"1 R 0 c 1 1:2:3:4294967296", "list entry 1"},
        {"1 K 0", "GPU instance"},
        {"1 K 0 4294967295 used 1", "GPU instance"},
        {"1 K 0 1 used", "memory"},
        {"1 K 0 1 used 1 2", "more fields"},
        {"1 V 0", "number of vGPUs"},
        {"1 V 0 257", "number of vGPUs"},
        {"1 V 0 1", "1 entries do not fit"},
        {"1 V 0 1 7:1024:x:12:-", "vGPU: expected VGPU:BYTES:u|d:VM:UUID"},
        {"1 V 0 1 4294967296:1024:d:12:-", "vGPU: expected"},
        {"1 V 0 1 7:x:d:12:-", "vGPU: expected"},
        {"1 V 0 1 7:1024:d:-:-", "the id of its virtual machine is missing"},
        {"1 V 0 1 7:1024:d:12:", "UUID of a vGPU is missing"},
        {"1 V 0 1 7:1024:d:12:- 8:1024:d:12:-", "more fields"},
        {"1 Y 0 7 8 1 2 3", "dec"},
        {"1 Y 0 7 8 1 2 3 65536", "dec"},
        {"1 Y 0 4294967296 8 1 2 3 4", "vGPU"},
        {"1 Y 0 7 8 1 2 3 4 p", "more fields"},
    };

    (void)state;
    assert_bad_lines(cases, ARRAY_SIZE(cases));
}

static void an_unknown_word_of_memory_is_skipped(void **state)
{
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_int_equal(trace_parse_line(span_of("1 K 0 1 swapped x"), &batch, NULL), 0);
    assert_int_equal(batch.count, 0);
    batch_done(&batch);
}

static void a_text_is_as_long_as_the_drivers_buffers_at_most(void **state)
{
    struct buffer line;
    struct batch batch;
    struct error err;

    (void)state;
    buffer_init(&line, 1 << 20);
    batch_init(&batch);
    buffer_str(&line, "1 B 0 1 7 98 1 1:0:0:1:1:14:5:1g.5gb:");
    for (int i = 0; i < 95; i++)
        buffer_char(&line, 'x');
    assert_int_equal(trace_parse_line((struct span){line.data, line.len}, &batch, &err), 1);
    buffer_char(&line, 'x');
    assert_int_equal(trace_parse_line((struct span){line.data, line.len}, &batch, &err), -EBADMSG);
    assert_non_null(strstr(err.text, "longer than 95 bytes"));
    batch_done(&batch);
    buffer_done(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_holds_the_board_and_each_instance_in_order),
        cmocka_unit_test(gpm_is_of_the_board_or_of_an_instance),
        cmocka_unit_test(memory_of_an_instance_has_four_words),
        cmocka_unit_test(vgpus_are_listed_with_their_machines_and_used_by_the_drivers_time),
        cmocka_unit_test(a_bad_line_adds_nothing_and_its_error_names_the_fault),
        cmocka_unit_test(an_unknown_word_of_memory_is_skipped),
        cmocka_unit_test(a_text_is_as_long_as_the_drivers_buffers_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
