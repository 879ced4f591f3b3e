/* Small symmetric systems: n x n matrices, row by row, solved in place. Pure. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { LINEAR_SIZE_MAX = 33 };

/* Rounds results of pow, log and the like: their last digits differ between processors, and the
 * same trace must give the same bytes on all of them. */
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

/* Minimises x'Hx/2 - b'x over the mixtures x (not negative, with the sum 1), from the mixture in
 * `parts`. H is positive semidefinite and has at most LINEAR_SIZE_MAX rows. */
void linear_minimise(const double *matrix, const double *linear, size_t n, double *parts);

/* Minimises the same over all x that are not negative, from the x in `parts`. Where H is singular,
 * one of the minima. */
void linear_minimise_positive(const double *matrix, const double *linear, size_t n, double *parts);
