/* A fit in progress. Only for fit.c and anchors.c. */
#pragma once

#include "attribution/gpu/intensity/mixture.h"

/* A remembered program of a tenant. */
struct anchor {
    double weight; /* in slots; 0: none */
    struct activity activity;
};

struct fit {
    struct intensity *intensity;
    size_t count;
    uint32_t tenants[TENANTS_MAX];
    uint32_t places[TENANTS_MAX]; /* of a tenant in `tenants` */
    double mean[FEATURE_COUNT];   /* over all states */
    double mean_watts;
    struct anchor anchors[TENANTS_MAX];
    uint32_t anchored; /* bits: tenants whose anchors are in force */
};

/* Fits signatures and shares with the anchors of these tenants (bits), starting from them and from
 * otherwise equal tenants. */
void fit_run(struct fit *fit, uint32_t anchored, size_t rounds);

/* How badly the last run explains the states: a sum of squares, each expected to be about 1. */
double fit_misfit(const struct fit *fit);

/* In anchors.c. Recalls a tenant's program, if it is remembered. */
void fit_recall_anchor(struct fit *fit, uint32_t tenant);

/* In anchors.c. Runs the fit with all anchors that the states do not contradict. */
void fit_validate(struct fit *fit, size_t rounds);
