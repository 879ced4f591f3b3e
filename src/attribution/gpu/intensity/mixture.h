/*
 * Mixture: the shares of tenants in a state's time, as a least-squares problem over parts that sum
 * to 1. Where several tenants share, the last part is time lost in switching, in which nothing
 * runs.
 */
#pragma once

#include "attribution/gpu/intensity/intensity.h"

enum { SWITCHING = TENANTS_MAX, PARTS_MAX = TENANTS_MAX + 1 };

struct mixture {
    size_t tenant_count;         /* the first parts */
    size_t count;                /* all parts */
    uint32_t tenants[PARTS_MAX]; /* of the parts; SWITCHING for the last */
    double parts[PARTS_MAX];     /* a first guess, then the solution */
    double matrix[PARTS_MAX * PARTS_MAX];
    double linear[PARTS_MAX];
    double covariance[PARTS_MAX * PARTS_MAX]; /* of the solution */
};

/* Starts a problem over these tenants (bits), with the expectation that switching takes little. */
void mixture_begin(struct mixture *mixture, uint32_t tenants);

/* The misfit of a part lost in switching, as a square. */
double mixture_switching_misfit(double part);

/* Adds that the features of a state are those of its tenants, mixed. */
void mixture_add_features(struct mixture *mixture, const struct intensity *intensity,
                          const struct state *state);

/* Adds that a part is expected to be `part`. */
void mixture_add_expectation(struct mixture *mixture, size_t i, double part, double precision);

/* Computes the parts, and the covariance of those that are not 0. */
void mixture_solve(struct mixture *mixture);

/* Computes the covariance of all parts: one at its bound is not certain for that. */
void mixture_widen(struct mixture *mixture);
