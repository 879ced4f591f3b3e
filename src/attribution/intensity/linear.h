/* Small symmetric systems, solved in place. Pure. A matrix is n x n, row by row. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Cholesky's factor, in the lower half. False if the matrix is not positive definite. */
bool linear_factor(double *matrix, size_t n);

/* Solves for one right side, by the factor. */
void linear_solve(const double *factor, size_t n, double *side);

/* Writes the inverse, by the factor. */
void linear_invert(const double *factor, size_t n, double *ret_inverse);
