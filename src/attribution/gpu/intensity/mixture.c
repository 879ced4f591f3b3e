#include "attribution/gpu/intensity/mixture.h"

#include <string.h>

#include "attribution/gpu/intensity/linear.h"

/* Time lost in switching, at most about this part. */
static const double SWITCHING_PART = 0.08;

void mixture_begin(struct mixture *mixture, uint32_t tenants)
{
    size_t n = 0;

    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        if (tenants & (1U << t))
            mixture->tenants[n++] = t;
    mixture->tenant_count = n;
    if (n > 1)
        mixture->tenants[n++] = SWITCHING;
    mixture->count = n;
    memset(mixture->matrix, 0, n * n * sizeof(mixture->matrix[0]));
    memset(mixture->linear, 0, n * sizeof(mixture->linear[0]));
    if (n > 1)
        mixture_add_expectation(mixture, n - 1, 0, 1 / (SWITCHING_PART * SWITCHING_PART));
}

double mixture_switching_misfit(double part)
{
    return part * part / (SWITCHING_PART * SWITCHING_PART);
}

void mixture_add_features(struct mixture *mixture, const struct intensity *intensity,
                          const struct state *state)
{
    const struct states *states = &intensity->states;
    size_t n = mixture->count;

    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double precision, feature, signatures[PARTS_MAX] = {0};

        if (states->scale[f] <= 0)
            continue;
        precision = 1 / states_variance(states, state, f);
        feature = states_feature(states, &state->mean, f);
        for (size_t i = 0; i < mixture->tenant_count; i++)
            signatures[i] = intensity->signatures[mixture->tenants[i]][f] / states->scale[f];
        for (size_t i = 0; i < n; i++) {
            mixture->linear[i] += precision * signatures[i] * feature;
            for (size_t k = 0; k <= i; k++)
                mixture->matrix[i * n + k] += precision * signatures[i] * signatures[k];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            mixture->matrix[k * n + i] = mixture->matrix[i * n + k];
}

void mixture_add_expectation(struct mixture *mixture, size_t i, double part, double precision)
{
    mixture->matrix[i * mixture->count + i] += precision;
    mixture->linear[i] += precision * part;
}

/* The covariance of these parts, given their sum. */
static void compute_covariance(struct mixture *mixture, const size_t *parts, size_t count)
{
    double factor[PARTS_MAX * PARTS_MAX], inverse[PARTS_MAX * PARTS_MAX], sums[PARTS_MAX] = {0};
    size_t n = mixture->count;
    double total = 0;

    memset(mixture->covariance, 0, n * n * sizeof(mixture->covariance[0]));
    if (count < 2)
        return;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            factor[i * count + k] = mixture->matrix[parts[i] * n + parts[k]];
    if (!linear_factor(factor, count))
        return;
    linear_invert(factor, count, inverse);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            sums[i] += inverse[i * count + k];
    for (size_t i = 0; i < count; i++)
        total += sums[i];
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            mixture->covariance[parts[i] * n + parts[k]] =
                inverse[i * count + k] - sums[i] * sums[k] / total;
}

void mixture_solve(struct mixture *mixture)
{
    size_t nonzero[PARTS_MAX], count = 0;

    linear_minimise(mixture->matrix, mixture->linear, mixture->count, mixture->parts);
    for (size_t i = 0; i < mixture->count; i++)
        if (mixture->parts[i] > 1e-3)
            nonzero[count++] = i;
    compute_covariance(mixture, nonzero, count);
}

void mixture_widen(struct mixture *mixture)
{
    size_t all[PARTS_MAX];

    for (size_t i = 0; i < mixture->count; i++)
        all[i] = i;
    compute_covariance(mixture, all, mixture->count);
}
