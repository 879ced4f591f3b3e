/* model/sample: samples in order, bounded in number and in the memory that they point into. */
#include "unit.h"

#include <errno.h>

#include "model/sample.h"

static void samples_are_copied_and_keep_their_order(void **state)
{
    struct sample sample = {.kind = SAMPLE_ENERGY};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    for (uint64_t i = 0; i < 1000; i++) {
        sample.t_us = i;
        sample.counter_uj = i * i;
        assert_int_equal(batch_add(&batch, &sample), 0);
    }
    assert_int_equal(batch.count, 1000);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(batch.samples[i].kind, SAMPLE_ENERGY);
        assert_int_equal(batch.samples[i].t_us, i);
        assert_int_equal(batch.samples[i].counter_uj, i * i);
    }
    batch_done(&batch);
}

static void a_batch_holds_its_most_samples_and_refuses_one_more(void **state)
{
    struct sample sample = {.kind = SAMPLE_POWER};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    for (uint64_t i = 0; i < BATCH_SAMPLES_MAX; i++) {
        sample.t_us = i;
        if (batch_add(&batch, &sample) != 0)
            fail_msg("refused at %ju", (uintmax_t)i);
    }
    assert_int_equal(batch_add(&batch, &sample), -EFBIG);
    assert_int_equal(batch.count, BATCH_SAMPLES_MAX);
    assert_int_equal(batch.capacity, BATCH_SAMPLES_MAX);
    assert_int_equal(batch.samples[BATCH_SAMPLES_MAX - 1].t_us, BATCH_SAMPLES_MAX - 1);
    batch_reset(&batch);
    assert_int_equal(batch_add(&batch, &sample), 0);
    batch_done(&batch);
}

static void what_samples_point_into_is_capped(void **state)
{
    struct batch batch;

    (void)state;
    batch_init(&batch);
    assert_null(arena_alloc(&batch.arena, BATCH_ARENA_CAP_BYTES + 1));
    assert_non_null(arena_alloc(&batch.arena, BATCH_ARENA_CAP_BYTES));
    assert_null(arena_alloc(&batch.arena, 1));
    batch_done(&batch);
}

static void a_reset_empties_the_batch_but_keeps_its_memory(void **state)
{
    const struct sample sample = {.kind = SAMPLE_POWER, .power_mw = 7};
    struct batch batch;
    const struct sample *samples;
    const struct arena_chunk *chunk;
    size_t capacity;

    (void)state;
    batch_init(&batch);
    for (int i = 0; i < 100; i++)
        assert_int_equal(batch_add(&batch, &sample), 0);
    assert_non_null(arena_alloc(&batch.arena, 100));
    samples = batch.samples;
    capacity = batch.capacity;
    chunk = batch.arena.chunks;
    batch_reset(&batch);
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.arena.used_bytes, 0);
    assert_ptr_equal(batch.samples, samples);
    assert_int_equal(batch.capacity, capacity);
    assert_ptr_equal(batch.arena.chunks, chunk);
    batch_done(&batch);
}

static void a_batch_that_is_done_with_can_be_used_again(void **state)
{
    const struct sample sample = {.kind = SAMPLE_POWER, .power_mw = 7};
    struct batch batch;

    (void)state;
    batch_init(&batch);
    batch_done(&batch);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(batch_add(&batch, &sample), 0);
        assert_non_null(arena_alloc(&batch.arena, 1));
        assert_int_equal(batch.count, 1);
        assert_int_equal(batch.samples[0].power_mw, 7);
        batch_done(&batch);
        assert_null(batch.samples);
        assert_int_equal(batch.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_copied_and_keep_their_order),
        cmocka_unit_test(a_batch_holds_its_most_samples_and_refuses_one_more),
        cmocka_unit_test(what_samples_point_into_is_capped),
        cmocka_unit_test(a_reset_empties_the_batch_but_keeps_its_memory),
        cmocka_unit_test(a_batch_that_is_done_with_can_be_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
