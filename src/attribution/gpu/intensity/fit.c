/* Estimates signatures, watts and shares from the states by expectation-maximisation. */
#include <math.h>
#include <string.h>

#include "attribution/gpu/intensity/fit_private.h"
#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"

/* Samples are worse than independent draws: they beat against the time slices (18 of 20 went to a
 * process with half of the time). Their variance is larger by this factor, and this much of it
 * never averages out. */
static const double DRAW_VARIANCE = 1.5, BEAT_VARIANCE = 0.03;

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
static const double EVIDENCE = 1;

/* Watts with a smaller relative error are certain. */
static const double CERTAIN_ERROR = 0.05;

/* The normal equations of a least squares over all states, for all tenants. */
struct normal {
    double matrix[TENANTS_MAX * TENANTS_MAX];
    double sides[FEATURE_COUNT][TENANTS_MAX];
};

double fit_weight(const struct state *state)
{
    return MIN(state->weight, FIT_WEIGHT_MAX);
}

double fit_effective_draws(double draws)
{
    return draws / (DRAW_VARIANCE + BEAT_VARIANCE * (draws - FIT_PRIOR_DRAWS));
}

/* Expectation. */
void intensity_estimate_shares(const struct intensity *intensity, struct state *state,
                               struct mixture *mixture)
{
    double draws = FIT_PRIOR_DRAWS, prior = 0, start = 0, effective;

