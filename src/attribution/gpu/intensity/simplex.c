#include "attribution/gpu/intensity/simplex.h"

#include <math.h>

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
        double least = INFINITY, most = -INFINITY, slope, curvature, moved;
        size_t grows = n, shrinks = n;

        for (size_t i = 0; i < n; i++) {
            if (gradient[i] < least) {
                least = gradient[i];
                grows = i;
            }
            if (gradient[i] > most && parts[i] > 0) {
                most = gradient[i];
                shrinks = i;
            }
        }
        if (shrinks == n || grows == n)
            return;
        slope = most - least;
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
