/*
 * Programs: what programs show on a board, so that the next process of one need not be learned
 * from nothing. Measured while a program's process is alone on the board, else learned in company.
 *
 * What is remembered is a hint, never a fact: intensity_fit validates it against what the board
 * shows before it counts. Memory is fixed.
 */
#pragma once

#include "attribution/gpu/intensity/states.h"
#include "core/pack.h"

enum { PROGRAMS_MAX = 128 };

/* What a program's means are worth at most, in full slots: thirty busy seconds. Older slots fade.
 */
#define PROGRAMS_SLOTS_MAX 150.0
/* The same once the board has another branch of the driver or another power limit. */
#define PROGRAMS_CHANGED_SLOTS 2.0

struct program {
    uint64_t key;     /* 0: none */
    uint64_t used_us; /* last learned or recalled, by the time of samples */
    uint64_t turn;    /* the same as a count: the clock may be set back */
    double slots;     /* what the means are worth, in full slots; bounded */
    struct activity mean;
    bool has_gpm;
    bool is_measured; /* alone on the board */
};

struct programs {
    struct program all[PROGRAMS_MAX];
    uint64_t turn; /* of the last use */
};

/* What is remembered of the programs of a board. */
struct program_memory {
    struct programs exact;    /* by exact keys */
    struct programs families; /* by coarse keys */
};

/* Adds a slot, described as a state, in which a process of this program was alone. The least
 * recently used program makes room. */
void programs_measure(struct programs *programs, uint64_t key, const struct state *alone,
                      uint64_t now_us);

/* Replaces what was learned of this program in company; never what was measured. */
void programs_learn(struct programs *programs, uint64_t key, const struct program *learned);

/* NULL if it is unknown. */
const struct program *programs_recall(struct programs *programs, uint64_t key, uint64_t now_us);

/* Adds what is remembered elsewhere, worth at most `slots_max`; 0: nothing. Of two memories of a
 * program the measured one stays, else the one that is worth more. */
void programs_adopt(struct programs *to, const struct programs *from, double slots_max);

/* Lowers the worth of all, as after a change of the driver. */
void programs_cap(struct programs *programs, double slots_max);

void programs_code(struct programs *programs, struct coder *coder);

size_t programs_count(const struct programs *programs);
