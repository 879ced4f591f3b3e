/*
 * History: the last hour of the books in steps of 5 s, in at most 1 MiB. Energy is placed at the
 * time when it was used, however late it is booked; what the counters say is beside it. The largest
 * workloads have a row each, the others are added up: in every step booked = rows + others +
 * unowned, to the microjoule. Pure: no I/O, no clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/macros.h"
#include "model/price.h"
#include "model/workload.h"

enum {
    HISTORY_STEPS = 720,
    HISTORY_ROWS = 128,
    HISTORY_CANDIDATES = 128,
    HISTORY_NAME_BYTES = 256
};
#define HISTORY_STEP_US (5 * USEC_PER_SEC)

/* Energy in uJ, by the number of the step since the epoch, modulo HISTORY_STEPS. */
typedef uint64_t history_steps[HISTORY_STEPS];

struct history_row {
    enum workload_kind kind;
    char id[WORKLOAD_ID_BYTES];
    char name[HISTORY_NAME_BYTES], namespace[HISTORY_NAME_BYTES];
    bool is_named;
    bool is_hidden; /* as of the last look: its names may still come */
    history_steps steps;
};

/* Where a workload stands among the others. */
struct history_rank {
    uint64_t hash;      /* of kind and id */
    uint64_t energy_uj; /* of its row */
    uint64_t before_uj; /* about what it used before it had a row; fades within an hour */
    struct history_row *row;
};

struct history_stretch {
    uint64_t start_us, end_us;
};

struct history {
    uint64_t latest_us;  /* 0: it has not begun */
    uint64_t first, end; /* steps; the one of the latest time is the last */
    history_steps booked, measured, others, unowned[UNOWNED_COUNT];
    bool is_booked[HISTORY_STEPS], is_measured[HISTORY_STEPS]; /* also if that is nothing */
    struct history_rank ranks[HISTORY_ROWS];
    size_t row_count;
    /* The largest without a row, by the algorithm Space-Saving (Metwally et al., 2005). */
    struct history_rank candidates[HISTORY_CANDIDATES];
    size_t candidate_count;
    bool has_replaced; /* a row in this step */
    struct {
        struct history_stretch of;
        uint64_t energy_uj; /* of its parts so far */
    } window;               /* being booked */
};

_Static_assert(sizeof(struct history) + HISTORY_ROWS * sizeof(struct history_row) <= 1 << 20,
               "the history is too large");

/* NULL: out of memory. */
struct history *history_new(void);
void history_free(struct history *history);

/* All below accept NULL. Energy of a time that the history does not have is left out. */

/* The time of any sample. If it goes back by more than a minute, the clock was set back: what is
 * later is dropped. */
void history_advance(struct history *history, uint64_t t_us);

/* A window of a meter, which may have no energy, and then its parts. */
void history_book(struct history *history, uint64_t energy_uj, uint64_t start_us, uint64_t end_us);
void history_book_unowned(struct history *history, enum unowned owner, uint64_t energy_uj);
void history_book_workload(struct history *history, enum workload_kind kind, const char *id,
                           uint64_t energy_uj);

/* What a counter has counted; or what a model has, which alone makes no step measured. */
void history_measure(struct history *history, uint64_t energy_uj, uint64_t start_us,
                     uint64_t end_us, bool is_modelled);
