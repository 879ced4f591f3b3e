/* Finding signatures, watts and shares from the states: expectation and maximisation in turns. */
#include <math.h>
#include <string.h>

#include "attribution/gpu/intensity/linear.h"
#include "attribution/gpu/intensity/mixture.h"
#include "core/macros.h"

/*
 * Samples are worse than draws: they beat against the time slices (18 of 20 went to a process that
 * had half of the time). Their variance is this much more, and this much never averages out.
 */
static const double DRAW_VARIANCE = 1.5, BEAT_VARIANCE = 0.03;
static const double PRIOR_DRAWS = 1;
static const double DRAW_FLOOR = 0.05; /* of p(1 - p): a share of 0 may still be wrong */

/* A state counts as this many slots at most: what is off there is off in all of them. */
static const double WEIGHT_MAX = 10;
/* How firmly signatures are tied together without any data, in slots. */
static const double TIE = 0.03;

/* Watts of a state are off by a part of them (the clock, the temperature, other tenants' data in
 * the cache), by a few watts, and by the counter's ticks. */
static const double WATTS_NOISE = 0.08, WATTS_FLOOR = 4, WATTS_TICK_NOISE = 0.3;
static const double WATTS_SPREAD = 1; /* of processes, as a part of the mean */
static const double WATTS_MIN = 0.5;

/* A capped board does more work per joule; the exponent of the clock is known so well. */
static const double CLOCK_ERROR = 0.7;

/* With so much evidence for it (a logarithm of likelihoods) a difference is believed. */
static const double EVIDENCE = 1, SHARE_MIN = 0.05;

static const double SURE_ERROR = 0.05;

/* The sums of a least squares over all states, for all tenants. */
struct normal {
    double matrix[TENANTS_MAX * TENANTS_MAX];
    double sides[FEATURE_COUNT][TENANTS_MAX];
};

/* All that a refinement looks at. */
struct fit {
    struct intensity *intensity;
    size_t count;
    uint32_t tenants[TENANTS_MAX];
    uint32_t places[TENANTS_MAX]; /* of a tenant in `tenants` */
    double won[TENANTS_MAX];      /* in all states */
    double mean[FEATURE_COUNT];   /* over all states */
    double mean_watts;
};

static double weight_of(const struct state *state)
{
    return MIN(state->weight, WEIGHT_MAX);
}

/* Expectation: whose time a state was, by its samples and features. */
static void find_shares(const struct fit *fit, struct state *state, struct mixture *mixture)
{
    double draws = PRIOR_DRAWS, prior = 0, start = 0, effective;

    mixture_begin(mixture, state->listed & fit->intensity->known);
    for (size_t i = 0; i < mixture->count; i++) {
        uint32_t t = mixture->tenants[i];

        mixture->parts[i] = state->share[t];
        start += state->share[t];
        if (t == SWITCHED)
            continue;
        draws += state->won[t];
        prior += fit->won[t] + 0.5;
    }
    effective = draws / (DRAW_VARIANCE + BEAT_VARIANCE * (draws - PRIOR_DRAWS));
    for (size_t i = 0; i < mixture->count; i++) {
        uint32_t t = mixture->tenants[i];
        double drawn, part;

        if (t == SWITCHED) {
            mixture_add_expectation(mixture, i, 0, 1 / (MIXTURE_SWITCHING * MIXTURE_SWITCHING));
            mixture->parts[i] = start > 0 ? mixture->parts[i] : 0;
            continue;
        }
        drawn = (state->won[t] + PRIOR_DRAWS * (fit->won[t] + 0.5) / prior) / draws;
        if (start <= 0)
            mixture->parts[i] = drawn;
        part = mixture->parts[i];
        mixture_add_expectation(mixture, i, drawn, effective / (part * (1 - part) + DRAW_FLOOR));
    }
    mixture_add_features(mixture, fit->intensity, state);
    if (start > 0)
        for (size_t i = 0; i < mixture->count; i++)
            mixture->parts[i] /= start;
    mixture_solve(mixture);
    memset(state->share, 0, sizeof(state->share));
    for (size_t i = 0; i < mixture->count; i++)
        state->share[mixture->tenants[i]] = mixture->parts[i];
}

/* Adds a state's shares, and how uncertain they are, to the least squares of the tenants. */
static void add_to_normal(const struct fit *fit, const struct mixture *mixture, double weight,
                          struct normal *normal)
{
    for (size_t i = 0; i < mixture->count; i++) {
        if (mixture->tenants[i] == SWITCHED)
            continue;
        for (size_t k = 0; k < mixture->count; k++) {
            if (mixture->tenants[k] == SWITCHED)
                continue;
            normal->matrix[fit->places[mixture->tenants[i]] * fit->count +
                           fit->places[mixture->tenants[k]]] +=
                weight * (mixture->parts[i] * mixture->parts[k] +
                          mixture->covariance[i * mixture->count + k]);
        }
    }
}

static void tie(const struct fit *fit, double weight, struct normal *normal)
{
    for (size_t i = 0; i < fit->count; i++)
        normal->matrix[i * fit->count + i] += weight;
}

