/*
 * Idle levels of a meter, learned from windows in which nothing ran. A GPU has two: the floor while
 * no process holds a context (76 to 80 W on an H200), and about 45 W more while one does. Both are
 * low quantiles, so that a window with unseen activity does not raise them. An operator may fix the
 * level instead: then it is both. Pure, bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { IDLE_MEMORY = 64 }; /* windows kept for each level */

struct idle_level {
    uint32_t seen_mw[IDLE_MEMORY]; /* a ring */
    size_t count;                  /* filled so far */
    size_t next;
    uint64_t level_mw; /* 0: nothing was seen yet */
};

struct idle_levels {
    struct idle_level without_context;
    struct idle_level with_context;
    bool is_fixed; /* by the operator: nothing is learned, and what was learned stays unused */
    uint32_t fixed_mw;
};

/* The idle part of a window: floor plus context step, each of them energy. */
struct idle_part {
    uint64_t floor_uj;
    uint64_t step_uj;
};

/* The power of a board that rests, with or without a context. 0: unknown, or fixed so. */
uint64_t idle_level_mw(const struct idle_levels *levels, bool context);

/* Adds a window in which nothing was active. */
void idle_learn(struct idle_levels *levels, bool context, uint64_t energy_uj, uint64_t duration_us);

/* The idle part of a window, at most all of it. Before a level was seen, all energy is active. */
struct idle_part idle_split(const struct idle_levels *levels, bool context, uint64_t energy_uj,
                            uint64_t duration_us);

/* Too much for a board that rests, with or without a context? False before a level was seen. */
bool idle_is_exceeded(const struct idle_levels *levels, uint64_t energy_uj, uint64_t duration_us);

/* For meters without contexts: learns from the window if the CPUs were idle, busy for at most a
 * fiftieth of their capacity, and returns its floor. */
uint64_t idle_floor(struct idle_levels *levels, uint64_t busy_us, uint64_t capacity_us,
                    uint64_t energy_uj, uint64_t duration_us);
