/*
 * Gains: how much more or less than others the programs of each part of a board draw for what its
 * units do. Multiplying zeros draws half of the power of multiplying random numbers, and GPM does
 * not show that. Only the board's power does, and only while the parts vary; a mixture that does
 * not vary leaves every gain as open as it was. Pure, bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GAINS_MAX = 16 };

/* A Kalman filter over the parts of a board. All 0: nothing is known. */
struct gains {
    uint32_t programs[GAINS_MAX]; /* bits: tenants of the part, of which the gain is; 0: none yet */
    bool is_empty[GAINS_MAX];     /* they have gone */
    double gain[GAINS_MAX];
    double covariance[GAINS_MAX * GAINS_MAX];
};

/* Tells which tenants (bits) a part has. The gain of others is not known; that of the last ones
 * stays after they have gone, as they are billed later. */
void gains_follow(struct gains *gains, size_t part, uint32_t programs);

/* Adds a slot: what each part draws if its gain is 1, and the watts of the board. */
void gains_learn(struct gains *gains, const double expected_w[GAINS_MAX], double watts);

/* The standard error of the share of a part, relative to it: what the board leaves open, and how
 * far its own share by these gains is off. At most 1. */
double gains_error(const struct gains *gains, const double expected_w[GAINS_MAX], size_t part,
                   double share);