/* Maximisation: what each tenant shows while it is resident, given the shares. */
static void find_signatures(struct fit *fit)
{
    struct states *states = &fit->intensity->states;
    struct normal normal = {0};
    struct mixture mixture;

    for (size_t s = 0; s < states->count; s++) {
        struct state *state = &states->all[s];
        double weight = weight_of(state);

        find_shares(fit, state, &mixture);
        add_to_normal(fit, &mixture, weight, &normal);
        for (size_t f = 0; f < FEATURE_COUNT; f++) {
            /* What is lost in switching shows nothing. */
            double above =
                states_feature(states, state, f) - (1 - state->share[SWITCHED]) * fit->mean[f];

            for (size_t i = 0; i < mixture.count; i++)
                if (mixture.tenants[i] != SWITCHED)
                    normal.sides[f][fit->places[mixture.tenants[i]]] +=
                        weight * mixture.parts[i] * above;
        }
    }
    tie(fit, TIE, &normal);
    if (!linear_factor(normal.matrix, fit->count))
        return;
    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double most = f == FEATURE_POWER || states->scale[f] <= 0 ? INFINITY : 1 / states->scale[f];

        linear_solve(normal.matrix, fit->count, normal.sides[f]);
        for (size_t i = 0; i < fit->count; i++)
            fit->intensity->signatures[fit->tenants[i]][f] =
                states->scale[f] * MIN(MAX(fit->mean[f] + normal.sides[f][i], 0.0), most);
    }
}

/* As a variance: how well the watts of a state are what its tenants draw. */
static double watts_variance(const struct fit *fit, const struct state *state, double watts)
{
    double part = WATTS_NOISE * watts;
    double ticks = WATTS_TICK_NOISE * fit->mean_watts / MAX(state->weight, 0.2);

    return part * part + WATTS_FLOOR * WATTS_FLOOR + ticks * ticks;
}

static void normalise_parts(struct mixture *mixture)
{
    double sum = 0;

    for (size_t i = 0; i < mixture->count; i++)
        if (mixture->tenants[i] != SWITCHED)
            sum += mixture->parts[i];
    for (size_t i = 0; i < mixture->count && sum > 0; i++)
        mixture->parts[i] /= sum;
}

/* How much worse the watts explain the states than they should; 1 at least. */
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

/* The watts: as a signature, but in their own measure, where small ones count as much as large. */
static void find_watts(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;
    double inverse[TENANTS_MAX * TENANTS_MAX], spread = WATTS_SPREAD * fit->mean_watts, misfit;
    struct normal normal = {0};
    struct mixture mixture;

    for (size_t s = 0; s < intensity->states.count; s++) {
        struct state *state = &intensity->states.all[s];
        double watts = states_watts(&intensity->states, state);
        double weight = weight_of(state) / watts_variance(fit, state, watts);

        find_shares(fit, state, &mixture);
        normalise_parts(&mixture);
        add_to_normal(fit, &mixture, weight, &normal);
        for (size_t i = 0; i < mixture.count; i++)
            if (mixture.tenants[i] != SWITCHED)
                normal.sides[0][fit->places[mixture.tenants[i]]] +=
                    weight * mixture.parts[i] * (watts - fit->mean_watts);
    }
    tie(fit, 1 / MAX(spread * spread, 1.0), &normal);
    if (!linear_factor(normal.matrix, fit->count))
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

/*
 * How much better the shares predict who won the samples than the mean shares do, as a logarithm of
 * likelihoods. Shares that were bent only to explain the device's activity predict them worse.
 */
static double find_evidence(const struct fit *fit)
{
    const struct states *states = &fit->intensity->states;
    double gain = 0;

    for (size_t s = 0; s < states->count; s++) {
        const struct state *state = &states->all[s];
        double present = MAX(1 - state->share[SWITCHED], SHARE_MIN), won = 0;

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

/* Takes back what the samples do not bear out: then all tenants are alike. */
static void take_back_unfounded(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;
    double part = MIN(MAX(find_evidence(fit) / EVIDENCE, 0.0), 1.0);
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
        find_shares(fit, &intensity->states.all[s], &mixture);
}

/* A tenant that is seen at several clocks does not cost the same at all of them. */
static void find_clock_errors(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;

    for (size_t i = 0; i < fit->count; i++) {
        double weights = 0, mean = 0, squared = 0, variance;
        uint32_t t = fit->tenants[i];

        for (size_t s = 0; s < intensity->states.count; s++) {
            const struct state *state = &intensity->states.all[s];
            double weight = state->weight * state->share[t];

            weights += weight;
            mean += weight * state->log_clock;
            squared += weight * state->log_clock_squared;
        }
        variance = weights > 0 ? squared / weights - mean / weights * (mean / weights) : 0;
        intensity->clock_error[t] = CLOCK_ERROR * sqrt(MAX(variance, 0.0));
    }
}

static void find_sure(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;

    for (size_t i = 0; i < fit->count; i++) {
        uint32_t t = fit->tenants[i];
        double error = SURE_ERROR * intensity->watts[t];

        if (intensity->watts_error[t][t] < error * error && intensity->clock_error[t] < SURE_ERROR)
            intensity->sure |= 1U << t;
    }
}

/* Begins with what the samples say, and with tenants that are alike. */
static void prepare(struct fit *fit)
{
    struct intensity *intensity = fit->intensity;
    struct states *states = &intensity->states;
    double weights = 0, draws = 0;
    uint32_t listed = 0;

    intensity->known = 0;
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
        /* Who never won a sample did nothing, unless nobody ever did. */
        if (!(listed & (1U << t)) || (draws > 0 && fit->won[t] <= 0))
            continue;
        intensity->known |= 1U << t;
        fit->places[t] = (uint32_t)fit->count;
        fit->tenants[fit->count++] = t;
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            intensity->signatures[t][f] = fit->mean[f] * states->scale[f];
    }
}

void intensity_refine(struct intensity *intensity, size_t rounds)
{
    struct fit fit = {.intensity = intensity};

    intensity->sure = 0;
    prepare(&fit);
    if (fit.count == 0)
        return;
    for (size_t i = 0; i < rounds; i++)
        find_signatures(&fit);
    find_watts(&fit);
    take_back_unfounded(&fit);
    find_clock_errors(&fit);
    find_sure(&fit);
}
