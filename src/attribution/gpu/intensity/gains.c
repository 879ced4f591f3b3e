#include "attribution/gpu/intensity/gains.h"

#include <math.h>

#include "core/macros.h"

/* How programs differ, relative: data that is easy takes half of the power (measured, H200). */
static const double SPREAD = 0.4;

static const double NOISE = 0.1, NOISE_MIN_W = 10; /* of a slot */
static const double FADE_SLOTS = 1000;             /* in which a gain becomes as open as at first */
static const double GAIN_MIN = 0.1;

/* Consecutive slots of one program are off alike: so many are one independent observation. A
 * judgement: no board in MIG mode was at hand. */
static const double ALIKE_SLOTS = 5;

void gains_follow(struct gains *gains, size_t part, uint32_t programs)
{
    bool was_empty;

    if (part >= GAINS_MAX)
        return;
    was_empty = gains->is_empty[part];
    gains->is_empty[part] = programs == 0;
    if (programs == 0 || (gains->programs[part] == programs && !was_empty))
        return;
    gains->programs[part] = programs;
    gains->gain[part] = 1;
    for (size_t i = 0; i < GAINS_MAX; i++)
        gains->covariance[part * GAINS_MAX + i] = gains->covariance[i * GAINS_MAX + part] = 0;
    gains->covariance[part * GAINS_MAX + part] = SPREAD * SPREAD;
}

/* A program may do something else by now. No gain is less known than at first. */
static void fade(struct gains *gains)
{
    for (size_t i = 0; i < GAINS_MAX; i++) {
        double *own = &gains->covariance[i * GAINS_MAX + i], excess;

        if (gains->programs[i] == 0)
            continue;
        *own += SPREAD * SPREAD / FADE_SLOTS;
        excess = sqrt(*own) / SPREAD;
        for (size_t k = 0; k < GAINS_MAX && excess > 1; k++) {
            gains->covariance[i * GAINS_MAX + k] /= excess;
            gains->covariance[k * GAINS_MAX + i] /= excess;
        }
    }
}

static double gain_of(const struct gains *gains, size_t part)
{
    return gains->programs[part] != 0 ? gains->gain[part] : 1;
}

void gains_learn(struct gains *gains, const double expected_w[GAINS_MAX], double watts)
{
    double noise = NOISE * watts + NOISE_MIN_W, variance = ALIKE_SLOTS * noise * noise, off = watts;
    double with[GAINS_MAX] = {0};

    fade(gains);
    for (size_t i = 0; i < GAINS_MAX; i++) {
        for (size_t k = 0; k < GAINS_MAX; k++)
            with[i] += gains->covariance[i * GAINS_MAX + k] * expected_w[k];
        off -= gain_of(gains, i) * expected_w[i];
    }
    for (size_t i = 0; i < GAINS_MAX; i++)
        variance += expected_w[i] * with[i];
    for (size_t i = 0; i < GAINS_MAX; i++) {
        gains->gain[i] =
            MIN(MAX(gains->gain[i] + with[i] * off / variance, GAIN_MIN), 1 / GAIN_MIN);
        for (size_t k = 0; k < GAINS_MAX; k++)
            gains->covariance[i * GAINS_MAX + k] -= with[i] * with[k] / variance;
    }
}

/* The variance of a part's share s of what all draw: with the covariance C of that it is
 * C_ii - 2 s (C 1)_i + s^2 1'C1, over the square of the sum. */
static double share_variance(const double covariance[GAINS_MAX * GAINS_MAX],
                             const double expected_w[GAINS_MAX], size_t part, double share,
                             double total_w)
{
    double sum = 0;

    for (size_t i = 0; i < GAINS_MAX; i++)
        for (size_t k = 0; k < GAINS_MAX; k++)
            sum += ((i == part) - share) * ((k == part) - share) * expected_w[i] * expected_w[k] *
                   covariance[i * GAINS_MAX + k];
    return MAX(sum, 0.0) / (total_w * total_w);
}

double gains_error(const struct gains *gains, const double expected_w[GAINS_MAX], size_t part,
                   double share)
{
    double start[GAINS_MAX * GAINS_MAX] = {0}, at_first = 0, total_w = 0, own, open, known;

    if (part >= GAINS_MAX || share <= 0)
        return 0;
    for (size_t i = 0; i < GAINS_MAX; i++) {
        at_first += expected_w[i];
        total_w += gain_of(gains, i) * expected_w[i];
        start[i * GAINS_MAX + i] = SPREAD * SPREAD;
    }
    if (total_w <= 0)
        return 0;
    own = gain_of(gains, part) * expected_w[part] / total_w;
    open = share_variance(start, expected_w, part, expected_w[part] / at_first, at_first);
    known = share_variance(gains->covariance, expected_w, part, own, total_w);
    return MIN(hypot(sqrt(MIN(known, open)), own - share) / share, 1.0);
}
