/* attribution/gpu/intensity/linear: what it solves is solved, and what cannot be is refused. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "attribution/gpu/intensity/linear.h"
#include "random.h"

enum { SIZE_MOST = 32, TRIALS = 50 };

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_factor_times_itself_is_the_matrix),
        cmocka_unit_test(a_solution_put_in_gives_the_right_side),
        cmocka_unit_test(the_inverse_times_the_matrix_is_one),
        cmocka_unit_test(a_known_system_has_its_known_answer),
        cmocka_unit_test(a_matrix_that_is_not_positive_definite_is_refused),
        cmocka_unit_test(huge_and_tiny_values_are_solved_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
