#include "attribution/gpu/intensity/linear.h"

#include <math.h>

#include "core/macros.h"

/* Of linear_minimise. */
enum { STEPS_PER_PART = 12 };
/* Of linear_minimise_positive. */
enum { SWEEPS_MAX = 400 };
static const double TOLERANCE = 1e-6;

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
     * and the solution is known by symmetry. */
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

/* Moves weight between two parts at a time: from the one with the steepest slope to the one with
 * the least, as far as is best or as there is. */
void linear_minimise(const double *matrix, const double *linear, size_t n, double *parts)
{
    double gradient[LINEAR_SIZE_MAX];

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

/* Towards the minimum over those parts that are not 0 now. True if one of them became 0 first. */
static bool solve_support(const double *matrix, const double *linear, size_t n, double *parts)
{
    double factor[LINEAR_SIZE_MAX * LINEAR_SIZE_MAX], goal[LINEAR_SIZE_MAX], step = 1;
    size_t support[LINEAR_SIZE_MAX], count = 0, first = n;

    for (size_t i = 0; i < n; i++)
        if (parts[i] > 0) {
            goal[count] = linear[i];
            support[count++] = i;
        }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k <= i; k++)
            factor[i * count + k] = matrix[support[i] * n + support[k]];
    if (!linear_factor(factor, count))
        return false;
    linear_solve(factor, count, goal);
    for (size_t i = 0; i < count; i++) {
        double part = parts[support[i]];

        if (goal[i] < 0 && part < step * (part - goal[i])) {
            step = part / (part - goal[i]);
            first = support[i];
        }
    }
    for (size_t i = 0; i < count; i++)
        parts[support[i]] = MAX(parts[support[i]] + step * (goal[i] - parts[support[i]]), 0.0);
    if (first < n)
        parts[first] = 0;
    return first < n;
}

/* Sweeps find which parts are not 0: one at a time, as far as is best or down to 0. Between them
 * a solution finds how much they are: by sweeps alone, parts that are alike would take hundreds. */
void linear_minimise_positive(const double *matrix, const double *linear, size_t n, double *parts)
{
    for (size_t sweep = 0; sweep < SWEEPS_MAX; sweep++) {
        double most = 0;

        for (size_t i = 0; i < n; i++) {
            double slope = linear[i], moved;

            if (matrix[i * n + i] <= 0)
                continue;
            for (size_t k = 0; k < n; k++)
                slope -= matrix[i * n + k] * parts[k];
            moved = MAX(slope / matrix[i * n + i], -parts[i]);
            parts[i] += moved;
            most = MAX(most, fabs(moved));
        }
        if (!(most > TOLERANCE))
            return;
        if (sweep % 2 == 1)
            while (solve_support(matrix, linear, n, parts))
                ;
    }
}
