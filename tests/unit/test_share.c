#include "unit.h"

#include "attribution/share.h"
#include "core/macros.h"

static uint64_t sum_of(const struct share *shares, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += shares[i].amount;
    return sum;
}

static void amounts_follow_the_weights(void **state)
{
    static const struct {
        uint64_t total, weights[4], amounts[4];
    } cases[] = {
        {700000000, {80, 20}, {560000000, 140000000}},
        {10, {1, 1, 1}, {4, 3, 3}}, /* equal remainders: the earlier one */
        {10, {1, 2, 4}, {1, 3, 6}}, /* quotas 1.43, 2.86, 5.71: the units go to .86 and .71 */
        {1, {0, 0, 1}, {0, 0, 1}},  /* no weight, no amount */
        {5, {0, 0, 0}, {0, 0, 0, 0}},
        {0, {3, 4}, {0, 0}},
        {UINT64_MAX, {1}, {UINT64_MAX}},
        {UINT64_MAX, {UINT64_MAX, UINT64_MAX}, {UINT64_MAX / 2 + 1, UINT64_MAX / 2}},
    };

    (void)state;
    for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
        struct share shares[4] = {0};

        for (size_t i = 0; i < 4; i++)
            shares[i].weight = cases[c].weights[i];
        share_split(cases[c].total, shares, 4);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(shares[i].amount, cases[c].amounts[i]);
    }
}

/* A fixed sequence (Knuth's MMIX generator). */
static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return *seed >> 20;
}

static void every_split_sums_to_the_total_and_is_within_one_of_the_quota(void **state)
{
    uint64_t seed = 42;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct share shares[32] = {0};
        uint64_t total, sum = 0;
        size_t count;

        count = 1 + next(&seed) % 32;
        total = next(&seed) % (1ULL << (1 + next(&seed) % 40));
        for (size_t i = 0; i < count; i++)
            sum += shares[i].weight = next(&seed) % 4 ? next(&seed) % 1000000 : 0;
        assert_int_equal(share_split(total, shares, count), sum ? total : 0);
        assert_int_equal(sum_of(shares, count), sum ? total : 0);
        for (size_t i = 0; i < count && sum; i++) {
            unsigned __int128 quota = (unsigned __int128)total * shares[i].weight;

            assert_true(shares[i].amount >= (uint64_t)(quota / sum));
            assert_true(shares[i].amount <= (uint64_t)(quota / sum) + 1);
            assert_true(shares[i].weight > 0 || shares[i].amount == 0);
        }
    }
}

static void the_order_of_the_shares_is_kept(void **state)
{
    struct share shares[] = {{.weight = 1}, {.weight = 5}, {.weight = 3}};

    (void)state;
    share_split(7, shares, 3);
    assert_int_equal(shares[0].weight, 1);
    assert_int_equal(shares[1].weight, 5);
    assert_int_equal(shares[2].weight, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amounts_follow_the_weights),
        cmocka_unit_test(every_split_sums_to_the_total_and_is_within_one_of_the_quota),
        cmocka_unit_test(the_order_of_the_shares_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
