#include "attribution/intensity/linear.h"

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
        for (size_t k = row + 1; k < n; k++)
            side[row] -= factor[k * n + row] * side[k];
        side[row] /= factor[row * n + row];
    }
}

void linear_invert(const double *factor, size_t n, double *ret_inverse)
{
    for (size_t i = 0; i < n; i++) {
        double *row = &ret_inverse[i * n]; /* of a symmetric matrix: a column is a row */

        for (size_t k = 0; k < n; k++)
            row[k] = k == i;
        linear_solve(factor, n, row);
    }
}
