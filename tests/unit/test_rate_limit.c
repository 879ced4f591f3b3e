/* core/rate_limit: a share of time, and a burst. */
#include "unit.h"

#include "core/macros.h"
#include "core/rate_limit.h"

static unsigned take_all(struct allowance *allowance, uint64_t now_us)
{
    unsigned taken = 0;

    while (taken < 100000 && allowance_take(allowance, 5000, now_us))
        taken++;
    return taken;
}

static void a_rest_earns_the_burst_and_then_the_rate(void **state)
{
    struct allowance allowance = {.percent = 100, .burst_us = 399 * 5000};
    uint64_t now_us = 3600 * USEC_PER_SEC;

    (void)state;
    for (int i = 0; i < 3; i++, now_us += 3600 * USEC_PER_SEC) {
        assert_int_equal(take_all(&allowance, now_us), 400);
        assert_int_equal(take_all(&allowance, now_us + 4999), 0);
        assert_int_equal(take_all(&allowance, now_us + 5000), 1);
        assert_int_equal(take_all(&allowance, now_us + USEC_PER_SEC), 199);
    }
}

static void what_is_used_at_once_is_the_burst_and_then_the_share(void **state)
{
    struct allowance allowance = {.percent = 2, .burst_us = 1000};
    uint64_t now_us = 100 * USEC_PER_SEC, used_us = 0;

    (void)state;
    while (allowance_next_us(&allowance) <= now_us) {
        allowance_use(&allowance, 100, now_us);
        used_us += 100;
    }
    assert_int_equal(used_us, 1100); /* what is begun is done */
    assert_int_equal(allowance_next_us(&allowance), now_us + 5000);
    /* From there on, 2 %. */
    for (int i = 0; i < 1000; i++) {
        now_us = allowance_next_us(&allowance);
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
    assert_int_equal(allowance_next_us(&allowance), 1980);
    assert_true(allowance_next_us(&allowance) <= USEC_PER_SEC);
    allowance_use(&allowance, 11, USEC_PER_SEC);
    assert_int_equal(allowance_next_us(&allowance), USEC_PER_SEC + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rest_earns_the_burst_and_then_the_rate),
        cmocka_unit_test(what_is_used_at_once_is_the_burst_and_then_the_share),
        cmocka_unit_test(a_rest_earns_the_burst_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
