#include "attribution/gpu/intensity/unit_watts.h"

#include <math.h>
#include <string.h>

#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"

/* Fitted to 67 runs of real programs, alone on an H200 with a limit of 700 W. */
static const double START_WATTS[UNIT_COUNT] = {
    [UNIT_SM] = 10,    [UNIT_INTEGER] = 170, [UNIT_TENSOR] = 880, [UNIT_DRAM] = 610,
    [UNIT_FP64] = 470, [UNIT_FP32] = 770,    [UNIT_FP16] = 1370,
};
static const double START_LIMIT_W = 700;

/* How far a board's own may be from these: relative to each, and in all. */
static const double START_SPREAD = 0.5, START_SPREAD_MIN = 40;

static const double FADE = 0.9998; /* per slot: a half-life of an hour of seconds */
static const double NOISE = 0.1, NOISE_MIN_W = 10;
static const double RECENT_SLOTS = 300; /* those that the residual and the error are of */

/* A division by the watts of programs is off by the first as long as nothing tells them apart. */
static const double ERROR_START = 0.25, ERROR_MIN = 0.08;

/* The slots of one program are all off alike: this many are worth one independent observation. A
 * judgement: no board in MIG mode was at hand. */
static const double ALIKE_SLOTS = 30;

enum { LEARNED_SLOTS = 30 }; /* before that nothing is far off */

/* A slot further off than this, and than so many standard errors, is neither noise nor news. The
 * second was chosen between two scripted boards: 1.5 misses a jump by half, 1.0 finds one where
 * there is none. */
static const double FAR_OFF = 0.2, FAR_OFF_ERRORS = 1.2;

static double start_watts(size_t unit, double limit_watts)
{
    return START_WATTS[unit] * (limit_watts > 0 ? limit_watts : START_LIMIT_W) / START_LIMIT_W;
}

double unit_watts_of(const struct unit_watts *unit_watts, const double units[UNIT_COUNT],
                     double limit_watts)
{
    double sum = 0;

    for (size_t u = 0; u < UNIT_COUNT; u++)
        sum += units[u] *
               (unit_watts->weight > 0 ? unit_watts->watts[u] : start_watts(u, limit_watts));
    return sum;
}

static double start_precision(size_t unit, double limit_watts)
{
    double spread = MAX(START_SPREAD * start_watts(unit, limit_watts), START_SPREAD_MIN);

    return 1 / (spread * spread);
}

/* Finds the watts that explain the slots best and are near those that it began with. */
static void find_watts(struct unit_watts *unit_watts, double limit_watts)
{
    double matrix[UNIT_COUNT * UNIT_COUNT], linear[UNIT_COUNT];

    memcpy(matrix, unit_watts->matrix, sizeof(matrix));
    memcpy(linear, unit_watts->linear, sizeof(linear));
    for (size_t u = 0; u < UNIT_COUNT; u++) {
        double precision = start_precision(u, limit_watts);

        matrix[u * UNIT_COUNT + u] += precision;
        linear[u] += start_watts(u, limit_watts) * precision;
    }
    linear_minimise_positive(matrix, linear, UNIT_COUNT, unit_watts->watts);
}

/* The variance of what is linear in the units' watts: before anything was learned, and by what
 * `learned` has. */
static void find_variance(const double learned[UNIT_COUNT * UNIT_COUNT],
                          const double slope[UNIT_COUNT], double limit_watts, double *ret_start,
                          double *ret_now)
{
    double matrix[UNIT_COUNT * UNIT_COUNT], side[UNIT_COUNT];

    *ret_start = *ret_now = 0;
    memcpy(side, slope, sizeof(side));
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        double precision = start_precision(i, limit_watts);

        for (size_t k = 0; k < UNIT_COUNT; k++)
            matrix[i * UNIT_COUNT + k] =
                learned[i * UNIT_COUNT + k] / ALIKE_SLOTS + (i == k ? precision : 0);
        *ret_start += slope[i] * slope[i] / precision;
    }
    if (!linear_factor(matrix, UNIT_COUNT)) {
        *ret_now = *ret_start;
        return;
    }
    linear_solve(matrix, UNIT_COUNT, side);
    for (size_t i = 0; i < UNIT_COUNT; i++)
        *ret_now += slope[i] * side[i];
    *ret_now = MIN(MAX(*ret_now, 0.0), *ret_start);
}

