/*
 * Coverage: does the meter of the whole node measure the GPUs, too?
 *
 * Nobody says so of a BMC. But where GPU power steps, a meter that measures the GPUs steps with it,
 * in the same window or, as it is late, partly in the next: its changes are fitted by those of the
 * GPUs in a window and in the one before, and both slopes together are near 1, or else near 0.
 * In simulations (loads that change every 13 s to 5 min, meters up to 15 s late) it was never wrong
 * so; by one slope alone, without the window before, a meter that is 10 s late was taken for one
 * without GPUs in up to 15 % of the hours. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { GPU_INCLUSION_STEPS = 16 }; /* remembered: what is older does not count */

struct gpu_inclusion_step {
    double node_w;           /* how far the node's power went from the last window to this one */
    double gpus_w, before_w; /* likewise that of the GPUs, and how far it went in the last window */
};

struct gpu_inclusion {
    bool included;                      /* the decision */
    size_t window_count;                /* without an interruption, as far as it matters: up to 2 */
    double node_w, gpus_w, gpus_step_w; /* of the last window */
    struct gpu_inclusion_step steps[GPU_INCLUSION_STEPS]; /* a ring */
    size_t step_count, next_step;
};

/* Included, until steps show otherwise: so no joule is booked twice. */
void gpu_inclusion_init(struct gpu_inclusion *coverage);

/*
 * Takes the mean powers of the next window: of the node without its packages and memory, whose
 * power changes along with that of the GPUs, and of all GPUs. A decision is changed only where the
 * slope is clear for the other side.
 */
void gpu_inclusion_learn(struct gpu_inclusion *coverage, double node_w, double gpus_w);

/* The next window does not follow the last one. */
void gpu_inclusion_interrupt(struct gpu_inclusion *coverage);
