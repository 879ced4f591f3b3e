/* core/rate_limit: so many a second, and a burst. */
#include "unit.h"

#include "core/macros.h"
#include "core/rate_limit.h"

static unsigned take_all(struct token_bucket *bucket, uint64_t now_us)
{
    unsigned taken = 0;

    while (taken < 100000 && token_bucket_take(bucket, now_us))
        taken++;
    return taken;
}

static void a_full_bucket_gives_its_burst_and_then_its_rate(void **state)
{
    struct token_bucket bucket;

    (void)state;
    token_bucket_init(&bucket, 200, 400, 1000);
    assert_int_equal(take_all(&bucket, 1000), 400);
    assert_int_equal(take_all(&bucket, 1000 + 4999), 0);
    assert_int_equal(take_all(&bucket, 1000 + 5000), 1);
    assert_int_equal(take_all(&bucket, 1000 + USEC_PER_SEC), 199);
}

static void fractions_of_a_token_are_not_lost(void **state)
{
    struct token_bucket bucket;
    unsigned taken = 0;

    (void)state;
    token_bucket_init(&bucket, 3, 1, 0);
    (void)take_all(&bucket, 0);
    for (uint64_t now_us = 0; now_us <= 10 * USEC_PER_SEC; now_us += 7)
        taken += take_all(&bucket, now_us);
    assert_int_equal(taken, 29); /* the thirtieth needs 10 s and a third of a microsecond's rest */
}

static void a_rest_fills_it_up_to_the_burst_and_no_more(void **state)
{
    struct token_bucket bucket;

    (void)state;
    token_bucket_init(&bucket, 200, 400, 0);
    assert_int_equal(take_all(&bucket, 0), 400);
    assert_int_equal(take_all(&bucket, 3600 * USEC_PER_SEC), 400);
    assert_int_equal(take_all(&bucket, UINT64_MAX), 400);
}

static void a_clock_that_goes_back_gives_nothing(void **state)
{
    struct token_bucket bucket;

    (void)state;
    token_bucket_init(&bucket, 200, 400, USEC_PER_SEC);
    assert_int_equal(take_all(&bucket, 0), 400);
    assert_int_equal(take_all(&bucket, USEC_PER_SEC), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_bucket_gives_its_burst_and_then_its_rate),
        cmocka_unit_test(fractions_of_a_token_are_not_lost),
        cmocka_unit_test(a_rest_fills_it_up_to_the_burst_and_no_more),
        cmocka_unit_test(a_clock_that_goes_back_gives_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
