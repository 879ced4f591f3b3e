#include "attribution/node/gpu_inclusion.h"

#include <math.h>

#include "core/macros.h"

/* Smaller steps drown in what fans and disks do meanwhile. */
static const double STEP_MIN_W = 100;

/* A step is in two windows, so these are three or more. */
enum { STEPS_MIN = 6 };

/* In between the two: several chassis, or a meter that is later than a window is long. */
static const double SLOPE_EXCLUDED = 0.3, SLOPE_INCLUDED = 0.7;

/* Where power goes up and down with every window, the two slopes cannot be told apart. */
static const double INDEPENDENT_MIN = 0.05;

void gpu_inclusion_init(struct gpu_inclusion *coverage)
{
    *coverage = (struct gpu_inclusion){.included = true};
}

void gpu_inclusion_interrupt(struct gpu_inclusion *coverage)
{
    coverage->window_count = 0;
}

/* The sum of both slopes, by least squares; false if the steps do not tell. */
static bool fit(const struct gpu_inclusion *coverage, double *ret_slope)
{
    double now_now = 0, now_before = 0, before_before = 0, now_node = 0, before_node = 0;
    double determinant;

    if (coverage->step_count < STEPS_MIN)
        return false;
    for (size_t i = 0; i < coverage->step_count; i++) {
        const struct gpu_inclusion_step *step = &coverage->steps[i];

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

static void take_step(struct gpu_inclusion *coverage, struct gpu_inclusion_step step)
{
    double slope;

    if (fmax(fabs(step.gpus_w), fabs(step.before_w)) <= STEP_MIN_W)
        return;
    coverage->steps[coverage->next_step] = step;
    coverage->next_step = (coverage->next_step + 1) % GPU_INCLUSION_STEPS;
    coverage->step_count = MIN(coverage->step_count + 1, (size_t)GPU_INCLUSION_STEPS);
    if (!fit(coverage, &slope))
        return;
    if (slope > SLOPE_INCLUDED)
        coverage->included = true;
    else if (slope < SLOPE_EXCLUDED)
        coverage->included = false;
}

void gpu_inclusion_learn(struct gpu_inclusion *coverage, double node_w, double gpus_w)
{
    double gpus_step_w = gpus_w - coverage->gpus_w;

    if (coverage->window_count == 2)
        take_step(coverage, (struct gpu_inclusion_step){.node_w = node_w - coverage->node_w,
                                                        .gpus_w = gpus_step_w,
                                                        .before_w = coverage->gpus_step_w});
    coverage->window_count = MIN(coverage->window_count + 1, (size_t)2);
    coverage->node_w = node_w;
    coverage->gpus_w = gpus_w;
    coverage->gpus_step_w = gpus_step_w;
}
