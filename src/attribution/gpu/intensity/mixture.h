/*
 * Mixture: whose time a state was, as a least-squares problem over shares that sum to 1. The last
 * part, where several share, is the time lost in switching between them, in which nothing runs.
 */
#pragma once

#include "attribution/gpu/intensity/intensity.h"

enum { SWITCHED = TENANTS_MAX, PARTS_MAX = TENANTS_MAX + 1 };

/* Time lost in switching: about so much, at most. */
#define MIXTURE_SWITCHING 0.08

struct mixture {
    size_t count;
    uint32_t tenants[PARTS_MAX];
    double parts[PARTS_MAX];              /* a first guess, then the solution */
    double matrix[PARTS_MAX * PARTS_MAX]; /* of the least squares */
    double linear[PARTS_MAX];
    double covariance[PARTS_MAX * PARTS_MAX]; /* of the solution */
};

/* A problem without conditions, of those who are listed. */
void mixture_begin(struct mixture *mixture, uint32_t listed);

/* Adds that the features of a state are those of its tenants, mixed. */
void mixture_add_features(struct mixture *mixture, const struct intensity *intensity,
                          const struct state *state);

/* Adds that a part is about so much. */
void mixture_add_expectation(struct mixture *mixture, size_t i, double part, double precision);

/* Finds the parts, and how far they can be off. */
void mixture_solve(struct mixture *mixture);
