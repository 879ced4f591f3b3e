/*
 * Intensity: learns what each process draws while it is on the GPU, and divides a slot by it.
 *
 * The model (docs/attribution.md has it in plain words): in every state of the device, its activity
 * and power per busy time are a mixture of its tenants' own, and the share of time that a tenant
 * has in the mixture is what the utilisation samples are draws of. Neither may be negative. Shares
 * and signatures are found in turns (expectation and maximisation): what is uncertain in the shares
 * pulls the signatures together, so that processes which the data do not tell apart have equal
 * watts, and their split is the time share.
 *
 * Pure; memory is fixed and nothing is allocated.
 */
#pragma once

#include "attribution/gpu/intensity/states.h"

struct intensity {
    struct states states;
    uint32_t known;           /* a bit for each tenant that has a signature and watts */
    uint32_t sure;            /* a bit for each whose watts will hardly change */
    uint64_t refined_us;      /* when, by the time of slots */
    uint64_t refine_after_us; /* from then on; 0: nothing was learned yet */
    double signatures[TENANTS_MAX][FEATURE_COUNT]; /* units and watts while resident */
    double watts[TENANTS_MAX];                     /* the same, in their own measure */
    double watts_error[TENANTS_MAX][TENANTS_MAX];  /* their covariance */
    double clock_error[TENANTS_MAX];               /* of the watts, as a part of them */
};

/* Who pays for a slot. */
struct intensity_shares {
    double of[TENANTS_MAX];    /* sum to 1 */
    double error[TENANTS_MAX]; /* expected, as a part of the own share */
};

/* Takes a slot in, and refines what is known once in a while. */
void intensity_learn(struct intensity *intensity, const struct slot *slot);

/* Finds signatures, watts and shares, from what the samples say and tenants that are alike. */
void intensity_refine(struct intensity *intensity, size_t rounds);

/* False if the slot says nothing, or nothing is known yet. */
bool intensity_divide(const struct intensity *intensity, const struct slot *slot,
                      struct intensity_shares *ret_shares);

/* Was somebody at work of whom nothing is known yet? */
bool intensity_has_stranger(const struct intensity *intensity, const struct slot *slot);

/* A tenant's place is given to another. */
void intensity_forget(struct intensity *intensity, uint32_t tenant);
