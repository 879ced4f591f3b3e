/*
 * Programs: what programs show on a board, so that the next process of one need not be learned
 * from nothing. Measured while a program's process is alone on the board, else learned in company.
 *
 * What is remembered is a hint, never a fact: intensity_fit validates it against what the board
 * shows before it counts. Memory is fixed.
 */
#pragma once

#include "attribution/gpu/intensity/states.h"

enum { PROGRAMS_MAX = 128 };

struct program {
    uint64_t key;     /* 0: none */
    uint64_t used_us; /* last learned or recalled */
    double slots;     /* what the means are worth, in full slots; bounded */
    struct activity mean;
    bool has_gpm;
    bool is_measured; /* alone on the board */
};

struct programs {
    struct program all[PROGRAMS_MAX];
};

/* Adds a slot, described as a state, in which a process of this program was alone. The least
 * recently used program makes room. */
void programs_measure(struct programs *programs, uint64_t key, const struct state *alone,
                      uint64_t now_us);

/* Replaces what was learned of this program in company; never what was measured. */
void programs_learn(struct programs *programs, uint64_t key, const struct program *learned);

/* NULL if it is unknown. */
const struct program *programs_recall(struct programs *programs, uint64_t key, uint64_t now_us);

size_t programs_count(const struct programs *programs);
