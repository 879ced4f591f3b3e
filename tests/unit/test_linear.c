/* attribution/gpu/intensity/linear: solutions solve the system, what cannot be solved is refused,
 * and no mixture on a grid is better than the minimum. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"
#include "random.h"

enum { SIZE_MOST = 32, TRIALS = 50, MIXTURE_TRIALS = 200, GRID = 400 };

/* B'B + 0.1 I: symmetric and positive definite, whatever B is. */
static void make_matrix(struct random_source *random, size_t n, double *ret_matrix)
{
    double b[SIZE_MOST * SIZE_MOST];

    for (size_t i = 0; i < n * n; i++)
        b[i] = 2 * random_part(random) - 1;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            ret_matrix[i * n + k] = i == k ? 0.1 : 0;
            for (size_t m = 0; m < n; m++)
                ret_matrix[i * n + k] += b[m * n + i] * b[m * n + k];
        }
    }
}

static double product(const double *matrix, size_t n, size_t row, const double *vector)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += matrix[row * n + k] * vector[k];
    return sum;
}

static void the_factor_times_itself_is_the_matrix(void **state)
{
    struct random_source random = {1};

    (void)state;
    for (size_t n = 1; n <= SIZE_MOST; n++) {
        double matrix[SIZE_MOST * SIZE_MOST], factor[SIZE_MOST * SIZE_MOST];

        make_matrix(&random, n, matrix);
        memcpy(factor, matrix, sizeof(matrix));
        assert_true(linear_factor(factor, n));
        for (size_t row = 0; row < n; row++) {
            for (size_t column = 0; column <= row; column++) {
                double sum = 0;

                for (size_t k = 0; k <= column; k++)
                    sum += factor[row * n + k] * factor[column * n + k];
                assert_true(fabs(sum - matrix[row * n + column]) < 1e-12 * (double)n);
            }
        }
    }
}

static void a_solution_put_in_gives_the_right_side(void **state)
{
    struct random_source random = {2};

    (void)state;
    for (size_t trial = 0; trial < TRIALS; trial++) {
        double matrix[SIZE_MOST * SIZE_MOST], factor[SIZE_MOST * SIZE_MOST];
        double side[SIZE_MOST], solution[SIZE_MOST];
        size_t n = 1 + trial % SIZE_MOST;

        make_matrix(&random, n, matrix);
        memcpy(factor, matrix, sizeof(matrix));
        for (size_t i = 0; i < n; i++)
            solution[i] = side[i] = 10 * random_part(&random) - 5;
        assert_true(linear_factor(factor, n));
        linear_solve(factor, n, solution);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs(product(matrix, n, i, solution) - side[i]) < 1e-8);
    }
}

static void the_inverse_times_the_matrix_is_one(void **state)
{
    struct random_source random = {3};

    (void)state;
    for (size_t n = 1; n <= SIZE_MOST; n++) {
        double matrix[SIZE_MOST * SIZE_MOST], factor[SIZE_MOST * SIZE_MOST];
        double inverse[SIZE_MOST * SIZE_MOST];

        make_matrix(&random, n, matrix);
        memcpy(factor, matrix, sizeof(matrix));
        assert_true(linear_factor(factor, n));
        linear_invert(factor, n, inverse);
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < n; k++) {
                /* Row k of the inverse is its column k. */
                assert_true(fabs(product(matrix, n, i, &inverse[k * n]) - (i == k)) < 1e-8);
                assert_true(fabs(inverse[i * n + k] - inverse[k * n + i]) < 1e-8);
            }
        }
    }
}

static void a_known_system_has_its_known_answer(void **state)
{
    double matrix[] = {4, 2, 2, 3}, side[] = {10, 8};

    (void)state;
    assert_true(linear_factor(matrix, 2));
    linear_solve(matrix, 2, side);
    assert_true(fabs(side[0] - 1.75) < 1e-15 && fabs(side[1] - 1.5) < 1e-15);
}

static void a_matrix_that_is_not_positive_definite_is_refused(void **state)
{
    double zero[9] = {0}, negative[] = {-1}, indefinite[] = {1, 2, 2, 1};
    double singular[] = {1, 1, 1, 1}, nan[] = {NAN, 0, 0, 1};

    (void)state;
    assert_false(linear_factor(zero, 3));
    assert_false(linear_factor(negative, 1));
    assert_false(linear_factor(indefinite, 2));
    assert_false(linear_factor(singular, 2));
    assert_false(linear_factor(nan, 2));
}

static void huge_and_tiny_values_are_solved_too(void **state)
{
    double huge[] = {4e150, 0, 0, 1e-150}, side[] = {8e150, 3e-150};

    (void)state;
    assert_true(linear_factor(huge, 2));
    linear_solve(huge, 2, side);
    assert_true(fabs(side[0] - 2) < 1e-12 && fabs(side[1] - 3) < 1e-12);
}

/* A mixture to find. */
struct problem {
    size_t n;
    double matrix[LINEAR_SIZE_MAX * LINEAR_SIZE_MAX], linear[LINEAR_SIZE_MAX];
    double parts[LINEAR_SIZE_MAX]; /* the start, then the solution */
};

