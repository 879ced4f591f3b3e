/* Estimates signatures, watts and shares from the states by expectation-maximisation. */
#include <math.h>
#include <string.h>

#include "attribution/gpu/intensity/linear.h"
#include "attribution/gpu/intensity/mixture.h"
#include "core/macros.h"

/* Samples are worse than independent draws: they beat against the time slices (18 of 20 went to a
 * process with half of the time). Their variance is larger by this factor, and this much of it
 * never averages out. */
static const double DRAW_VARIANCE = 1.5, BEAT_VARIANCE = 0.03;
static const double PRIOR_DRAWS = 1;
static const double DRAW_FLOOR = 0.05; /* of p(1 - p): a share of 0 may still be wrong */

/* A state counts as at most this many slots: its error is the same in all of them. */
static const double WEIGHT_MAX = 10;
/* The weight of the prior that all signatures are equal, in slots. */
static const double SIGNATURE_PRIOR = 0.03;

/* The watts of a state are off by a part of them (clock, temperature, other tenants' data in the
 * cache), by a few watts, and by the counter's ticks. */
static const double WATTS_NOISE = 0.08, WATTS_FLOOR = 4, WATTS_TICK_NOISE = 0.3;
static const double WATTS_SPREAD = 1; /* between processes, relative to the mean */
static const double WATTS_MIN = 0.5;

/* A capped board does more work per joule; the error of the clock's exponent. */
static const double CLOCK_ERROR = 0.7;

/* A difference needs this log likelihood ratio to be accepted in full. */
static const double EVIDENCE = 1, SHARE_MIN = 0.05;

/* Watts with a smaller relative error are certain. */
static const double CERTAIN_ERROR = 0.05;

struct fit {
    struct intensity *intensity;
    size_t count;
    uint32_t tenants[TENANTS_MAX];
    uint32_t places[TENANTS_MAX]; /* of a tenant in `tenants` */
    double won[TENANTS_MAX];      /* in all states */
    double mean[FEATURE_COUNT];   /* over all states */
    double mean_watts;
};

/* The normal equations of a least squares over all states, for all tenants. */
struct normal {
    double matrix[TENANTS_MAX * TENANTS_MAX];
    double sides[FEATURE_COUNT][TENANTS_MAX];
};

static double weight_of(const struct state *state)
{
    return MIN(state->weight, WEIGHT_MAX);
}

/* Expectation: the shares of a state, by its samples and features. */
static void estimate_shares(const struct fit *fit, struct state *state, struct mixture *mixture)
{
    double draws = PRIOR_DRAWS, prior = 0, start = 0, effective;

    mixture_begin(mixture, state->listed & fit->intensity->known);
    for (size_t i = 0; i < mixture->count; i++) {
        mixture->parts[i] = state->share[mixture->tenants[i]];
        start += mixture->parts[i];
    }
    for (size_t i = 0; i < mixture->tenant_count; i++) {
        draws += state->won[mixture->tenants[i]];
        prior += fit->won[mixture->tenants[i]] + 0.5;
    }
    effective = draws / (DRAW_VARIANCE + BEAT_VARIANCE * (draws - PRIOR_DRAWS));
    for (size_t i = 0; i < mixture->tenant_count; i++) {
        uint32_t t = mixture->tenants[i];
        double drawn = (state->won[t] + PRIOR_DRAWS * (fit->won[t] + 0.5) / prior) / draws, part;

        if (start <= 0)
            mixture->parts[i] = drawn;
        part = mixture->parts[i];
        mixture_add_expectation(mixture, i, drawn, effective / (part * (1 - part) + DRAW_FLOOR));
    }
    mixture_add_features(mixture, fit->intensity, state);
    for (size_t i = 0; i < mixture->count && start > 0; i++)
        mixture->parts[i] /= start;
    mixture_solve(mixture);
    memset(state->share, 0, sizeof(state->share));
    for (size_t i = 0; i < mixture->count; i++)
        state->share[mixture->tenants[i]] = mixture->parts[i];
}

/* Adds a state's shares and their covariance. */
static void add_to_normal(const struct fit *fit, const struct mixture *mixture, double weight,
                          struct normal *normal)
{
    for (size_t i = 0; i < mixture->tenant_count; i++) {
        double *row = &normal->matrix[fit->places[mixture->tenants[i]] * fit->count];

        for (size_t k = 0; k < mixture->tenant_count; k++)
            row[fit->places[mixture->tenants[k]]] +=
                weight * (mixture->parts[i] * mixture->parts[k] +
                          mixture->covariance[i * mixture->count + k]);
    }
}

