/* Under which index the GPU of a source is shown. */
#include "unit.h"

#include "attribution/pipeline.h"
#include "collector/gpu_numbers.h"

static const struct source_ops nvidia = {.name = "nvml"}, others = {.name = "drm"};

/* A reading of a GPU. Returns how many have got another number than their own. */
static size_t see(struct gpu_numbers *numbers, const struct source_ops *source, uint32_t number,
                  struct batch *batch)
{
    batch_reset(batch);
    assert_int_equal(batch_add(batch, &(struct sample){.kind = SAMPLE_DEVICE, .gpu = number}), 0);
    assert_int_equal(batch_add(batch, &(struct sample){.kind = SAMPLE_ENERGY, .gpu = number}), 0);
    assert_int_equal(batch_add(batch, &(struct sample){.kind = SAMPLE_METER}), 0);
    return gpu_numbers_apply(numbers, source, batch);
}

static void check(const struct batch *batch, uint32_t index, bool is_renumbered)
{
    assert_int_equal(batch->count, 3);
    assert_int_equal(batch->samples[0].gpu, index);
    assert_int_equal(batch->samples[0].device.is_renumbered, is_renumbered);
    assert_int_equal(batch->samples[1].gpu, index);
    assert_int_equal(batch->samples[2].gpu, 0);
}

static void gpus_have_the_numbers_of_their_sources_as_long_as_these_differ(void **state)
{
    struct gpu_numbers numbers = {0};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    for (uint32_t i = 0; i < SAMPLE_GPU_MAX; i++) {
        assert_int_equal(see(&numbers, i < 8 ? &nvidia : &others, i, &batch), 0);
        check(&batch, i, false);
    }
    batch_done(&batch);
}

static void who_was_first_keeps_the_number_and_each_other_one_is_news_once(void **state)
{
    struct gpu_numbers numbers = {0};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_int_equal(see(&numbers, &others, 0, &batch), 0);
    for (size_t round = 0; round < 3; round++) {
        assert_int_equal(see(&numbers, &nvidia, 0, &batch), round == 0);
        check(&batch, 1, true);
        assert_int_equal(see(&numbers, &nvidia, 1, &batch), round == 0);
        check(&batch, 2, true);
        assert_int_equal(see(&numbers, &others, 0, &batch), 0);
        check(&batch, 0, false);
        assert_int_equal(see(&numbers, &nvidia, 3, &batch), 0);
        check(&batch, 3, false);
    }
    batch_done(&batch);
}

static void a_gpu_for_which_no_number_is_left_is_dropped_and_is_news_once(void **state)
{
    struct gpu_numbers numbers = {0};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    for (uint32_t i = 0; i < SAMPLE_GPU_MAX; i++)
        assert_int_equal(see(&numbers, &others, i, &batch), 0);
    for (size_t round = 0; round < 3; round++) {
        assert_int_equal(see(&numbers, &nvidia, 5, &batch), round == 0);
        assert_int_equal(batch.count, 1);
        assert_int_equal(batch.samples[0].kind, SAMPLE_METER);
        assert_true(numbers.is_full);
    }
    batch_done(&batch);
}

/* A second of a board at its power. */
static void play_second(struct gpu_numbers *numbers, struct pipeline *pipeline,
                        const struct source_ops *source, const char *uuid, uint64_t second,
                        uint64_t watts)
{
    uint64_t t_us = 1000 * USEC_PER_SEC + second * USEC_PER_SEC;
    struct batch batch;

    batch_init(&batch);
    (void)batch_add(&batch,
                    &(struct sample){.kind = SAMPLE_DEVICE,
                                     .t_us = t_us,
                                     .device = {.uuid = uuid, .name = "board", .driver = "1"}});
    (void)batch_add(&batch, &(struct sample){.kind = SAMPLE_ENERGY,
                                             .t_us = t_us,
                                             .counter_uj = second * watts * 1000000});
    gpu_numbers_apply(numbers, source, &batch);
    assert_int_equal(pipeline_ingest(pipeline, batch.samples, batch.count), 0);
    batch_done(&batch);
}

static void a_gpu_that_comes_later_with_the_same_number_takes_no_energy_from_the_first(void **state)
{
    const struct pipeline_options options = {
        .gpu = {.interval_us = USEC_PER_SEC}, .max_processes = 8, .max_workloads = 8};
    struct gpu_numbers numbers = {0};
    struct pipeline *pipeline;
    uint32_t meter;

    (void)state;
    assert_int_equal(pipeline_new(&options, &pipeline), 0);
    for (uint64_t second = 0; second <= 60; second++) {
        play_second(&numbers, pipeline, &others, "AMD-1", second, 100);
        if (second >= 20)
            play_second(&numbers, pipeline, &nvidia, "GPU-1", second, 300);
    }
    assert_int_equal(pipeline_finish(pipeline), 0);
    assert_true(ledger_find_meter(pipeline->ledger, METER_GPU, "AMD-1", &meter));
    assert_int_equal(ledger_meter(pipeline->ledger, meter)->energy_uj, 6000000000);
    assert_int_equal(ledger_meter(pipeline->ledger, meter)->gpu, 0);
    assert_true(ledger_find_meter(pipeline->ledger, METER_GPU, "GPU-1", &meter));
    assert_int_equal(ledger_meter(pipeline->ledger, meter)->energy_uj, 12000000000);
    assert_int_equal(ledger_meter(pipeline->ledger, meter)->gpu, 1);
    pipeline_free(pipeline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_have_the_numbers_of_their_sources_as_long_as_these_differ),
        cmocka_unit_test(who_was_first_keeps_the_number_and_each_other_one_is_news_once),
        cmocka_unit_test(a_gpu_for_which_no_number_is_left_is_dropped_and_is_news_once),
        cmocka_unit_test(
            a_gpu_that_comes_later_with_the_same_number_takes_no_energy_from_the_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
