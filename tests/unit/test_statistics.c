/* run/statistics against values of tables, an integral and a sum by hand. */
#include "unit.h"

#include <math.h>

#include "core/macros.h"
#include "run/statistics.h"

static void assert_near(double value, double expected, double distance)
{
    if (!(fabs(value - expected) <= distance))
        fail_msg("%.17g is not %.17g", value, expected);
}

static void a_summary_has_mean_spread_and_ends(void **state)
{
    static const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    struct summary summary = statistics_summarise(values, ARRAY_SIZE(values));

    (void)state;
    assert_int_equal(summary.count, 8);
    assert_near(summary.mean, 5, 1e-12);
    assert_near(summary.sd, 2.138089935299395, 1e-12);
    assert_near(summary.min, 2, 0);
    assert_near(summary.max, 9, 0);
    summary = statistics_summarise(values, 1);
    assert_near(summary.sd, 0, 0);
    assert_int_equal(statistics_summarise(values, 0).count, 0);
}

static void the_spread_of_large_values_is_exact(void **state)
{
    static const double values[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};

    (void)state;
    assert_near(statistics_summarise(values, ARRAY_SIZE(values)).sd, 5.477225575051661, 1e-9);
}

/* Every table of Student's distribution has these: 95 % of it are within t. */
static void quantiles_are_those_of_the_tables(void **state)
{
    static const struct {
        double degrees, t;
    } table[] = {{1, 12.706}, {2, 4.303},  {3, 3.182},   {5, 2.571},
                 {10, 2.228}, {30, 2.042}, {120, 1.980}, {1e7, 1.960}};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_near(statistics_t_quantile(0.05, table[i].degrees), table[i].t, 5e-4);
        assert_near(statistics_t_tail(table[i].t, table[i].degrees), 0.05, 2e-4);
    }
    /* For one degree it is Cauchy's distribution, for two it has a closed form. */
    assert_near(statistics_t_tail(1, 1), 0.5, 1e-12);
    assert_near(statistics_t_tail(2, 2), 0.18350341907227397, 1e-12);
    assert_near(statistics_t_tail(0, 7), 1, 1e-12);
}

/* Student's density, by Simpson's rule: nothing of it is in the code under test. */
static double integrate_tail(double t, double degrees)
{
    enum { STEPS = 20000 };
    double front = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / sqrt(degrees * M_PI);
    double width = t / STEPS, sum = 0;

    for (int i = 0; i <= STEPS; i++) {
        double x = i * width, density = front * pow(1 + x * x / degrees, -(degrees + 1) / 2);

        sum += density * (i == 0 || i == STEPS ? 1 : i % 2 ? 4 : 2);
    }
    return 1 - 2 * sum * width / 3;
}

static void tails_are_those_of_the_integrated_density(void **state)
{
    static const double degrees[] = {1, 1.5, 4.41, 9, 27.3, 300};
    static const double ts[] = {0.01, 0.7, 1, 1.96, 3, 8};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(degrees); i++)
        for (size_t k = 0; k < ARRAY_SIZE(ts); k++)
            assert_near(statistics_t_tail(ts[k], degrees[i]), integrate_tail(ts[k], degrees[i]),
                        1e-9);
}

/* By hand: means 10 and 13, variances 1 and 4, four and four runs: the error is 1.118, t 2.683;
 * 25/4 over 1/48 + 16/48 is 4.412 degrees. */
static void the_test_is_the_one_that_is_worked_by_hand(void **state)
{
    const struct summary a = {.count = 4, .mean = 10, .sd = 1},
                         b = {.count = 4, .mean = 13, .sd = 2};
    struct welch welch = statistics_welch(&a, &b);

    (void)state;
    assert_near(welch.degrees, 75.0 / 17, 1e-9);
    assert_near(welch.p, statistics_t_tail(3 / 1.118033988749895, 75.0 / 17), 1e-12);
    assert_near(welch.half_width, 1.118033988749895 * statistics_t_quantile(0.05, 75.0 / 17), 1e-9);
}

static void one_run_or_no_spread_proves_nothing(void **state)
{
    const struct summary one = {.count = 1, .mean = 3}, same = {.count = 5, .mean = 4};

    (void)state;
    assert_false(statistics_welch(&one, &same).is_known);
    assert_false(statistics_welch(&same, &one).is_known);
    assert_false(statistics_welch(&same, &same).is_known);
    assert_near(statistics_welch(&one, &same).difference, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_summary_has_mean_spread_and_ends),
        cmocka_unit_test(the_spread_of_large_values_is_exact),
        cmocka_unit_test(quantiles_are_those_of_the_tables),
        cmocka_unit_test(tails_are_those_of_the_integrated_density),
        cmocka_unit_test(the_test_is_the_one_that_is_worked_by_hand),
        cmocka_unit_test(one_run_or_no_spread_proves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
