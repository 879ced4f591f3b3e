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
static const double WEIGHT_MAX = 300; /* of the residual */

/* A division by the watts of programs is off by the first as long as little was learned. */
static const double ERROR_START = 0.25, ERROR_MIN = 0.08;
enum { LEARNED_SLOTS = 30 };

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

/* Finds the watts that explain the slots best and are near those that it began with. */
static void find_watts(struct unit_watts *unit_watts, double limit_watts)
{
    double matrix[UNIT_COUNT * UNIT_COUNT], linear[UNIT_COUNT];

    memcpy(matrix, unit_watts->matrix, sizeof(matrix));
    memcpy(linear, unit_watts->linear, sizeof(linear));
    for (size_t u = 0; u < UNIT_COUNT; u++) {
        double start = start_watts(u, limit_watts);
        double spread = MAX(START_SPREAD * start, START_SPREAD_MIN);

        matrix[u * UNIT_COUNT + u] += 1 / (spread * spread);
        linear[u] += start / (spread * spread);
    }
    linear_minimise_positive(matrix, linear, UNIT_COUNT, unit_watts->watts);
}

void unit_watts_learn(struct unit_watts *unit_watts, const double units[UNIT_COUNT], double watts,
                      double limit_watts)
{
    double expected = unit_watts_of(unit_watts, units, limit_watts), noise, precision;

    if (watts <= 0 || expected <= 0)
        return;
    noise = NOISE * watts + NOISE_MIN_W;
    precision = 1 / (noise * noise);
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        for (size_t k = 0; k < UNIT_COUNT; k++) {
            double *cell = &unit_watts->matrix[i * UNIT_COUNT + k];

            *cell = FADE * *cell + precision * units[i] * units[k];
        }
        unit_watts->linear[i] = FADE * unit_watts->linear[i] + precision * units[i] * watts;
    }
    unit_watts->weight = FADE * unit_watts->weight + 1;
    unit_watts->residual +=
        (fabs(expected / watts - 1) - unit_watts->residual) / MIN(unit_watts->weight, WEIGHT_MAX);
    find_watts(unit_watts, limit_watts);
}

double unit_watts_error(const struct unit_watts *unit_watts)
{
    if (unit_watts->weight < LEARNED_SLOTS)
        return ERROR_START;
    return MAX(unit_watts->residual, ERROR_MIN);
}
