/*
 * States: the slots of a GPU, merged into few states of the device in which the same was going on.
 *
 * A state is what is averaged over: the device's activity is precise in every slot, but a
 * utilisation sample is one draw, and only many of them tell who was there. Bounded; old slots
 * fade.
 */
#pragma once

#include <stdint.h>

#include "attribution/gpu/intensity/slot.h"

/* The units of the device, and its power. */
enum { FEATURE_POWER = UNIT_COUNT, FEATURE_COUNT };
enum { STATES_MAX = 40 };

struct state {
    double weight;            /* how many full slots it stands for */
    double units[UNIT_COUNT]; /* while busy */
    /* Board power per busy time, at the reference clock, and what an idle watt adds to it. */
    double power_w, idle_w;
    double log_clock, log_clock_squared; /* means */
    double won[TENANTS_MAX];
    uint32_t listed; /* a bit for each tenant */

    /* Found by intensity_refine: whose time it was; the last is the time lost in switching. */
    double share[TENANTS_MAX + 1];
};

struct states {
    struct state all[STATES_MAX];
    size_t count;
    bool has_gpm;
    uint64_t gpm_us;             /* the last slot with GPM */
    double idle_watts;           /* of the board with a context on it, kept by whoever knows */
    double scale[FEATURE_COUNT]; /* the largest of each; 0: not to be looked at */
};

/* The state that a slot is in, as if it were one of its own. False if nothing ran. */
bool states_describe(const struct slot *slot, struct state *ret_state, bool *ret_has_gpm);

/* Takes a slot in. */
void states_learn(struct states *states, const struct slot *slot);

/* The state that a slot is most like, with the same tenants of those that matter if there is one;
 * SIZE_MAX if there is none at all. */
size_t states_nearest(const struct states *states, const struct state *like, uint32_t that_matter);

/* The watts above idle while busy, at the reference clock. */
double states_watts(const struct states *states, const struct state *state);
/* A unit, or the watts, as a part of the scale. */
double states_feature(const struct states *states, const struct state *state, size_t feature);
/* How far a feature of a state is off from what a mixture of its tenants would show, as a variance
 * in parts of the scale. */
double states_variance(const struct states *states, const struct state *state, size_t feature);

/* Lets everything fade; what is left of almost nothing goes. */
void states_fade(struct states *states, double factor);

/* A tenant's place is given to another: what it did is forgotten. */
void states_forget(struct states *states, uint32_t tenant);
