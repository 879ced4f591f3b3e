/* The best mixture: parts that are not negative and sum to 1. Pure. */
#pragma once

#include <stddef.h>

/*
 * Minimises x'Hx/2 - b'x over the mixtures x, from the mixture that `parts` holds. H is n x n,
 * symmetric and positive semidefinite. `gradient` is scratch of n.
 */
void simplex_minimise(const double *matrix, const double *linear, size_t n, double *parts,
                      double *gradient);
