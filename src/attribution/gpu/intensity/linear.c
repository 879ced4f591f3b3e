#include "attribution/gpu/intensity/linear.h"

#include <math.h>

bool linear_factor(double *matrix, size_t n)
{
    for (size_t column = 0; column < n; column++) {
        for (size_t row = column; row < n; row++) {
            double sum = matrix[row * n + column];

            for (size_t k = 0; k < column; k++)
                sum -= matrix[row * n + k] * matrix[column * n + k];
            if (row > column)
                matrix[row * n + column] = sum / matrix[column * n + column];
            else if (sum > 0)
                matrix[row * n + column] = sqrt(sum);
            else
                return false;
        }
    }
    return true;
}

void linear_solve(const double *factor, size_t n, double *side)
{
    for (size_t row = 0; row < n; row++) {
        for (size_t k = 0; k < row; k++)
            side[row] -= factor[row * n + k] * side[k];
        side[row] /= factor[row * n + row];
    }
    for (size_t row = n; row-- > 0;) {
        side[row] /= factor[row * n + row];
        for (size_t k = 0; k < row; k++)
            side[k] -= factor[row * n + k] * side[row];
    }
}

void linear_invert(const double *factor, size_t n, double *ret_inverse)
{
    /* As linear_solve for each unit vector, but only from the diagonal on: before it the side is 0,
     * and what is found there is known by symmetry. */
    for (size_t i = 0; i < n; i++) {
        double *side = &ret_inverse[i * n];

        for (size_t row = i; row < n; row++)
            side[row] = row == i;
        for (size_t row = i; row < n; row++) {
            double known = side[row] /= factor[row * n + row];

            for (size_t k = row + 1; k < n; k++)
                side[k] -= factor[k * n + row] * known;
        }
        for (size_t row = n; row-- > i;) {
            double known = side[row] /= factor[row * n + row];

            for (size_t k = i; k < row; k++)
                side[k] -= factor[row * n + k] * known;
            ret_inverse[row * n + i] = known;
        }
    }
}
