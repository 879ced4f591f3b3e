#include "unit.h"

#include "attribution/gpu/gpu.h"
#include "core/macros.h"

static struct gpu_sample *add(struct gpu_samples *samples, uint32_t pid, uint64_t at_us,
                              uint16_t sm)
{
    return gpu_samples_add(
        samples, &(struct sample_label){.pid = pid, .at_us = at_us, .sm_percent = sm}, 1000);
}

static void a_sample_that_comes_twice_counts_once(void **state)
{
    struct gpu_samples samples = {0};

    (void)state;
    assert_non_null(add(&samples, 7, 2000, 99));
    assert_null(add(&samples, 7, 2000, 99));
    assert_non_null(add(&samples, 8, 2000, 99)); /* another engine, another pid, the same instant */
    assert_int_equal(samples.count, 2);
    assert_int_equal(samples.repeated, 1);
}

static void values_above_100_percent_and_pid_0_are_garbage(void **state)
{
    static const struct sample_label garbage[] = {
        {.pid = 0, .at_us = 1, .sm_percent = 50},
        {.pid = 1, .at_us = 2000, .sm_percent = 101},
        {.pid = 1, .at_us = 2000, .memory_percent = 101},
        {.pid = 1, .at_us = 2000, .encoder_percent = 65535},
        {.pid = 1, .at_us = 2000, .decoder_percent = 300},
    };
    struct gpu_samples samples = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(garbage); i++)
        assert_null(gpu_samples_add(&samples, &garbage[i], 0));
    assert_int_equal(samples.garbage, ARRAY_SIZE(garbage));
    assert_int_equal(samples.count, 0);
}

static void the_weight_is_that_of_the_busiest_engine(void **state)
{
    struct gpu_samples samples = {0};
    const struct sample_label video = {
        .pid = 1, .at_us = 2000, .sm_percent = 2, .encoder_percent = 60, .decoder_percent = 30};

    (void)state;
    assert_int_equal(gpu_samples_add(&samples, &video, 0)->weight, 60);
}

static void a_sample_of_a_settled_window_is_late_and_is_not_counted_again(void **state)
{
    struct gpu_samples samples = {0};

    (void)state;
    assert_true(add(&samples, 7, 1000, 99)->counted);
    assert_false(add(&samples, 7, 1001, 99)->counted);
    assert_int_equal(samples.late, 1);
}

static void the_ring_is_bounded_and_keeps_the_newest(void **state)
{
    struct gpu_samples samples = {0};

    (void)state;
    for (uint64_t i = 0; i < GPU_SAMPLES_MAX + 10; i++)
        add(&samples, 7, 2000 + i, 99);
    assert_int_equal(samples.count, GPU_SAMPLES_MAX);
    assert_int_equal(gpu_samples_at(&samples, 0)->at_us, 2010);
    assert_int_equal(gpu_samples_at(&samples, GPU_SAMPLES_MAX - 1)->at_us,
                     2000 + GPU_SAMPLES_MAX + 9);
}

static void only_counted_samples_are_pruned(void **state)
{
    struct gpu_samples samples = {0};

    (void)state;
    add(&samples, 7, 1000, 99); /* late, so counted */
    add(&samples, 7, 2000, 99);
    gpu_samples_prune(&samples, 1000 + 2 * GPU_SAMPLES_RATIO_US);
    assert_int_equal(samples.count, 1);
    assert_int_equal(gpu_samples_at(&samples, 0)->at_us, 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_that_comes_twice_counts_once),
        cmocka_unit_test(values_above_100_percent_and_pid_0_are_garbage),
        cmocka_unit_test(the_weight_is_that_of_the_busiest_engine),
        cmocka_unit_test(a_sample_of_a_settled_window_is_late_and_is_not_counted_again),
        cmocka_unit_test(the_ring_is_bounded_and_keeps_the_newest),
        cmocka_unit_test(only_counted_samples_are_pruned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