/* B'B + I, and a right side whose best mixture is often at an edge. */
static void make_problem(struct random_source *random, size_t n, struct problem *ret_problem)
{
    double b[LINEAR_SIZE_MAX * LINEAR_SIZE_MAX];

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
    linear_minimise(problem->matrix, problem->linear, problem->n, problem->parts);
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
    for (size_t trial = 0; trial < MIXTURE_TRIALS; trial++) {
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
    for (size_t trial = 0; trial < MIXTURE_TRIALS; trial++) {
        double before;

        make_problem(&random, 4 + trial % (LINEAR_SIZE_MAX - 3), &problem);
        before = cost(&problem, problem.parts);
        solve(&problem);
        assert_mixture(&problem);
        assert_true(cost(&problem, problem.parts) <= before);
        /* Towards no vertex does the cost fall by more than what the steps leave over. */
        for (size_t v = 0; v < problem.n; v++) {
            double towards[LINEAR_SIZE_MAX];

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
    for (size_t trial = 0; trial < MIXTURE_TRIALS; trial++) {
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
    for (size_t trial = 0; trial < MIXTURE_TRIALS; trial++) {
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

/* Returns how many parts are 0. */
static size_t assert_positive_minimum(struct problem *problem, double slope_max)
{
    size_t at_edge = 0;

    linear_minimise_positive(problem->matrix, problem->linear, problem->n, problem->parts);
    for (size_t i = 0; i < problem->n; i++) {
        double slope = product(problem->matrix, problem->n, i, problem->parts) - problem->linear[i];

        assert_true(problem->parts[i] >= 0);
        assert_true(problem->parts[i] > 0 ? fabs(slope) < slope_max : slope > -slope_max);
        at_edge += problem->parts[i] == 0;
    }
    return at_edge;
}

static void a_minimum_over_what_is_not_negative_has_no_slope_that_leads_further(void **state)
{
    struct random_source random = {7};
    struct problem problem;
    size_t at_edge = 0;

    (void)state;
    for (size_t trial = 0; trial < MIXTURE_TRIALS; trial++) {
        make_problem(&random, 1 + trial % SIZE_MOST, &problem);
        at_edge += assert_positive_minimum(&problem, 1e-4);
    }
    assert_true(at_edge > 100);
}

/* As many parts as there can be, of which only ten directions are told apart. */
static void parts_that_are_alike_are_found_to_the_last_digits(void **state)
{
    enum { FEATURES = 10, PARTS = 32 };
    static struct problem problem = {.n = PARTS};
    struct random_source random = {11};

    (void)state;
    for (size_t trial = 0; trial < MIXTURE_TRIALS; trial++) {
        double b[PARTS][FEATURES], seen[FEATURES] = {0};

        for (size_t i = 0; i < PARTS; i++) {
            double amount = MAX(2 * random_part(&random) - 1, 0.0);

            for (size_t f = 0; f < FEATURES; f++) {
                b[i][f] = 9 * random_part(&random);
                seen[f] += amount * b[i][f] / PARTS;
            }
        }
        for (size_t i = 0; i < PARTS; i++) {
            problem.linear[i] = 0;
            problem.parts[i] = trial % 2 ? 0 : 1.0 / PARTS;
            for (size_t f = 0; f < FEATURES; f++)
                problem.linear[i] += b[i][f] * seen[f];
            for (size_t k = 0; k < PARTS; k++) {
                problem.matrix[i * PARTS + k] = (i == k) - 1.0 / PARTS;
                for (size_t f = 0; f < FEATURES; f++)
                    problem.matrix[i * PARTS + k] += b[i][f] * b[k][f];
            }
        }
        assert_positive_minimum(&problem, 1e-3);
    }
}

static void a_part_without_curvature_stays_where_it_is(void **state)
{
    double matrix[] = {0, 0, 0, 2}, linear[] = {1, 4}, parts[] = {0.5, 0};

    (void)state;
    linear_minimise_positive(matrix, linear, 2, parts);
    assert_true(parts[0] == 0.5 && parts[1] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_factor_times_itself_is_the_matrix),
        cmocka_unit_test(a_solution_put_in_gives_the_right_side),
        cmocka_unit_test(the_inverse_times_the_matrix_is_one),
        cmocka_unit_test(a_known_system_has_its_known_answer),
        cmocka_unit_test(a_matrix_that_is_not_positive_definite_is_refused),
        cmocka_unit_test(huge_and_tiny_values_are_solved_too),
        cmocka_unit_test(no_mixture_of_two_or_three_on_a_grid_is_better),
        cmocka_unit_test(no_part_of_many_would_gain_by_growing),
        cmocka_unit_test(the_start_hardly_matters),
        cmocka_unit_test(one_part_is_all),
        cmocka_unit_test(without_a_problem_the_mixture_stays_as_it_is),
        cmocka_unit_test(without_curvature_the_best_part_takes_all),
        cmocka_unit_test(weight_on_one_vertex_finds_its_way_to_another),
        cmocka_unit_test(huge_values_give_a_mixture_all_the_same),
        cmocka_unit_test(a_minimum_over_what_is_not_negative_has_no_slope_that_leads_further),
        cmocka_unit_test(parts_that_are_alike_are_found_to_the_last_digits),
        cmocka_unit_test(a_part_without_curvature_stays_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