    mixture_begin(mixture, state->listed & intensity->known);
    for (size_t i = 0; i < mixture->count; i++) {
        mixture->parts[i] = state->share[mixture->tenants[i]];
        start += mixture->parts[i];
    }
    for (size_t i = 0; i < mixture->tenant_count; i++) {
        draws += state->won[mixture->tenants[i]];
        prior += intensity->won[mixture->tenants[i]] + 0.5;
    }
    effective = fit_effective_draws(draws);
    for (size_t i = 0; i < mixture->tenant_count; i++) {
        uint32_t t = mixture->tenants[i];
        double drawn =
            (state->won[t] + FIT_PRIOR_DRAWS * (intensity->won[t] + 0.5) / prior) / draws;
        double part;

        if (start <= 0)
            mixture->parts[i] = drawn;
        part = mixture->parts[i];
        mixture_add_expectation(mixture, i, drawn,
                                effective / (part * (1 - part) + FIT_DRAW_FLOOR));
    }
    mixture_add_features(mixture, intensity, state);
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

const struct anchor *fit_anchor(const struct fit *fit, uint32_t tenant)
{
    static const struct anchor none;

    return fit->anchored & (1U << tenant) ? &fit->intensity->anchors[tenant] : &none;
}

/* Maximisation: what each tenant shows while it is resident, given the shares. */
static void estimate_signatures(struct fit *fit)
{
    struct states *states = &fit->intensity->states;
    struct normal normal = {0};
    struct mixture mixture;

    for (size_t s = 0; s < fit->state_count; s++) {
        struct state *state = fit->states[s];
        double weight = fit_weight(state);

        intensity_estimate_shares(fit->intensity, state, &mixture);
        add_to_normal(fit, &mixture, weight, &normal);
        for (size_t f = 0; f < FEATURE_COUNT; f++) {
            /* Nothing runs during switching. */
            double above = states_feature(states, &state->mean, f) -
                           (1 - state->share[SWITCHING]) * fit->mean[f];

            for (size_t i = 0; i < mixture.tenant_count; i++)
                normal.sides[f][fit->places[mixture.tenants[i]]] +=
                    weight * mixture.parts[i] * above;
        }
    }
    for (size_t i = 0; i < fit->count; i++) {
        const struct anchor *anchor = fit_anchor(fit, fit->tenants[i]);

        normal.matrix[i * fit->count + i] += anchor->weight;
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            normal.sides[f][i] +=
                anchor->weight * (states_feature(states, &anchor->activity, f) - fit->mean[f]);
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

double fit_watts_variance(double watts)
{
    return WATTS_NOISE * watts * WATTS_NOISE * watts + WATTS_FLOOR * WATTS_FLOOR;
}

/* The variance of a state's watts around those of its tenants. */
static double watts_variance(const struct fit *fit, const struct state *state, double watts)
{
    double ticks = WATTS_TICK_NOISE * fit->mean_watts / MAX(state->weight, 0.2);

    return fit_watts_variance(watts) + ticks * ticks;
}

/* How much worse the watts explain the states than expected; at least 1. */
static double watts_misfit(const struct fit *fit)
{
    const struct intensity *intensity = fit->intensity;
    double sum = 0, weights = 0;

    for (size_t s = 0; s < fit->state_count; s++) {
        const struct state *state = fit->states[s];
        double watts = states_watts(&intensity->states, &state->mean), explained = 0, present = 0;

        for (size_t i = 0; i < fit->count; i++) {
            explained += state->share[fit->tenants[i]] * intensity->watts[fit->tenants[i]];
            present += state->share[fit->tenants[i]];
        }
        if (present <= 0)
            continue;
        explained = watts - explained / present;
        sum += fit_weight(state) * explained * explained / watts_variance(fit, state, watts);
        weights += fit_weight(state);
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

    for (size_t s = 0; s < fit->state_count; s++) {
        struct state *state = fit->states[s];
        double watts = states_watts(&intensity->states, &state->mean), sum = 0;
        double weight = fit_weight(state) / watts_variance(fit, state, watts);

        intensity_estimate_shares(intensity, state, &mixture);
        for (size_t i = 0; i < mixture.tenant_count; i++)
            sum += mixture.parts[i];
        for (size_t i = 0; i < mixture.tenant_count && sum > 0; i++)
            mixture.parts[i] /= sum;
        add_to_normal(fit, &mixture, weight, &normal);
        for (size_t i = 0; i < mixture.tenant_count; i++)
            normal.sides[0][fit->places[mixture.tenants[i]]] +=
                weight * mixture.parts[i] * (watts - fit->mean_watts);
    }
    for (size_t i = 0; i < fit->count; i++) {
        const struct anchor *anchor = fit_anchor(fit, fit->tenants[i]);
        double watts = states_watts(&intensity->states, &anchor->activity);
        double weight = anchor->weight / fit_watts_variance(watts);

        normal.matrix[i * fit->count + i] += weight;
        normal.sides[0][i] += weight * (watts - fit->mean_watts);
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
    double all_won[TENANTS_MAX] = {0}, gain = 0;

    for (size_t s = 0; s < fit->state_count; s++)
        for (uint32_t t = 0; t < TENANTS_MAX; t++)
            all_won[t] += fit->states[s]->won[t];
    for (size_t s = 0; s < fit->state_count; s++) {
        const struct state *state = fit->states[s];
        double present = MAX(1 - state->share[SWITCHING], FIT_SHARE_MIN), won = 0;

        for (uint32_t t = 0; t < TENANTS_MAX; t++)
            won += state->listed & (1U << t) ? all_won[t] : 0;
        for (uint32_t t = 0; t < TENANTS_MAX; t++)
            if (state->won[t] > 0)
                gain += state->won[t] *
                        linear_steady(log(MAX(state->share[t] / present, FIT_SHARE_MIN) /
                                          MAX(all_won[t] / won, FIT_SHARE_MIN)));
    }
    return gain / DRAW_VARIANCE;
}

/* The tenants (bits) whose differences need no support by samples, which show nothing in a steady
 * mixture: those with an anchor like all their companions, so that the states would contradict a
 * wrong one. */
static uint32_t find_founded(const struct fit *fit)
{
    uint32_t unvalidated = 0;

    for (size_t s = 0; s < fit->state_count; s++)
        if (fit->states[s]->listed & fit->intensity->known & ~fit->anchored)
            unvalidated |= fit->states[s]->listed;
    return fit->anchored & ~unvalidated;
}

/* How long a tenant was resident, in slots. */
static double time_of(const struct fit *fit, uint32_t tenant)
{
    double time = 0;

    for (size_t s = 0; s < fit->state_count; s++)
        time += fit->states[s]->weight * fit->states[s]->share[tenant];
    return time;
}

/* Shrinks differences that the samples do not support, towards the mean of the tenants in doubt:
 * the others keep what they showed, and with them all still explain the states. One that is alone
 * in doubt is what the others leave. */
static void shrink_differences(struct fit *fit, double evidence)
{
    struct intensity *intensity = fit->intensity;
    double part = MIN(MAX(evidence / EVIDENCE, 0.0), 1.0);
    double mean[FEATURE_COUNT] = {0}, mean_watts = 0, weights = 0, doubt;
    uint32_t doubtful = ~find_founded(fit);
    struct mixture mixture;

    for (size_t i = 0; i < fit->count; i++) {
        uint32_t t = fit->tenants[i];
        double weight = doubtful & (1U << t) ? time_of(fit, t) : 0;

        weights += weight;
        mean_watts += weight * intensity->watts[t];
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            mean[f] += weight * intensity->signatures[t][f];
    }
    if (part >= 1 || fit->count < 2 || weights <= 0)
        return;
    doubt = (1 - part) * WATTS_SPREAD * mean_watts / weights;
    for (size_t i = 0; i < fit->count; i++) {
        uint32_t t = fit->tenants[i];

        if (!(doubtful & (1U << t)))
            continue;
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            intensity->signatures[t][f] =
                part * intensity->signatures[t][f] + (1 - part) * mean[f] / weights;
        /* It is 0 where the idle level is above all that was measured. */
        intensity->watts[t] =
            MAX(part * intensity->watts[t] + (1 - part) * mean_watts / weights, WATTS_MIN);
        intensity->watts_error[t][t] += doubt * doubt;
    }
    for (size_t s = 0; s < fit->state_count; s++)
        intensity_estimate_shares(intensity, fit->states[s], &mixture);
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

        for (size_t s = 0; s < fit->state_count; s++) {
            const struct state *state = fit->states[s];
            double weight = state->weight * state->share[t];

            weights += weight;
            mean += weight * state->mean.log_clock;
            squared += weight * state->mean.log_clock_squared;
        }
        variance = weights > 0 ? squared / weights - mean / weights * (mean / weights) : 0;
        intensity->clock_error[t] = CLOCK_ERROR * sqrt(MAX(variance, 0.0));
        if (intensity->watts_error[t][t] < error * error &&
            intensity->clock_error[t] < CERTAIN_ERROR)
            intensity->certain |= 1U << t;
    }
}

/* Finds the tenants at work. */
static void find_known(struct intensity *intensity)
{
    uint32_t listed = 0;
    double draws = 0;

    memset(intensity->won, 0, sizeof(intensity->won));
    for (size_t s = 0; s < intensity->states.count; s++) {
        listed |= intensity->states.all[s].listed;
        for (size_t t = 0; t < TENANTS_MAX; t++) {
            intensity->won[t] += intensity->states.all[s].won[t];
            draws += intensity->states.all[s].won[t];
        }
    }
    /* A tenant without samples did nothing, unless there are none at all. */
    for (uint32_t t = 0; t < TENANTS_MAX; t++)
        if ((listed & (1U << t)) && (draws <= 0 || intensity->won[t] > 0))
            intensity->known |= 1U << t;
}

/* The tenants (bits) that one of these met, directly or through others. */
static uint32_t find_group(const struct intensity *intensity, uint32_t tenants)
{
    uint32_t group = tenants, before;

    do {
        before = group;
        for (size_t s = 0; s < intensity->states.count; s++)
            if (intensity->states.all[s].listed & group)
                group |= intensity->states.all[s].listed & intensity->known;
    } while (group != before);
    return group;
}

/* Is it of a tenant that was alone long enough for an anchor? */
static bool is_alone(const struct intensity *intensity, const struct state *state)
{
    return state->listed && !(state->listed & (state->listed - 1)) &&
           intensity->alone[__builtin_ctz(state->listed)].weight >= INTENSITY_ALONE_MIN;
}

/* Gathers the states of a group, and what is remembered of its tenants. */
static void fit_begin(struct fit *fit, struct intensity *intensity, uint32_t group)
{
    bool is_single = !(group & (group - 1));

    *fit = (struct fit){.intensity = intensity};
    for (size_t s = 0; s < intensity->states.count; s++) {
        struct state *state = &intensity->states.all[s];

        /* What a tenant showed alone is its anchor, which may be contradicted in company. */
        if ((state->listed & group) && (is_single || !is_alone(intensity, state)))
            fit->states[fit->state_count++] = state;
    }
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        if (!(group & (1U << t)))
            continue;
        fit->places[t] = (uint32_t)fit->count;
        fit->tenants[fit->count++] = t;
        if (intensity->anchors[t].weight > 0)
            states_rescale(&intensity->states, &intensity->anchors[t].activity);
    }
}

static void compute_means(struct fit *fit)
{
    const struct states *states = &fit->intensity->states;
    double weights = 0;

    for (size_t s = 0; s < fit->state_count; s++) {
        const struct state *state = fit->states[s];

        weights += state->weight;
        for (size_t f = 0; f < FEATURE_COUNT; f++)
            fit->mean[f] += state->weight * states_feature(states, &state->mean, f);
        fit->mean_watts += state->weight * states_watts(states, &state->mean);
    }
    for (size_t f = 0; f < FEATURE_COUNT && weights > 0; f++)
        fit->mean[f] /= weights;
    if (weights > 0)
        fit->mean_watts /= weights;
}

void fit_run(struct fit *fit, uint32_t anchored, size_t rounds)
{
    struct intensity *intensity = fit->intensity;
    struct states *states = &intensity->states;

    fit->anchored = anchored;
    for (size_t s = 0; s < fit->state_count; s++)
        memset(fit->states[s]->share, 0, sizeof(fit->states[s]->share));
    for (size_t i = 0; i < fit->count; i++) {
        const struct anchor *anchor = fit_anchor(fit, fit->tenants[i]);

        for (size_t f = 0; f < FEATURE_COUNT; f++)
            intensity->signatures[fit->tenants[i]][f] =
                states->scale[f] *
                (anchor->weight > 0 ? states_feature(states, &anchor->activity, f) : fit->mean[f]);
    }
    for (size_t i = 0; i < rounds; i++)
        estimate_signatures(fit);
}

void intensity_fit(struct intensity *intensity, size_t rounds)
{
    uint32_t left;

    intensity->known = intensity->certain = intensity->anchored = intensity->measured =
        intensity->contradicted = 0;
    find_known(intensity);
    for (left = intensity->known; left != 0;) {
        uint32_t group = find_group(intensity, left & -left);
        struct fit fit;
        double evidence;

        fit_begin(&fit, intensity, group);
        compute_means(&fit);
        fit_validate(&fit, rounds);
        estimate_watts(&fit);
        evidence = log_evidence(&fit);
        shrink_differences(&fit, evidence);
        estimate_certainty(&fit);
        if (evidence >= EVIDENCE)
            fit_learn_programs(&fit);
        left &= ~group;
    }
}