/* Adds the prior that all tenants are equal, and factors. False if it cannot be solved. */
static bool factor_normal(const struct fit *fit, double prior_weight, struct normal *normal)
{
    for (size_t i = 0; i < fit->count; i++)
        normal->matrix[i * fit->count + i] += prior_weight;
    return linear_factor(normal->matrix, fit->count);
}

/* Maximisation: what each tenant shows while it is resident, given the shares. */
static void estimate_signatures(struct fit *fit)
{
    struct states *states = &fit->intensity->states;
    struct normal normal = {0};
    struct mixture mixture;

    for (size_t s = 0; s < states->count; s++) {
        struct state *state = &states->all[s];
        double weight = weight_of(state);

        estimate_shares(fit, state, &mixture);
        add_to_normal(fit, &mixture, weight, &normal);
        for (size_t f = 0; f < FEATURE_COUNT; f++) {
            /* Nothing runs during switching. */
            double above =
                states_feature(states, state, f) - (1 - state->share[SWITCHING]) * fit->mean[f];

            for (size_t i = 0; i < mixture.tenant_count; i++)
                normal.sides[f][fit->places[mixture.tenants[i]]] +=
                    weight * mixture.parts[i] * above;
        }
    }
    if (!factor_normal(fit, SIGNATURE_PRIOR, &normal))
        return;
    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double most = f == FEATURE_POWER || states->scale[f] <= 0 ? INFINITY : 1 / states->scale[f];

        linear_solve(normal.matrix, fit->count, normal.sides[f]);
        for (size_t i = 0; i < fit->count; i++)
            fit->intensity->signatures[fit->tenants[i]][f] =
                states->scale[f] * MIN(MAX(fit->mean[f] + normal.sides[f][i], 0.0), most);
    }
}

/* The variance of a state's watts around those of its tenants. */
static double watts_variance(const struct fit *fit, const struct state *state, double watts)
{
    double part = WATTS_NOISE * watts;
    double ticks = WATTS_TICK_NOISE * fit->mean_watts / MAX(state->weight, 0.2);

    return part * part + WATTS_FLOOR * WATTS_FLOOR + ticks * ticks;
}

/* How much worse the watts explain the states than expected; at least 1. */
static double watts_misfit(const struct fit *fit)
{
    const struct intensity *intensity = fit->intensity;
    double sum = 0, weights = 0;

    for (size_t s = 0; s < intensity->states.count; s++) {
        const struct state *state = &intensity->states.all[s];
        double watts = states_watts(&intensity->states, state), explained = 0, present = 0;

        for (size_t i = 0; i < fit->count; i++) {
            explained += state->share[fit->tenants[i]] * intensity->watts[fit->tenants[i]];
            present += state->share[fit->tenants[i]];
        }
        if (present <= 0)
            continue;
        explained = watts - explained / present;
        sum += weight_of(state) * explained * explained / watts_variance(fit, state, watts);
        weights += weight_of(state);
    }
    return weights > 0 ? MAX(sum / weights, 1.0) : 1;
}

/* Watts: a signature in its own measure, in which small ones count as much as large ones. */
static void estimate_watts(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;
    double inverse[TENANTS_MAX * TENANTS_MAX], spread = WATTS_SPREAD * fit->mean_watts, misfit;
    struct normal normal = {0};
    struct mixture mixture;

    for (size_t s = 0; s < intensity->states.count; s++) {
        struct state *state = &intensity->states.all[s];
        double watts = states_watts(&intensity->states, state), sum = 0;
        double weight = weight_of(state) / watts_variance(fit, state, watts);

        estimate_shares(fit, state, &mixture);
        for (size_t i = 0; i < mixture.tenant_count; i++)
            sum += mixture.parts[i];
        for (size_t i = 0; i < mixture.tenant_count && sum > 0; i++)
            mixture.parts[i] /= sum;
        add_to_normal(fit, &mixture, weight, &normal);
        for (size_t i = 0; i < mixture.tenant_count; i++)
            normal.sides[0][fit->places[mixture.tenants[i]]] +=
                weight * mixture.parts[i] * (watts - fit->mean_watts);
    }
    if (!factor_normal(fit, 1 / MAX(spread * spread, 1.0), &normal))
        return;
    linear_solve(normal.matrix, fit->count, normal.sides[0]);
    linear_invert(normal.matrix, fit->count, inverse);
    for (size_t i = 0; i < fit->count; i++)
        intensity->watts[fit->tenants[i]] = MAX(fit->mean_watts + normal.sides[0][i], WATTS_MIN);
    misfit = watts_misfit(fit);
    for (size_t i = 0; i < fit->count; i++)
        for (size_t k = 0; k < fit->count; k++)
            intensity->watts_error[fit->tenants[i]][fit->tenants[k]] =
                misfit * inverse[i * fit->count + k];
}

