/* core/rate_limit: so many a second, or a share of time, and a burst. */
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

static void what_is_used_at_once_is_the_burst_and_then_the_share(void **state)
{
    struct allowance allowance = {.percent = 2, .burst_us = 1000};
    uint64_t now_us = 100 * USEC_PER_SEC, used_us = 0;

    (void)state;
    while (allowance_when(&allowance) <= now_us) {
        allowance_use(&allowance, 100, now_us);
        used_us += 100;
    }
    assert_int_equal(used_us, 1100); /* what is begun is done */
    assert_int_equal(allowance_when(&allowance), now_us + 5000);
    /* From there on, 2 %. */
    for (int i = 0; i < 1000; i++) {
        now_us = allowance_when(&allowance);
        allowance_use(&allowance, 100, now_us);
        used_us += 100;
    }
    assert_int_equal(now_us - 100 * USEC_PER_SEC, 1000 * 5000);
    assert_int_equal(used_us, 101100);
}

static void a_rest_earns_the_burst_and_no_more(void **state)
{
    struct allowance allowance = {.percent = 50, .burst_us = 10};

    (void)state;
    allowance_use(&allowance, 1000, 0);
    assert_int_equal(allowance_when(&allowance), 1980);
    assert_true(allowance_when(&allowance) <= USEC_PER_SEC);
    allowance_use(&allowance, 11, USEC_PER_SEC);
    assert_int_equal(allowance_when(&allowance), USEC_PER_SEC + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_bucket_gives_its_burst_and_then_its_rate),
        cmocka_unit_test(fractions_of_a_token_are_not_lost),
        cmocka_unit_test(a_rest_fills_it_up_to_the_burst_and_no_more),
        cmocka_unit_test(a_clock_that_goes_back_gives_nothing),
        cmocka_unit_test(what_is_used_at_once_is_the_burst_and_then_the_share),
        cmocka_unit_test(a_rest_earns_the_burst_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
