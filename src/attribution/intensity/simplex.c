#include "attribution/intensity/simplex.h"

#include "core/macros.h"

enum { STEPS_PER_PART = 12 };
static const double TOLERANCE = 1e-6;

/*
 * Moves weight between two parts at a time: from the one that gains most by shrinking to the one
 * that gains most by growing, as far as is best or as there is.
 */
void simplex_minimise(const double *matrix, const double *linear, size_t n, double *parts,
                      double *gradient)
{
    for (size_t i = 0; i < n; i++) {
        gradient[i] = -linear[i];
        for (size_t k = 0; k < n; k++)
            gradient[i] += matrix[i * n + k] * parts[k];
    }
    for (size_t step = 0; step < STEPS_PER_PART * n; step++) {
        size_t grows = 0, shrinks = n;
        double slope, curvature, moved;

        for (size_t i = 0; i < n; i++) {
            if (gradient[i] < gradient[grows])
                grows = i;
            if (parts[i] > 0 && (shrinks == n || gradient[i] > gradient[shrinks]))
                shrinks = i;
        }
        if (shrinks == n)
            return;
        slope = gradient[shrinks] - gradient[grows];
        curvature = matrix[grows * n + grows] + matrix[shrinks * n + shrinks] -
                    2 * matrix[grows * n + shrinks];
        if (!(slope > TOLERANCE * (1 + curvature)))
            return;
        moved = curvature * parts[shrinks] > slope ? slope / curvature : parts[shrinks];
        parts[grows] += moved;
        parts[shrinks] = MAX(parts[shrinks] - moved, 0.0);
        for (size_t i = 0; i < n; i++) /* rows are columns */
            gradient[i] += moved * (matrix[grows * n + i] - matrix[shrinks * n + i]);
    }
}
