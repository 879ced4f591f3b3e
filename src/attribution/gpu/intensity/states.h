/*
 * States: the slots of a GPU, merged into a few states of the device with the same activity.
 *
 * States are for averaging: activity is precise in every slot, but a utilisation sample is one
 * draw, and only many of them show the shares. Bounded; old slots fade.
 */
#pragma once

#include "attribution/gpu/intensity/slot.h"

/* The units of the device, and its power. */
enum { FEATURE_POWER = UNIT_COUNT, FEATURE_COUNT };
enum { STATES_MAX = 40 };

/* What the device shows while busy. */
struct activity {
    double units[UNIT_COUNT];
    /* Board power per busy time at the reference clock, and what an idle watt adds to it. */
    double power_w, idle_w;
    double log_clock, log_clock_squared;
};

struct state {
    bool has_gpm;
    double weight;        /* in full slots */
    struct activity mean; /* over its slots */
    double won[TENANTS_MAX];
    uint32_t listed; /* bits: tenants */

    /* Shares of time, from intensity_fit; the last is time lost in switching. */
    double share[TENANTS_MAX + 1];
};

struct states {
    struct state all[STATES_MAX];
    size_t count;
    bool has_gpm;
    uint64_t gpm_us;             /* the last slot with GPM */
    double idle_watts;           /* of the board with a context, set by the user */
    double limit_watts;          /* of the board, set by the user; 0: unknown */
    double scale[FEATURE_COUNT]; /* the largest of each; 0: ignored */
};

/* Describes a slot as a state of its own. False if nothing ran. */
bool states_describe(const struct slot *slot, struct state *ret_state);

/* Adds a slot. */
void states_learn(struct states *states, const struct slot *slot);

/* The nearest state, if possible one with the same of these tenants (bits); SIZE_MAX: none. */
size_t states_nearest(const struct states *states, const struct state *like, uint32_t tenants);

/* The watts above idle while busy, at the reference clock. */
double states_watts(const struct states *states, const struct activity *activity);
/* A program that the power limit slows down alone uses more energy for the same work in faster
 * company: by about this part at this clock. Nothing shows who caused it. */
double states_clock_gain(const struct states *states, double watts, double log_clock);
/* A unit or the watts, relative to the scale. */
double states_feature(const struct states *states, const struct activity *activity, size_t feature);
/* The variance of a feature around that of a mixture of its tenants, relative to the scale. */
double states_variance(const struct states *states, const struct state *state, size_t feature);

/* Moves a mean towards a value by this part of their difference. */
void activity_average(struct activity *mean, const struct activity *value, double part);

/* Extends the scale to an activity that is in no state. */
void states_rescale(struct states *states, const struct activity *activity);

/* Fades all states, and drops those that are nearly gone. */
void states_fade(struct states *states, double factor);

/* Drops states that list none of these tenants (bits). */
void states_keep(struct states *states, uint32_t tenants);

/* Clears a tenant's place for another process. */
void states_forget(struct states *states, uint32_t tenant);
