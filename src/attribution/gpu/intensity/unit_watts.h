/*
 * Unit watts: what the activity of each unit of a board draws. It divides the power of a board in
 * MIG mode, which has one counter, among instances whose activity GPM shows one by one.
 *
 * The watts of a board are close to a sum over its units: those of 67 runs of real programs on an
 * H200 were, within 9 % on average and 26 % at worst. That sum is where it begins; what the board
 * itself shows moves it. Pure, bounded.
 */
#pragma once

#include "attribution/gpu/intensity/slot.h"

struct unit_watts {
    double
        watts[UNIT_COUNT]; /* of each unit, fully active on the whole board; 0 before the start */
    double matrix[UNIT_COUNT * UNIT_COUNT], linear[UNIT_COUNT]; /* of what was learned; fade */
    double recent[UNIT_COUNT * UNIT_COUNT]; /* the matrix, of the last minutes alone */
    double weight;                          /* in slots; fades */
    double residual; /* mean difference from the board's watts, relative to them */
    double slots;    /* that the residual is the mean of */
    int far_before;  /* the last slot was far off: expected too much (1), too little (-1); or 0 */
};

/* Adds a slot: activity relative to that of the whole board, and its watts above idle. A board with
 * another power limit (0: unknown) begins with other watts. */
void unit_watts_learn(struct unit_watts *unit_watts, const double units[UNIT_COUNT], double watts,
                      double limit_watts);

/* The watts of this activity. */
double unit_watts_of(const struct unit_watts *unit_watts, const double units[UNIT_COUNT],
                     double limit_watts);

/* The standard error of the share that a part of all the activity has of its watts, relative to
 * that share. It is what the last minutes leave open: a mixture that did not vary shows the sum,
 * and not who draws it, and units that are as busy as an hour ago may draw more for other data. */
double unit_watts_error(const struct unit_watts *unit_watts, const double part[UNIT_COUNT],
                        const double all[UNIT_COUNT], double limit_watts);
