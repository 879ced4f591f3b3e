#include "attribution/node/gpu_inclusion.h"

#include <math.h>

#include "core/macros.h"

/* Smaller steps are lost in the noise of fans and disks. */
static const double STEP_MIN_W = 100;

/* A step is in two windows, so these are at least three. */
enum { STEPS_MIN = 6 };

/* In between: several chassis, or a meter that is late by more than a window. */
static const double SLOPE_EXCLUDED = 0.3, SLOPE_INCLUDED = 0.7;

/* Where power alternates with every window, the two slopes are not separable. */
static const double INDEPENDENT_MIN = 0.05;

void gpu_inclusion_interrupt(struct gpu_inclusion *inclusion)
{
    inclusion->window_count = 0;
}

/* The sum of both slopes, by least squares; false if the steps do not determine it. */
static bool fit_slope(const struct gpu_inclusion *inclusion, double *ret_slope)
{
    double now_now = 0, now_before = 0, before_before = 0, now_node = 0, before_node = 0;
    double determinant;

    if (inclusion->step_count < STEPS_MIN)
        return false;
    for (size_t i = 0; i < inclusion->step_count; i++) {
        const struct gpu_inclusion_step *step = &inclusion->steps[i];

        now_now += step->gpus_w * step->gpus_w;
        now_before += step->gpus_w * step->before_w;
        before_before += step->before_w * step->before_w;
        now_node += step->gpus_w * step->node_w;
        before_node += step->before_w * step->node_w;
    }
    determinant = now_now * before_before - now_before * now_before;
    if (determinant <= INDEPENDENT_MIN * now_now * before_before)
        return false;
    *ret_slope = (now_node * (before_before - now_before) + before_node * (now_now - now_before)) /
                 determinant;
    return true;
}

void gpu_inclusion_learn(struct gpu_inclusion *inclusion, double node_w, double gpus_w)
{
    struct gpu_inclusion_step step = {.node_w = node_w - inclusion->node_w,
                                      .gpus_w = gpus_w - inclusion->gpus_w,
                                      .before_w = inclusion->gpus_step_w};
    bool is_step =
        inclusion->window_count == 2 && fmax(fabs(step.gpus_w), fabs(step.before_w)) > STEP_MIN_W;
    double slope;

    inclusion->window_count = MIN(inclusion->window_count + 1, (size_t)2);
    inclusion->node_w = node_w;
    inclusion->gpus_w = gpus_w;
    inclusion->gpus_step_w = step.gpus_w;
    if (!is_step)
        return;
    inclusion->steps[inclusion->next_step] = step;
    inclusion->next_step = (inclusion->next_step + 1) % GPU_INCLUSION_STEPS;
    inclusion->step_count = MIN(inclusion->step_count + 1, (size_t)GPU_INCLUSION_STEPS);
    if (!fit_slope(inclusion, &slope))
        return;
    if (slope > SLOPE_INCLUDED)
        inclusion->excluded = false;
    else if (slope < SLOPE_EXCLUDED)
        inclusion->excluded = true;
}
