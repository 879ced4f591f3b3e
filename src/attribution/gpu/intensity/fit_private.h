/* A fit in progress. Only for fit.c, misfit.c and anchors.c. */
#pragma once

#include "attribution/gpu/intensity/mixture.h"

/* The prior of a state's samples, in draws, and what a variance p(1 - p) of theirs is at least: a
 * share of 0 may still be wrong. */
#define FIT_PRIOR_DRAWS 1.0
#define FIT_DRAW_FLOOR  0.05

/* A state counts as at most this many slots: its error is the same in all of them. */
#define FIT_WEIGHT_MAX 10.0

/* Smaller shares tell nothing. */
#define FIT_SHARE_MIN 0.05

/* Tenants that never meet, not even through others, teach nothing of each other: each group of
 * tenants is fitted alone. */
struct fit {
    struct intensity *intensity;
    struct state *states[STATES_MAX]; /* of the group */
    size_t state_count;
    size_t count;
    uint32_t tenants[TENANTS_MAX];
    uint32_t places[TENANTS_MAX]; /* of a tenant in `tenants` */
    double mean[FEATURE_COUNT];   /* over the states */
    double mean_watts;
    uint32_t anchored; /* bits: tenants whose anchors are in force */
};

/* Fits signatures and shares with the anchors of these tenants (bits), starting from them and from
 * otherwise equal tenants. */
void fit_run(struct fit *fit, uint32_t anchored, size_t rounds);

/* The anchor of a tenant, if it is in force; else one without weight. */
const struct anchor *fit_anchor(const struct fit *fit, uint32_t tenant);

double fit_weight(const struct state *state);

/* How much the samples of a state are worth, in independent draws. */
double fit_effective_draws(double draws);

/* In misfit.c. How badly the last run explains the states: a sum of squares, each expected to be
 * about 1. */
double fit_misfit(const struct fit *fit);

/* In anchors.c. Runs the fit with all anchors that the states do not contradict. */
void fit_validate(struct fit *fit, size_t rounds);

/* In anchors.c. Remembers the programs of tenants that the last run separated well. */
void fit_learn_programs(const struct fit *fit);

/* The variance of measured watts, without that of the counter's ticks. */
double fit_watts_variance(double watts);
