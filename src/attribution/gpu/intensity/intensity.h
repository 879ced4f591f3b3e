/*
 * Intensity: learns the power of each process while it is resident, and divides slots by it.
 *
 * The model (docs/attribution.md explains it): in every state of the device, activity and power per
 * busy time are a mixture of those of its tenants, and utilisation samples are draws from the
 * mixture's shares of time. Uncertain shares pull signatures together, so that processes which the
 * data do not separate get equal watts, and are divided by time share. Memory is fixed.
 */
#pragma once

#include "attribution/gpu/intensity/programs.h"
#include "attribution/gpu/intensity/states.h"

/* Full slots alone on the board: in less, a process hardly shows more than how it starts. */
#define INTENSITY_ALONE_MIN 5.0

/* What a tenant showed alone on the board, or what was remembered of its program when it came. */
struct anchor {
    double weight; /* in slots; 0: nothing */
    bool is_measured, has_gpm;
    struct activity activity;
};

struct intensity {
    struct states states;
    struct program_memory *memory;        /* of the board; NULL: nothing is remembered */
    struct program_key keys[TENANTS_MAX]; /* of their programs */
    struct anchor anchors[TENANTS_MAX];   /* in force, if the states do not contradict them */
    struct anchor alone[TENANTS_MAX];     /* what they showed alone themselves */
    uint32_t anchored;               /* bits: tenants with an anchor, which is not contradicted */
    uint32_t measured;               /* bits: those of them whose anchor was measured alone */
    uint32_t contradicted;           /* bits: tenants with a wrong anchor */
    uint32_t known;                  /* bits: tenants with a signature and watts */
    uint32_t certain;                /* bits: tenants whose watts will hardly change */
    double misfit[TENANTS_MAX];      /* how well the fit explains the states; 1: as expected */
    double won[TENANTS_MAX];         /* samples, in all states */
    uint32_t turns[TENANTS_MAX];     /* how often they came to work after a rest */
    uint64_t worked_us[TENANTS_MAX]; /* last; 0: never */
    uint64_t fitted_us;              /* last, by the time of slots */
    uint64_t fit_interval_us;        /* until the next; 0: nothing was learned yet */
    double signatures[TENANTS_MAX][FEATURE_COUNT]; /* units and watts while resident */
    double watts[TENANTS_MAX];                     /* the same, in their own measure */
    double watts_error[TENANTS_MAX][TENANTS_MAX];  /* their covariance */
    double clock_error[TENANTS_MAX];               /* of the watts, relative */
};

/* A slot's active energy by tenant. */
struct intensity_shares {
    double of[TENANTS_MAX];    /* sum to 1 */
    double error[TENANTS_MAX]; /* expected, relative to the share */
    double doubt[TENANTS_MAX]; /* the same, if one of the tenants is another than it was */
};

/* What is remembered of programs, and of how many tenants. */
struct intensity_memory {
    size_t programs;  /* remembered */
    size_t recalled;  /* tenants of such a program, which counts */
    size_t suspended; /* tenants of such a program, which the board contradicts */
};

/* Adds a slot, and fits again from time to time. */
void intensity_learn(struct intensity *intensity, const struct slot *slot);

/* Remembers what a program shows alone, if the slot has one process and a sample of it. Samples of
 * a client of MPS are those of its server. */
void intensity_remember_alone(struct intensity *intensity, const struct slot *slot);

/* Estimates signatures, watts and shares from the states and from what is remembered of programs,
 * as far as the states do not contradict it. In fit.c. */
void intensity_fit(struct intensity *intensity, size_t rounds);

/* The shares of a state by its samples and features, given the signatures. In fit.c. */
struct mixture;
void intensity_estimate_shares(const struct intensity *intensity, struct state *state,
                               struct mixture *mixture);

/* False if the slot tells nothing, or nothing is known yet. */
bool intensity_divide(const struct intensity *intensity, const struct slot *slot,
                      struct intensity_shares *ret_shares);

/* Was a tenant at work of which nothing is known yet? */
bool intensity_has_unknown(const struct intensity *intensity, const struct slot *slot);

/* Counts those of `tenants` (bits). */
struct intensity_memory intensity_memory(const struct intensity *intensity, uint32_t tenants);

/* Drops what was learned without any of these tenants (bits). */
void intensity_keep(struct intensity *intensity, uint32_t tenants);

/* Sets the program of a tenant, and recalls what is remembered of it. */
void intensity_recall(struct intensity *intensity, uint32_t tenant, struct program_key key,
                      uint64_t now_us);

/* Adds a slot, described as a state, in which a tenant was alone. In anchors.c. */
void intensity_measure(struct intensity *intensity, uint32_t tenant, const struct state *described);

/* Clears a tenant's place for another process. */
void intensity_forget(struct intensity *intensity, uint32_t tenant);
