/* attribution/gpu/intensity/simplex: nothing that a grid finds is better, and the result is a
 * mixture.
 */
#include "unit.h"

#include <math.h>

#include "attribution/gpu/intensity/simplex.h"
#include "core/macros.h"
#include "random.h"

enum { PARTS_MOST = 33, TRIALS = 200, GRID = 400 };

struct problem {
    size_t n;
    double matrix[PARTS_MOST * PARTS_MOST], linear[PARTS_MOST];
    double parts[PARTS_MOST]; /* the start, then the solution */
};

/* B'B + I, and a right side whose best mixture is often at an edge. */
static void make_problem(struct random_source *random, size_t n, struct problem *ret_problem)
{
    double b[PARTS_MOST * PARTS_MOST];

    *ret_problem = (struct problem){.n = n};
    for (size_t i = 0; i < n * n; i++)
        b[i] = 4 * random_part(random) - 2;
    for (size_t i = 0; i < n; i++) {
        ret_problem->linear[i] = 6 * random_part(random) - 3;
        ret_problem->parts[i] = 1.0 / (double)n;
        for (size_t k = 0; k < n; k++) {
            ret_problem->matrix[i * n + k] = i == k;
            for (size_t m = 0; m < n; m++)
                ret_problem->matrix[i * n + k] += b[m * n + i] * b[m * n + k];
        }
    }
}

static double cost(const struct problem *problem, const double *parts)
{
    double sum = 0;

    for (size_t i = 0; i < problem->n; i++) {
        sum -= problem->linear[i] * parts[i];
        for (size_t k = 0; k < problem->n; k++)
            sum += problem->matrix[i * problem->n + k] * parts[i] * parts[k] / 2;
    }
    return sum;
}

static double least_on_grid(const struct problem *problem)
{
    double least = INFINITY;

    for (size_t i = 0; i <= GRID; i++) {
        for (size_t k = 0; k <= (problem->n > 2 ? GRID - i : 0); k++) {
            double a = (double)i / GRID, b = (double)k / GRID;
            double parts[3] = {a, problem->n > 2 ? b : 1 - a, 1 - a - b};

            least = MIN(least, cost(problem, parts));
        }
    }
    return least;
}

static void solve(struct problem *problem)
{
    double gradient[PARTS_MOST];

    simplex_minimise(problem->matrix, problem->linear, problem->n, problem->parts, gradient);
}

static void assert_mixture(const struct problem *problem)
{
    double sum = 0;

    for (size_t i = 0; i < problem->n; i++) {
        assert_true(problem->parts[i] >= 0);
        sum += problem->parts[i];
    }
    assert_true(fabs(sum - 1) < 1e-12);
}

static void no_mixture_of_two_or_three_on_a_grid_is_better(void **state)
{
    struct random_source random = {1};
    struct problem problem;

    (void)state;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        double least;

        make_problem(&random, 2 + trial % 2, &problem);
        least = least_on_grid(&problem);
        solve(&problem);
        assert_mixture(&problem);
        assert_true(cost(&problem, problem.parts) <= least + 1e-6);
    }
}

static void no_part_of_many_would_gain_by_growing(void **state)
{
    struct random_source random = {2};
    struct problem problem;

    (void)state;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        double before;

        make_problem(&random, 4 + trial % (PARTS_MOST - 3), &problem);
        before = cost(&problem, problem.parts);
        solve(&problem);
        assert_mixture(&problem);
        assert_true(cost(&problem, problem.parts) <= before);
        /* Towards no vertex does the cost fall by more than what the steps leave over. */
        for (size_t v = 0; v < problem.n; v++) {
            double towards[PARTS_MOST];

            for (size_t i = 0; i < problem.n; i++)
                towards[i] = problem.parts[i] + 1e-3 * ((i == v) - problem.parts[i]);
            assert_true(cost(&problem, towards) > cost(&problem, problem.parts) - 1e-3);
        }
    }
}

static void the_start_hardly_matters(void **state)
{
    struct random_source random = {3};

    (void)state;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        struct problem problem, other;

        make_problem(&random, 3, &problem);
        other = problem;
        other.parts[0] = other.parts[1] = 0;
        other.parts[2] = 1;
        solve(&problem);
        solve(&other);
        for (size_t i = 0; i < 3; i++) /* half a point: the steps are bounded */
            assert_true(fabs(problem.parts[i] - other.parts[i]) < 5e-3);
    }
}

static void one_part_is_all(void **state)
{
    struct problem problem = {.n = 1, .matrix = {5}, .linear = {100}, .parts = {1}};

    (void)state;
    solve(&problem);
    assert_true(problem.parts[0] == 1);
}

static void without_a_problem_the_mixture_stays_as_it_is(void **state)
{
    struct problem problem = {.n = 3, .parts = {0.25, 0.25, 0.5}};

    (void)state;
    solve(&problem);
    assert_true(problem.parts[0] == 0.25 && problem.parts[1] == 0.25 && problem.parts[2] == 0.5);
}

static void without_curvature_the_best_part_takes_all(void **state)
{
    struct problem problem = {.n = 3, .linear = {1, 3, 2}, .parts = {0.25, 0.25, 0.5}};

    (void)state;
    solve(&problem);
    assert_mixture(&problem);
    assert_true(problem.parts[1] == 1 && problem.parts[0] == 0 && problem.parts[2] == 0);
}

static void weight_on_one_vertex_finds_its_way_to_another(void **state)
{
    /* |x - (0, 1)|^2, begun at (1, 0). */
    struct problem problem = {.n = 2, .matrix = {1, 0, 0, 1}, .linear = {0, 1}, .parts = {1, 0}};

    (void)state;
    solve(&problem);
    assert_true(problem.parts[0] == 0 && problem.parts[1] == 1);
}

static void huge_values_give_a_mixture_all_the_same(void **state)
{
    struct random_source random = {4};
    struct problem problem;

    (void)state;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        make_problem(&random, 2 + trial % 8, &problem);
        for (size_t i = 0; i < problem.n; i++) {
            problem.linear[i] *= 1e12;
            for (size_t k = 0; k < problem.n; k++)
                problem.matrix[i * problem.n + k] *= 1e12;
        }
        solve(&problem);
        assert_mixture(&problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_mixture_of_two_or_three_on_a_grid_is_better),
        cmocka_unit_test(no_part_of_many_would_gain_by_growing),
        cmocka_unit_test(the_start_hardly_matters),
        cmocka_unit_test(one_part_is_all),
        cmocka_unit_test(without_a_problem_the_mixture_stays_as_it_is),
        cmocka_unit_test(without_curvature_the_best_part_takes_all),
        cmocka_unit_test(weight_on_one_vertex_finds_its_way_to_another),
        cmocka_unit_test(huge_values_give_a_mixture_all_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