/* Is a slot further off than what was not learned yet can explain? Then 1 or -1. */
static int far_off(const struct unit_watts *unit_watts, const double units[UNIT_COUNT],
                   double expected, double watts, double limit_watts)
{
    double start, now;

    if (fabs(expected / watts - 1) <= FAR_OFF || unit_watts->weight < LEARNED_SLOTS)
        return 0;
    find_variance(unit_watts->matrix, units, limit_watts, &start, &now);
    return fabs(expected - watts) <= FAR_OFF_ERRORS * sqrt(now) ? 0 : expected < watts ? -1 : 1;
}

/* Takes how far a slot was off. False if it is not to be learned from: one alone is noise at the
 * edge of a load, but a second one that is off alike shows that units draw something else now
 * (tensor pipes draw twice as much for random numbers as for zeros). Then all begins anew. */
static bool take_residual(struct unit_watts *unit_watts, double off, int far)
{
    bool is_again = far != 0 && far == unit_watts->far_before;

    unit_watts->far_before = far;
    unit_watts->slots = MIN(unit_watts->slots + 1, RECENT_SLOTS);
    unit_watts->residual += (off - unit_watts->residual) / unit_watts->slots;
    if (is_again)
        *unit_watts = (struct unit_watts){.slots = unit_watts->slots,
                                          .residual = MAX(unit_watts->residual, off)};
    return far == 0 || is_again;
}

void unit_watts_learn(struct unit_watts *unit_watts, const double units[UNIT_COUNT], double watts,
                      double limit_watts)
{
    double expected = unit_watts_of(unit_watts, units, limit_watts), noise, precision;

    if (watts <= 0 || expected <= 0 ||
        !take_residual(unit_watts, fabs(expected / watts - 1),
                       far_off(unit_watts, units, expected, watts, limit_watts)))
        return;
    noise = NOISE * watts + NOISE_MIN_W;
    precision = 1 / (noise * noise);
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        for (size_t k = 0; k < UNIT_COUNT; k++) {
            double *cell = &unit_watts->matrix[i * UNIT_COUNT + k];
            double *recent = &unit_watts->recent[i * UNIT_COUNT + k];
            double added = precision * units[i] * units[k];

            *cell = FADE * *cell + added;
            *recent = (1 - 1 / RECENT_SLOTS) * *recent + added;
        }
        unit_watts->linear[i] = FADE * unit_watts->linear[i] + precision * units[i] * watts;
    }
    unit_watts->weight = FADE * unit_watts->weight + 1;
    find_watts(unit_watts, limit_watts);
}

double unit_watts_error(const struct unit_watts *unit_watts, const double part[UNIT_COUNT],
                        const double all[UNIT_COUNT], double limit_watts)
{
    double total = unit_watts_of(unit_watts, all, limit_watts), slope[UNIT_COUNT], start, now;
    double share = total > 0 ? unit_watts_of(unit_watts, part, limit_watts) / total : 0, unlearned;

    if (share <= 0)
        return 1;
    for (size_t u = 0; u < UNIT_COUNT; u++) /* of the share, relative to it */
        slope[u] = (part[u] / share - all[u]) / total;
    find_variance(unit_watts->recent, slope, limit_watts, &start, &now);
    unlearned = start > 0 ? sqrt(now / start) : 1;
    return MAX(sqrt(now),
               (1 - share) * MAX(MAX(unit_watts->residual, ERROR_MIN), ERROR_START * unlearned));
}
