/*
 * Does the meter of the whole node include the GPUs? No BMC reports it, but where GPU power steps,
 * such a meter steps with it, in the same window or, being late, partly in the next: its changes
 * are fitted by those of the GPUs in a window and in the one before; the slopes sum to nearly 1, or
 * 0. With a single slope, a meter 10 s late seemed to exclude GPUs in up to 15 % of simulated
 * hours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { GPU_INCLUSION_STEPS = 16 }; /* remembered */

struct gpu_inclusion_step {
    double node_w;           /* change of the node's power since the last window */
    double gpus_w, before_w; /* the same of the GPUs, and their change in the last window */
};

/* Zeroed, it is empty. */
struct gpu_inclusion {
    bool excluded; /* the decision; included until steps show otherwise, so that no energy is booked
                      twice */
    size_t window_count;                                  /* without interruption; up to 2 */
    double node_w, gpus_w, gpus_step_w;                   /* of the last window */
    struct gpu_inclusion_step steps[GPU_INCLUSION_STEPS]; /* a ring */
    size_t step_count, next_step;
};

/* Takes the mean powers of the next window: of the node without its packages and memory, whose
 * power changes along with that of the GPUs, and of all GPUs. Only a clear slope changes the
 * decision. */
void gpu_inclusion_learn(struct gpu_inclusion *inclusion, double node_w, double gpus_w);

/* The next window will not follow the last one. */
void gpu_inclusion_interrupt(struct gpu_inclusion *inclusion);
