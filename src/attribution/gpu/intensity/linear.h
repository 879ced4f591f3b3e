/* Small symmetric systems, solved in place, and numbers that are the same everywhere. Pure. A
 * matrix is n x n, row by row. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Of pow, log and the like: their last digits differ between processors, and the same trace shall
 * give the same bytes on all of them. */
static inline double linear_steady(double value)
{
    return nearbyint(value * 0x1p30) * 0x1p-30;
}

/* Cholesky's factor, in the lower half. False if the matrix is not positive definite. */
bool linear_factor(double *matrix, size_t n);

/* Solves for one right side, by the factor. */
void linear_solve(const double *factor, size_t n, double *side);

/* Writes the inverse, by the factor. */
void linear_invert(const double *factor, size_t n, double *ret_inverse);
