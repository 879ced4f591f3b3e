/* core/rate_limit: a share of time, kept. */
#include "unit.h"

#include "core/macros.h"
#include "core/rate_limit.h"

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
        cmocka_unit_test(what_is_used_at_once_is_the_burst_and_then_the_share),
        cmocka_unit_test(a_rest_earns_the_burst_and_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
