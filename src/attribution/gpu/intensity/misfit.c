/* How well a fit explains what the board shows, and what is remembered of its tenants. */
#include <math.h>

#include "attribution/gpu/intensity/fit_private.h"
#include "attribution/gpu/intensity/linear.h"
#include "core/macros.h"

/* Of remembered watts, relative: boards and days differ. */
static const double ANCHORED_WATTS_NOISE = 0.1;

/* The misfit of a state's samples, time lost in switching, and features; a sum of squares, each
 * expected to be about 1. */
static double state_misfit(const struct intensity *intensity, const struct state *state)
{
    const struct states *states = &intensity->states;
    uint32_t tenants = state->listed & intensity->known;
    double draws = FIT_PRIOR_DRAWS, prior = 0,
           sum = mixture_switching_misfit(state->share[SWITCHING]);

    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        draws += tenants & (1U << t) ? state->won[t] : 0;
        prior += tenants & (1U << t) ? intensity->won[t] + 0.5 : 0;
    }
    for (uint32_t t = 0; t < TENANTS_MAX; t++) {
        double drawn, off;

        if (!(tenants & (1U << t)))
            continue;
        drawn = (state->won[t] + FIT_PRIOR_DRAWS * (intensity->won[t] + 0.5) / prior) / draws;
        off = drawn - state->share[t];
        sum += fit_effective_draws(draws) * off * off / (drawn * (1 - drawn) + FIT_DRAW_FLOOR);
    }
    for (size_t f = 0; f < FEATURE_COUNT; f++) {
        double off = states_feature(states, &state->mean, f);

        if (states->scale[f] <= 0)
            continue;
        for (uint32_t t = 0; t < TENANTS_MAX; t++)
            if (tenants & (1U << t))
                off -= state->share[t] * intensity->signatures[t][f] / states->scale[f];
        sum += off * off / states_variance(states, state, f);
    }
    return sum;
}

/* How far the signature of a tenant is from its anchor. */
static double anchor_misfit(const struct fit *fit, uint32_t tenant)
{
    const struct states *states = &fit->intensity->states;
    const struct anchor *anchor = fit_anchor(fit, tenant);
    const struct state whole = {.weight = anchor->weight};
    double sum = 0;

    for (size_t f = 0; f < FEATURE_COUNT && anchor->weight > 0; f++) {
        double off = states_feature(states, &anchor->activity, f);

        if (states->scale[f] <= 0)
            continue;
        off -= fit->intensity->signatures[tenant][f] / states->scale[f];
        sum += off * off / states_variance(states, &whole, f);
    }
    return MIN(anchor->weight / FIT_WEIGHT_MAX, 1.0) * sum;
}

/* How far the watts of the states are from the anchors', where all tenants have one. What is off by
 * the same part everywhere counts once: boards and days differ by that. */
static double anchored_watts_misfit(const struct fit *fit)
{
    const struct states *states = &fit->intensity->states;
    double off = 0, gain = 0, weights = 0;

    for (size_t s = 0; s < fit->state_count; s++) {
        const struct state *state = fit->states[s];
        double watts = states_watts(states, &state->mean), explained = 0, present = 0;
        double weight = fit_weight(state), gained = 0;

        for (size_t i = 0; i < fit->count; i++) {
            uint32_t t = fit->tenants[i];
            double anchor = states_watts(states, &fit_anchor(fit, t)->activity);

            if (state->share[t] > FIT_SHARE_MIN && fit_anchor(fit, t)->weight <= 0)
                weight = 0;
            present += state->share[t];
            explained += state->share[t] * anchor;
            gained +=
                state->share[t] * anchor * states_clock_gain(states, anchor, state->mean.log_clock);
        }
        if (weight <= 0 || watts <= 0 || explained <= 0)
            continue;
        off += weight * linear_steady(log(explained / present / watts));
        gain += weight * gained / explained;
        weights += weight;
    }
    return weights > 0
               ? off * off /
                     (gain * gain + ANCHORED_WATTS_NOISE * ANCHORED_WATTS_NOISE * weights * weights)
               : 0;
}

double fit_misfit(const struct fit *fit)
{
    double sum = anchored_watts_misfit(fit);

    for (size_t i = 0; i < fit->count; i++)
        sum += anchor_misfit(fit, fit->tenants[i]);
    for (size_t s = 0; s < fit->state_count; s++)
        sum += MIN(fit->states[s]->weight, 1.0) * state_misfit(fit->intensity, fit->states[s]);
    return sum;
}