/* How much better the shares predict the winners of samples than the mean shares do, as a log
 * likelihood ratio. Shares bent only to explain the device's activity predict them worse. */
static double log_evidence(const struct fit *fit)
{
    const struct states *states = &fit->intensity->states;
    double gain = 0;

    for (size_t s = 0; s < states->count; s++) {
        const struct state *state = &states->all[s];
        double present = MAX(1 - state->share[SWITCHING], SHARE_MIN), won = 0;

        for (uint32_t t = 0; t < TENANTS_MAX; t++)
            won += state->listed & (1U << t) ? fit->won[t] : 0;
        for (uint32_t t = 0; t < TENANTS_MAX; t++)
            if (state->won[t] > 0)
                gain +=
                    state->won[t] * linear_steady(log(MAX(state->share[t] / present, SHARE_MIN) /
                                                      MAX(fit->won[t] / won, SHARE_MIN)));
    }
    return gain / DRAW_VARIANCE;
}

/* Shrinks differences between tenants that the samples do not support. */
static void shrink_differences(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;
    double part = MIN(MAX(log_evidence(fit) / EVIDENCE, 0.0), 1.0);
    double doubt = (1 - part) * WATTS_SPREAD * fit->mean_watts;
    struct mixture mixture;

    if (part >= 1 || fit->count < 2)
        return;
    for (size_t i = 0; i < fit->count; i++) {
        uint32_t t = fit->tenants[i];

        for (size_t f = 0; f < FEATURE_COUNT; f++) {
            double mean = fit->mean[f] * intensity->states.scale[f];

            intensity->signatures[t][f] = mean + part * (intensity->signatures[t][f] - mean);
        }
        /* The mean is 0 where the idle level is above all that was measured. */
        intensity->watts[t] =
            MAX(fit->mean_watts + part * (intensity->watts[t] - fit->mean_watts), WATTS_MIN);
        intensity->watts_error[t][t] += doubt * doubt;
    }
    for (size_t s = 0; s < intensity->states.count; s++)
        estimate_shares(fit, &intensity->states.all[s], &mixture);
}

/* A tenant seen at several clocks does not draw the same at all of them. Without such doubts its
 * watts are certain. */
static void estimate_certainty(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;

    for (size_t i = 0; i < fit->count; i++) {
        double weights = 0, mean = 0, squared = 0, variance;
        uint32_t t = fit->tenants[i];
        double error = CERTAIN_ERROR * intensity->watts[t];

        for (size_t s = 0; s < intensity->states.count; s++) {
            const struct state *state = &intensity->states.all[s];
            double weight = state->weight * state->share[t];

            weights += weight;
            mean += weight * state->log_clock;
            squared += weight * state->log_clock_squared;
        }
        variance = weights > 0 ? squared / weights - mean / weights * (mean / weights) : 0;
        intensity->clock_error[t] = CLOCK_ERROR * sqrt(MAX(variance, 0.0));
        if (intensity->watts_error[t][t] < error * error &&
            intensity->clock_error[t] < CERTAIN_ERROR)
            intensity->certain |= 1U << t;
    }
}

/* Starts from the samples alone, with equal tenants. */
static void prepare(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;
    struct states *states = &intensity->states;
    double weights = 0, draws = 0;
    uint32_t listed = 0;

    for (size_t s = 0; s < states->count; s++) {
        struct state *state = &states->all[s];

        memset(state->share, 0, sizeof(state->share));
        listed |= state->listed;
        weights += state->weight;
        for (size_t t = 0; t < TENANTS_MAX; t++) {
            fit->won[t] += state->won[t];
            draws += state->won[t];
        }
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            fit->mean[f] += state->weight * states_feature(states, state, f);
        fit->mean_watts += state->weight * states_watts(states, state);
    }
    if (weights <= 0)
        return;
    for (size_t f = 0; f < FEATURE_COUNT; f++)
        fit->mean[f] /= weights;
    fit->mean_watts /= weights;
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        /* A tenant without samples did nothing, unless there are none at all. */
        if (!(listed & (1U << t)) || (draws > 0 && fit->won[t] <= 0))
            continue;
        intensity->known |= 1U << t;
        fit->places[t] = (uint32_t)fit->count;
        fit->tenants[fit->count++] = t;
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            intensity->signatures[t][f] = fit->mean[f] * states->scale[f];
    }
}

void intensity_fit(struct intensity *intensity, size_t rounds)
{
    struct fit fit = {.intensity = intensity};

    intensity->known = intensity->certain = 0;
    prepare(&fit);
    if (fit.count == 0)
        return;
    for (size_t i = 0; i < rounds; i++)
        estimate_signatures(&fit);
    estimate_watts(&fit);
    shrink_differences(&fit);
    estimate_certainty(&fit);
}
